#pragma once

#include <tapegraph/core/config.hpp>

#include <string_view>

namespace tapegraph::detail {

/// Whether a pattern, in which "*" stands for any text, matches a path or the path of an enclosing
/// scope.
constexpr bool path_matches(std::string_view pattern, std::string_view path) {
    std::size_t p = 0, star = pattern.npos, again = 0;
    for (std::size_t at = 0; at < path.size();) {
        if (p == pattern.size() && path[at] == '/') return true;
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++, again = at;
        } else if (p < pattern.size() && pattern[p] == path[at]) {
            ++p, ++at;
        } else if (star != pattern.npos) {
            p = star + 1, at = ++again; // the star takes one more character
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

} // namespace tapegraph::detail
