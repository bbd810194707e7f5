#pragma once

#include <tapegraph/core/dtype.hpp>
#include <tapegraph/core/shape.hpp>

#include <string>
#include <string_view>

namespace tapegraph {

/// Whether `to_string` formats a T and streams accept it: std::cout << x. Headers of such types
/// specialise it.
template <class T>
inline constexpr bool has_text = false;
template <>
inline constexpr bool has_text<shape> = true;
template <>
inline constexpr bool has_text<dtype> = true;

inline std::string to_string(dtype type) { return name_of(type); }

/// Accepts any stream that takes a std::string_view, so that this header includes none.
template <class Stream, class T>
    requires(has_text<T>&& requires(Stream& out, std::string_view text) { out << text; })
Stream& operator<<(Stream& out, const T& value) {
    out << std::string_view(to_string(value));
    return out;
}

} // namespace tapegraph
