#pragma once

#include <operations/naive.hpp>
#include <operations/operation.hpp>

/// Elementwise operations. They stand outside the library's namespace, so that a plain number finds the naive function and a
/// handle, by its own namespace, the library's.

namespace tapegraph::testing {

/// Scalar, one, primes, none, more than a tile of 512 elements, more than the 32768 from which threads share the work.
shape_list unary_shapes();
/// Each operand full, broadcast along outer, inner and both kinds of axes, alone and together.
shape_list binary_shapes();

/// `text` with the words x, y, z and k replaced by operands and the attribute real[0].
std::string formula_source(const std::string& text, const std::vector<std::string>& x, const attributes& with);

/// Whether no operand occurs twice. A formula is a tree: an inner part that it names twice is spelled out twice, which
/// an operation's lambda, given one handle, cannot do.
bool names_operands_once(const std::string& text);

/// What formulas have in common, whatever their types; `reference` may be empty.
operation formula_of(operation made, const char* text, std::vector<domain> domains,
                     std::function<real(const real*, real k)> reference);

/// An elementwise operation; TG_FORMULA spells the three arguments after the name. Without naive functions for it there is no
/// reference, and the rest is checked. Rows without shapes have those of all operations of so many operands.
template <class... T, class F, class R>
operation formula(std::string name, F f, R, const char* text, std::vector<domain> domains = {},
                  std::vector<row> rows = {}) {
    std::function<real(const real*, real)> reference;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        if constexpr (std::is_invocable_v<R, std::conditional_t<(I < 8), real, T>..., real>)
            reference = [](const real* v, real k) { return static_cast<real>(R{}(v[I]..., k)); };
    }
    (std::index_sequence_for<T...>{});
    return formula_of(make_operation<T...>(std::move(name), f, std::move(rows)), text, std::move(domains), reference);
}
/// One that programs do not have.
template <class... T, class F, class R>
operation formula_of_rows(std::string name, F f, R r, const char* text, std::vector<row> rows) {
    return formula<T...>(std::move(name), not_drawn{f}, r, text, {}, std::move(rows));
}

// The lambda for handles, the lambda for plain numbers (of functions from `naive`), and the text.
#define TG_FORMULA(e, ...)                                                                                             \
    [](__VA_ARGS__, [[maybe_unused]] const tapegraph::testing::attributes& with) {                                     \
        [[maybe_unused]] const double k = with.real.empty() ? 0 : with.real[0];                                        \
        return e;                                                                                                      \
    },                                                                                                                 \
        [](__VA_ARGS__, [[maybe_unused]] const auto& k) requires requires {                                            \
        e;                                                                                                             \
    }                                                                                                                  \
    { return e; }                                                                                                      \
    , #e
#define TG_FORMULA_1(...) TG_FORMULA((__VA_ARGS__), const auto& x)
#define TG_FORMULA_2(...) TG_FORMULA((__VA_ARGS__), const auto& x, const auto& y)
#define TG_FORMULA_3(...) TG_FORMULA((__VA_ARGS__), const auto& x, const auto& y, const auto& z)

} // namespace tapegraph::testing

namespace formula_rows {

using namespace naive;
using namespace tapegraph::testing;
using naive::abs, tapegraph::testing::nan; // not the C functions
using element = double;        // generated sources name theirs
using values = std::vector<std::vector<double>>;

} // namespace formula_rows
