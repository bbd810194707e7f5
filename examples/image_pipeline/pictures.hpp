#pragma once

#include <cstdint>
#include <string>

namespace image_pipeline {

/// Writes `count` pictures of discs, squares and crosses, in all kinds of colours and sizes, into
/// one folder per shape: three of four as JPEG, the others as PNG.
void make_pictures(const std::string& folder, std::int64_t count, std::uint64_t seed);

} // namespace image_pipeline
