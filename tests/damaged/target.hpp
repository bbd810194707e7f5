#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// A reader and files to damage. Each `<reader>_target.cpp` in this folder defines these three; driver.cpp makes a program of it that
/// reads 10,000 damaged files, and -DTAPEGRAPH_LIBFUZZER=ON (clang) one that libFuzzer drives.

/// Sound files of the format, small ones, each with something another has not.
std::vector<std::string> sound_files();

/// Reads the bytes as the format. True: they were read; false: the reader threw its error (tapegraph::error). Nothing else may leave it.
bool read_damaged(const std::string& bytes);

/// Bytes that reading may take at once for every byte of the file: 1 for copies, more for what is compressed.
extern const std::size_t memory_factor;
