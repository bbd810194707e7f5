#pragma once

#include <tapegraph/ir/trace.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// Formats facts about a trace, in constant evaluation and at run time, for errors and reports.

namespace tapegraph::ir::detail {

/// Text built in constant evaluation.
struct text_builder {
    char text[256]{};
    int size = 0;

    constexpr void put(char c) {
        if (size < 255) text[size++] = c;
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
    b.put(scopes[scope].name);
    if (scopes[scope].index < 0) return;
    if (!scopes[scope].name.empty()) b.put('_');
    b.put(static_cast<std::int64_t>(scopes[scope].index));
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

/// "batch", or for an extent without a name "axis 1 of 'input'".
template <class View>
std::string symbol_text(const View& view, const extent_table& table, int atom) {
    const std::string_view name = view.atoms[atom].name;
    for (const input_entry& input : view.inputs)
        for (int axis = 0; name == "?" && axis < view.nodes[input.node].rank; ++axis)
            if (table.symbol_of(view.pool[view.nodes[input.node].dims + axis]) == atom)
                return std::string("axis ").append(std::to_string(axis)).append(" of '").append(input.name).append("'");
    return std::string(name);
}

/// Formats a symbolic extent, for example "(batch - 3) / 2 + 1".
template <class View>
std::string extent_text(const View& view, const extent_table& table, std::int64_t value) {
    if (!is_symbolic(value)) return std::to_string(value);
    const extent_table::polynomial p = table.polynomials[tapegraph::detail::symbolic_index(value)];
    std::string text;
    for (int i = p.first; i < p.first + p.count; ++i) {
        const extent_table::monomial& term = table.monomials[i];
        const bool negative = term.coefficient < 0;
        const std::int64_t size = negative ? -term.coefficient : term.coefficient;
        text += text.empty() ? (negative ? "-" : "") : negative ? " - " : " + ";
        if (size != 1 || term.atoms == 0) text += std::to_string(size) + (term.atoms != 0 ? " " : "");
        for (std::uint64_t rest = term.atoms; rest != 0; rest <<= extent_table::atom_bits) {
            const int index = extent_table::first_atom(rest);
            const extent_table::atom& factor = table.atoms[index];
            if (rest != term.atoms) text += ' ';
            if (factor.divisor == 0)
                text += symbol_text(view, table, index);
            else
                (text += '(')
                    .append(extent_text(view, table, factor.dividend))
                    .append(") / ")
                    .append(std::to_string(factor.divisor));
        }
    }
    return text;
}

template <class View>
std::string unmet_requirement(const View& view, const extent_table& table, const extent_table::requirement& r,
                              std::int64_t left, std::int64_t right) {
    const auto named = [&](std::int64_t extent, std::int64_t number) {
        return is_symbolic(extent) ? extent_text(view, table, extent) + " is " + std::to_string(number)
                                   : std::to_string(number);
    };
    if (r.at_least_for == nullptr)
        return "extents that must be equal differ: " + named(r.left, left) + ", " + named(r.right, right);
    return std::string(r.at_least_for) + ": extent " + named(r.left, left) + ", at least " + std::to_string(right) +
           " is needed";
}

} // namespace tapegraph::ir::detail
