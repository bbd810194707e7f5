#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdint>

namespace tapegraph {

/// What stands beyond an image: `reflect` (d c b a | a b c d | d c b a), `wrap` (a b c d | a b c d), `nearest` (a a a | a b c d),
/// `constant` a number.
enum class fill_mode : std::uint8_t { reflect, wrap, nearest, constant };

} // namespace tapegraph
