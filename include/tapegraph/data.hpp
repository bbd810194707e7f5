#pragma once

/// All headers of data sets: readers, and what prepares records for a model. A header that needs a
/// third-party library is included where that library's header is found; a program that uses it
/// links the library (in CMake tapegraph::images, tapegraph::zlib, tapegraph::jpeg,
/// tapegraph::unicode, tapegraph::proto).
///
/// Define TG_NO_THIRD_PARTY to leave these out.

#include <tapegraph/data/dataset.hpp>

#include <tapegraph/data/images.hpp>
#include <tapegraph/data/loader.hpp>
#include <tapegraph/data/matrix.hpp>
#include <tapegraph/data/pipeline.hpp>
#include <tapegraph/data/pipeline/cache_file.hpp>
#include <tapegraph/data/pipeline/csv_rows.hpp>
#include <tapegraph/data/readers/arrow.hpp>
#include <tapegraph/data/readers/cifar10.hpp>
#include <tapegraph/data/readers/image.hpp>
#include <tapegraph/data/readers/npy.hpp>
#include <tapegraph/data/readers/table.hpp>
#include <tapegraph/data/readers/text_table.hpp>
#include <tapegraph/data/series/windows.hpp>
#include <tapegraph/data/synthetic.hpp>
#include <tapegraph/data/tables/columns.hpp>
#include <tapegraph/data/tables/discretization.hpp>
#include <tapegraph/data/tables/encoding.hpp>
#include <tapegraph/data/tables/fingerprint.hpp>
#include <tapegraph/data/tables/hashing.hpp>
#include <tapegraph/data/tables/lookup.hpp>
#include <tapegraph/data/tables/normalization.hpp>
#include <tapegraph/data/tables/state.hpp>
#include <tapegraph/data/text/labelled_texts.hpp>
#include <tapegraph/data/text/padding.hpp>
#include <tapegraph/data/text/skipgrams.hpp>
#include <tapegraph/data/text/utf8.hpp>
#include <tapegraph/data/text/vectorizer.hpp>
#include <tapegraph/data/text/vocabulary.hpp>
#include <tapegraph/data/text/windows.hpp>

#if !defined(TG_NO_THIRD_PARTY)
#if __has_include(<zlib.h>)
#include <tapegraph/data/pipeline/gzip_lines.hpp>
#include <tapegraph/data/readers/idx.hpp>
#include <tapegraph/data/readers/npz.hpp>
#include <tapegraph/data/readers/record_file.hpp>
#include <tapegraph/data/readers/record_stream.hpp>
#endif
#if __has_include(<stb/stb_image.h>) || __has_include(<stb_image.h>)
#include <tapegraph/data/readers/image_folder.hpp>
#endif
#if __has_include(<protozero/pbf_reader.hpp>)
#include <tapegraph/data/readers/example_columns.hpp>
#endif
#if __has_include(<utf8proc.h>)
#include <tapegraph/data/text/byte_level.hpp>
#include <tapegraph/data/text/byte_pair.hpp>
#include <tapegraph/data/text/byte_pair_files.hpp>
#include <tapegraph/data/text/byte_pair_training.hpp>
#include <tapegraph/data/text/hashing_trick.hpp>
#include <tapegraph/data/text/normalizers.hpp>
#include <tapegraph/data/text/tokenizer.hpp>
#include <tapegraph/data/text/tokenizer_json.hpp>
#include <tapegraph/data/text/unicode.hpp>
#include <tapegraph/data/text/unigram.hpp>
#include <tapegraph/data/text/unigram_files.hpp>
#include <tapegraph/data/text/word_piece.hpp>
#include <tapegraph/data/text/word_piece_files.hpp>
#include <tapegraph/data/text/word_sequence.hpp>
#endif
#if __has_include(<turbojpeg.h>)
#include <tapegraph/data/readers/jpeg.hpp>
#endif
#endif
