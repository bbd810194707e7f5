#pragma once

/// All headers of files, and of what shows a run's progress and results. A header that needs a
/// third-party library is included where that library's header is found; a program that uses it
/// links the library (in CMake tapegraph::zlib, tapegraph::hdf5, tapegraph::images;
/// tapegraph::proto is headers alone).
///
/// Define TG_NO_THIRD_PARTY to leave these out.

#include <tapegraph/interop.hpp>
#include <tapegraph/tensor.hpp>

#include <tapegraph/io/atomic_folder.hpp>
#include <tapegraph/io/checkpoint_manager.hpp>
#include <tapegraph/io/crc32c.hpp>
#include <tapegraph/io/csv.hpp>
#include <tapegraph/io/csv_reader.hpp>
#include <tapegraph/io/dlpack.hpp>
#include <tapegraph/io/eager_dot.hpp>
#include <tapegraph/io/folder_claim.hpp>
#include <tapegraph/io/graph_nodes.hpp>
#include <tapegraph/io/host_array.hpp>
#include <tapegraph/io/json_reader.hpp>
#include <tapegraph/io/mapped_file.hpp>
#include <tapegraph/io/npy.hpp>
#include <tapegraph/io/pickle.hpp>
#include <tapegraph/io/progress.hpp>
#include <tapegraph/io/record_framing.hpp>
#include <tapegraph/io/safetensors_reader.hpp>
#include <tapegraph/io/safetensors_shards.hpp>
#include <tapegraph/io/unfinished.hpp>
#include <tapegraph/io/utf8.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/io/weights_memory.hpp>
#include <tapegraph/nn/callbacks/checkpoints.hpp>
#include <tapegraph/nn/callbacks/saving.hpp>
#include <tapegraph/nn/estimator.hpp>
#include <tapegraph/profile.hpp>

#if defined(TG_COMPONENT) // the component holds the rules of ONNX's operators, which take long to compile
#include <tapegraph/io/load_onnx.hpp>
#endif

#if !defined(TG_NO_THIRD_PARTY)
#if __has_include(<protozero/pbf_writer.hpp>)
#include <tapegraph/io/graph_def.hpp>
#include <tapegraph/io/onnx.hpp>
#include <tapegraph/io/tensorboard.hpp>
#include <tapegraph/io/tensorboard/event_reader.hpp>
#include <tapegraph/nn/callbacks/tensorboard.hpp>
#include <tapegraph/profile/tensorboard.hpp>
#endif
#if __has_include(<hdf5.h>) && __has_include(<zlib.h>)
#include <tapegraph/io/keras.hpp>
#endif
#if __has_include(<zlib.h>)
#include <tapegraph/io/inflate.hpp>
#include <tapegraph/io/npz.hpp>
#include <tapegraph/io/pytorch.hpp>
#include <tapegraph/io/pytorch_weights.hpp>
#include <tapegraph/io/zip.hpp>
#endif
#if __has_include(<stb/stb_image_write.h>) || __has_include(<stb_image_write.h>)
#include <tapegraph/io/png.hpp>
#endif
#endif
