#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/extent.hpp>
#include <tapegraph/core/shape.hpp>

#include <charconv>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

/// The library's operations as operators of a domain in ONNX files, which save_program writes and
/// load_onnx reads. docs/onnx.md describes them.

namespace tapegraph::io::own_operators {

inline constexpr std::string_view domain = "tapegraph";
/// Grows when files of the new form cannot be read by the old reader.
inline constexpr std::int64_t version = 1;

/// Writes an extent that may depend on those of inputs, in reverse Polish notation:
/// "@0.1 2 * 1 +" is twice the extent of axis 1 of input 0, plus 1. `axis_of(i)` says which input
/// and axis the i-th symbol of the table is: "@0.1".
std::string extent_text(const extent_table& table, std::int64_t value, const std::function<std::string(int)>& axis_of);

/// Reads such a text. `extent_of(input, axis)` gives the extents of inputs and may throw. Returns
/// false for a text of another form.
bool read_extent(std::string_view text, extent_table& table, const std::function<extent(int, int)>& extent_of,
                 extent& result);

#if TG_DEFINES_FOR_HOST(io)

TG_DEFINITION std::string extent_text(const extent_table& table, std::int64_t value,
                                      const std::function<std::string(int)>& axis_of) {
    if (!is_symbolic(value)) return std::to_string(value);
    std::string sum;
    const extent_table::polynomial p = table.polynomials[tapegraph::detail::symbolic_index(value)];
    for (int i = p.first; i < p.first + p.count; ++i) {
        const extent_table::monomial term = table.monomials[i];
        std::string product = std::to_string(term.coefficient);
        for (std::uint64_t rest = term.atoms; rest != 0; rest <<= extent_table::atom_bits) {
            const int index = extent_table::first_atom(rest);
            const extent_table::atom& factor = table.atoms[index];
            product += ' ';
            product += factor.divisor == 0
                           ? axis_of(index)
                           : extent_text(table, factor.dividend, axis_of) + ' ' + std::to_string(factor.divisor) + " /";
            product += " *";
        }
        sum = sum.empty() ? product : sum + ' ' + product + " +";
    }
    return sum;
}

TG_DEFINITION bool read_extent(std::string_view text, extent_table& table,
                               const std::function<extent(int, int)>& extent_of, extent& result) {
    constexpr std::size_t most = 64;
    extent stack[most];
    std::size_t depth = 0;
    const auto number = [](std::string_view digits, auto& to) {
        const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
        return status == std::errc{} && end == digits.data() + digits.size();
    };
    while (!text.empty()) {
        const std::string_view token = text.substr(0, text.find(' '));
        text.remove_prefix(token.size() < text.size() ? token.size() + 1 : text.size());
        if (token == "+" || token == "*" || token == "/") {
            if (depth < 2) return false;
            const extent right = stack[--depth];
            extent& left = stack[depth - 1];
            if (token == "/" && (!right.known() || right.value <= 0)) return false;
            std::int64_t exact = 0; // other numbers overflow, or stand for a symbol
            if (left.known() && right.known() && token != "/" &&
                ((token == "+" ? __builtin_add_overflow(left.value, right.value, &exact)
                               : __builtin_mul_overflow(left.value, right.value, &exact)) ||
                 is_symbolic(exact)))
                return false;
            left = token == "+" ? left + right : token == "*" ? left * right : left / right.value;
            continue;
        }
        if (depth == most) return false;
        if (token.starts_with('@')) {
            const std::size_t dot = token.find('.');
            int input = 0, axis = 0;
            if (dot == token.npos || !number(token.substr(1, dot - 1), input) || !number(token.substr(dot + 1), axis))
                return false;
            stack[depth++] = extent_of(input, axis);
            continue;
        }
        std::int64_t value = 0;
        if (!number(token, value) || is_symbolic(value)) return false;
        stack[depth++] = extent(value, &table);
    }
    if (depth == 1) result = stack[0];
    return depth == 1;
}

#endif

} // namespace tapegraph::io::own_operators
