#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdint>

namespace tapegraph {

/// How pixels beyond an image's border are filled: `reflect` (d c b a | a b c d | d c b a), `wrap`
/// (a b c d | a b c d), `nearest` (a a a | a b c d), or `constant`, a number.
enum class fill_mode : std::uint8_t { reflect, wrap, nearest, constant };

} // namespace tapegraph
