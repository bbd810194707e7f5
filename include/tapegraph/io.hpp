#pragma once

#include <tapegraph/core/config.hpp>

#if defined(_WIN32)
#error "<tapegraph/io.hpp> needs locks and mapped files of POSIX: on Windows include <tapegraph/tapegraph.hpp>"
#include <tapegraph/core/see_the_error_above>
#endif

/// All headers of files, and of what shows a run's progress and results. A header that needs a
/// third-party library is included where that library's header is found; a program that uses it
/// links the library (in CMake tapegraph::zlib, tapegraph::hdf5, tapegraph::images;
/// tapegraph::proto is headers alone).
///
/// Define TG_NO_THIRD_PARTY to leave these out.

#include <tapegraph/interop.hpp>
#include <tapegraph/tensor.hpp>

#include <tapegraph/formats/atomic_folder.hpp>
#include <tapegraph/formats/crc32c.hpp>
#include <tapegraph/formats/csv.hpp>
#include <tapegraph/formats/csv_reader.hpp>
#include <tapegraph/formats/dlpack.hpp>
#include <tapegraph/formats/folder_claim.hpp>
#include <tapegraph/formats/gguf.hpp>
#include <tapegraph/formats/host_array.hpp>
#include <tapegraph/formats/json_reader.hpp>
#include <tapegraph/formats/mapped_file.hpp>
#include <tapegraph/formats/npy.hpp>
#include <tapegraph/formats/pickle.hpp>
#include <tapegraph/formats/record_framing.hpp>
#include <tapegraph/formats/safetensors_reader.hpp>
#include <tapegraph/formats/safetensors_shards.hpp>
#include <tapegraph/formats/unfinished.hpp>
#include <tapegraph/formats/utf8.hpp>
#include <tapegraph/io/callbacks/checkpoints.hpp>
#include <tapegraph/io/callbacks/saving.hpp>
#include <tapegraph/io/checkpoint_manager.hpp>
#include <tapegraph/io/eager_dot.hpp>
#include <tapegraph/io/gguf_weights.hpp>
#include <tapegraph/io/graph_nodes.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/io/weights_memory.hpp>
#include <tapegraph/profile.hpp>
#include <tapegraph/session/estimator.hpp>
#include <tapegraph/train/progress.hpp>

#if defined(TG_COMPONENT) // the component holds the rules of ONNX's operators, which take long to compile
#include <tapegraph/io/load_onnx.hpp>
#endif

#if !defined(TG_NO_THIRD_PARTY)
#if __has_include(<protozero/pbf_writer.hpp>)
#include <tapegraph/io/callbacks/tensorboard.hpp>
#include <tapegraph/io/graph_def.hpp>
#include <tapegraph/io/onnx.hpp>
#if defined(TG_COMPONENT)
#include <tapegraph/io/quantize_onnx.hpp>
#endif
#include <tapegraph/io/save_program.hpp>
#include <tapegraph/io/tensorboard.hpp>
#include <tapegraph/io/tensorboard/event_reader.hpp>
#include <tapegraph/profile/tensorboard.hpp>
#endif
#if __has_include(<hdf5.h>) && __has_include(<zlib.h>)
#include <tapegraph/io/keras.hpp>
#endif
#if __has_include(<zlib.h>)
#include <tapegraph/formats/inflate.hpp>
#include <tapegraph/formats/npz.hpp>
#include <tapegraph/formats/pytorch.hpp>
#include <tapegraph/formats/zip.hpp>
#include <tapegraph/io/pytorch_weights.hpp>
#endif
#if __has_include(<stb/stb_image_write.h>) || __has_include(<stb_image_write.h>)
#include <tapegraph/formats/png.hpp>
#endif
#endif
