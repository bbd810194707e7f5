#pragma once

#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <string_view>

namespace tapegraph {

/// A string literal as a template argument: `run<"y">`, `dim<"time">`, the texts of a compile error.
template <std::size_t N>
struct fixed_string {
    char text[N]{};

    constexpr fixed_string() = default;
    // NOLINTNEXTLINE: implicit on purpose, so that a literal can stand as the argument
    constexpr fixed_string(const char (&literal)[N]) {
        for (std::size_t i = 0; i < N; ++i) text[i] = literal[i];
    }
    /// The text without its final zero.
    constexpr std::string_view view() const { return {text, N - 1}; }
};

} // namespace tapegraph
