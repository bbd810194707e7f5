#pragma once

#include <tapegraph/ir/trace.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// Turns facts about a trace into text, in constant evaluation and at run time, for errors and reports.

namespace tapegraph::ir::detail {

/// Text built in constant evaluation.
struct text_builder {
    char text[160]{};
    int size = 0;

    constexpr void put(char c) {
        if (size < 159) text[size++] = c;
    }
    constexpr void put(std::string_view s) {
        for (char c : s) put(c);
    }
    constexpr void put(std::int64_t n) {
        if (n < 0) {
            put('-');
            n = -n;
        }
        char digits[20]{};
        int count = 0;
        do digits[count++] = static_cast<char>('0' + n % 10);
        while ((n /= 10) != 0);
        while (count > 0) put(digits[--count]);
    }
    constexpr std::string_view view() const { return {text, static_cast<std::size_t>(size)}; }
};

constexpr text_builder operand_text(const operand_info& o) {
    text_builder b;
    b.put(name_of(o.type));
    b.put('[');
    for (int i = 0; i < o.dims.rank(); ++i) {
        if (i > 0) b.put(',');
        if (o.dims[i].known())
            b.put(o.dims[i].value);
        else
            b.put('?');
    }
    b.put(']');
    return b;
}

template <class Scopes>
constexpr void scope_path(text_builder& b, const Scopes& scopes, int scope) {
    if (scope <= 0) return;
    if (scopes[scope].parent > 0) {
        scope_path(b, scopes, scopes[scope].parent);
        b.put('/');
    }
    if (scopes[scope].index >= 0)
        b.put(static_cast<std::int64_t>(scopes[scope].index));
    else
        b.put(scopes[scope].name);
}

/// "model.hpp:23"
constexpr text_builder line_text(const source_line& at) {
    text_builder b;
    std::string_view file = at.file == nullptr ? "" : at.file;
    const std::size_t slash = file.rfind('/');
    if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
    b.put(file);
    b.put(':');
    b.put(static_cast<std::int64_t>(at.line));
    return b;
}

inline std::string unmet_requirement(const extent_table::requirement& r, std::int64_t left, std::int64_t right) {
    if (r.at_least_for == nullptr)
        return "extents that must be equal differ: " + std::to_string(left) + " and " + std::to_string(right);
    return std::string(r.at_least_for) + ": an extent is " + std::to_string(left) + ", at least " + std::to_string(right) +
           " is needed";
}

} // namespace tapegraph::ir::detail
