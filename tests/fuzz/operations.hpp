#pragma once

#include <fuzz/program.hpp>

#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/eager/transforms.hpp>
#include <tapegraph/graph/transforms.hpp>
#include <tapegraph/ir/gradient.hpp>
#include <tapegraph/ops/ops.hpp>
#include <tapegraph/ops/vmap/vmap.hpp>

#include <array>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

/// The table of operations that random programs are made of. A row says how an operation is called in both modes (one
/// generic lambda), where its operands must lie, how attributes are drawn, how it is written in C++, and what it should
/// give. Rows are in *_operations.cpp; adding one is a line.

namespace tapegraph::fuzz {

using testing::array;
using testing::real;

/// Where an operand's values must lie for the operation to be smooth and to stay far from overflow.
struct domain {
    double low = -1e3, high = 1e3;
};

struct operation {
    std::string name;
    std::vector<dtype> types;    ///< of the operands: f64, boolean, i32
    std::vector<domain> domains; ///< one per operand
    any_tensor (*eager)(const any_tensor* x, const attributes& with) = nullptr;
    graph_node (*graph)(const graph_node* x, const attributes& with) = nullptr;
    /// Under vmap: bit k of `own` says that operand k is a batch, with the examples along axis 0, as the result is. Which sets
    /// of operands may be batches, all of them among others, says `mapped_sets`; none where vmap does not go.
    any_tensor (*mapped)(std::uint32_t own, const any_tensor* x, const attributes& with) = nullptr;
    std::vector<std::uint32_t> mapped_sets{};
    /// The call in C++, given the operands' names.
    std::function<std::string(const std::vector<std::string>& x, const attributes& with)> source;
    /// Draws attributes for operands of these extents; false: not for these operands.
    std::function<bool(choices& random, const std::vector<extents>& x, attributes& with)> draw;
    /// Extents for operand k >= 1, given those before it; false: none fit. Unset: whatever broadcasts.
    std::function<bool(choices& random, std::size_t k, const std::vector<extents>& before, extents& dims)> partner;
    /// Indices must lie below this.
    std::function<std::int64_t(const std::vector<extents>& x, const attributes& with)> index_limit;
    /// Whether operands of these values will do, where domains do not say enough; unset: they will.
    std::function<bool(const std::vector<array>& x, const attributes& with)> accepts;
    /// The value by plain loops in long double; unset: not checked by itself.
    std::function<array(const std::vector<array>& x, const attributes& with)> reference;
    bool formula = false;       ///< elementwise: may be an inner part of a larger formula
    bool takes_formula = false; ///< operands may be inner parts
    bool rounds = false;        ///< derivatives pass in float
    bool smooth = true;         ///< false: the derivative is not that of the value by definition (stop_gradient)
    bool splits_ties = false;   ///< equal elements each receive the derivative: no finite differences then
    double weight = 1;          ///< how often it is drawn, relative to others
};

const std::vector<operation>& all_operations();
/// A row that tests add to the table; it is drawn only if `weight` is positive. Replaces one of the same name.
void add_operation(const operation& row);
const operation& operation_named(const std::string& name);

/// The rows, by file.
std::vector<operation> formula_operations();
std::vector<operation> function_operations();
std::vector<operation> reduction_operations();
std::vector<operation> contraction_operations();
std::vector<operation> movement_operations();
std::vector<operation> repetition_operations();
std::vector<operation> index_operations();
std::vector<operation> window_operations();
std::vector<operation> constant_operations();

namespace detail {
template <class F, class... T, std::size_t... I>
any_tensor call_eager(const any_tensor* x, const attributes& with, std::index_sequence<I...>) {
    return tapegraph::eval(F{}(tensor<T>(x[I])..., with));
}
template <class F, std::size_t... I>
graph_node call_graph(const graph_node* x, const attributes& with, std::index_sequence<I...>) {
    return tapegraph::eval(F{}(x[I]..., with));
}
struct examples {}; // tells the fuzzer's batches from those of vmaps inside rows
template <bool Own, class T>
auto as_seen(const any_tensor& x) {
    if constexpr (Own)
        return batched<tensor<T>, examples>(tensor<T>(x));
    else
        return tensor<T>(x);
}
template <std::uint32_t Own, class F, class... T, std::size_t... I>
any_tensor call_mapped(const any_tensor* x, const attributes& with, std::index_sequence<I...>) {
    const std::tuple seen{as_seen<(Own >> I & 1) != 0, T>(x[I])...};
    const auto result = tapegraph::eval(F{}(std::get<I>(seen)..., with));
    const auto& like = tapegraph::detail::first_batched<examples>(std::get<I>(seen)...);
    return tapegraph::detail::raised<batched_mode<eager, examples>>(result, like, std::source_location::current())
        .whole();
}
/// Two operands: every set of them. Three: all, the first, the others.
template <std::size_t Operands, bool Together>
inline constexpr auto mapped_sets = [] {
    if constexpr (Operands == 1 || Together)
        return std::array<std::uint32_t, 1>{(1u << Operands) - 1};
    else if constexpr (Operands == 2)
        return std::array<std::uint32_t, 3>{3, 1, 2};
    else
        return std::array<std::uint32_t, 3>{7, 1, 6};
}();
} // namespace detail

/// A row's lambda that no vmap can run: an operation in it has no batching rule.
template <class F>
struct not_mapped : F {
    static constexpr bool alone = true;
    explicit not_mapped(F) {}
    not_mapped() = default;
};
/// One whose operands must have one type, so that under vmap all of them are batches.
template <class F>
struct mapped_together : F {
    static constexpr bool together = true;
    explicit mapped_together(F) {}
    mapped_together() = default;
};

/// A row of a lambda `f(operands..., attributes)` without captures; T are the operands' element types.
template <class... T, class F>
operation make_operation(std::string name, F) {
    operation row;
    row.name = std::move(name);
    row.types = {dtype_of<T>...};
    row.domains.resize(sizeof...(T));
    row.eager = [](const any_tensor* x, const attributes& with) {
        return detail::call_eager<F, T...>(x, with, std::index_sequence_for<T...>{});
    };
    row.graph = [](const graph_node* x, const attributes& with) {
        return detail::call_graph<F>(x, with, std::index_sequence_for<T...>{});
    };
    if constexpr (!requires { F::alone; }) {
        constexpr auto &sets = detail::mapped_sets < sizeof...(T), requires { F::together; }
        > ;
        row.mapped_sets.assign(sets.begin(), sets.end());
        row.mapped = [](std::uint32_t own, const any_tensor* x, const attributes& with) {
            any_tensor result;
            [&]<std::size_t... S>(std::index_sequence<S...>) {
                ((own == sets[S]
                      ? void(result = detail::call_mapped<sets[S], F, T...>(x, with, std::index_sequence_for<T...>{}))
                      : void()),
                 ...);
            }
            (std::make_index_sequence<sets.size()>{});
            return result;
        };
    }
    return row;
}

/// `text` with the words x, y, z and k replaced by operands and the attribute real[0].
std::string formula_source(const std::string& text, const std::vector<std::string>& x, const attributes& with);

/// Whether no operand occurs twice. A formula is a tree: an inner part that it names twice is spelled out twice, which
/// a row's lambda, given one handle, cannot do.
bool names_operands_once(const std::string& text);

/// An elementwise row; TG_FORMULA spells its three arguments. Without a naive function of the same name there is no
/// reference, and the rest is checked.
template <class... T, class F, class R>
operation formula(std::string name, F f, R, const char* text, std::vector<domain> domains = {}) {
    operation row = make_operation<T...>(std::move(name), f);
    for (std::size_t k = 0; k < domains.size(); ++k) row.domains[k] = domains[k];
    row.formula = true;
    row.takes_formula = names_operands_once(text);
    row.source = [text](const std::vector<std::string>& x, const attributes& with) {
        return formula_source(text, x, with);
    };
    // The number k: identities (0, 1, -1) often, for simplification to act on.
    if (row.source({"x", "y", "z"}, {{}, {0.125}}).find("0.125") != std::string::npos)
        row.draw = [](choices& random, const std::vector<extents>&, attributes& with) {
            with.real = {random.pick(std::vector<double>{1, -1, 2, 0.5, -0.75, 1.3, 0})};
            return true;
        };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        if constexpr (std::is_invocable_v<R, std::conditional_t<(I < 8), real, T>..., real>)
            row.reference = [](const std::vector<array>& x, const attributes& with) {
                const real k = with.real.empty() ? 0 : static_cast<real>(with.real[0]);
                return testing::map(x, [k](const real* v) { return static_cast<real>(R{}(v[I]..., k)); });
            };
    }
    (std::index_sequence_for<T...>{});
    return row;
}

// The lambda for handles, the lambda for plain numbers (of functions from `naive`), and the text.
#define TG_FORMULA(e, ...)                                                                                             \
    [](__VA_ARGS__, [[maybe_unused]] const tapegraph::fuzz::attributes& with) {                                        \
        [[maybe_unused]] const double k = with.real.empty() ? 0 : with.real[0];                                        \
        return e;                                                                                                      \
    },                                                                                                                 \
        [](__VA_ARGS__, [[maybe_unused]] const auto& k) requires requires {                                            \
        e;                                                                                                             \
    }                                                                                                                  \
    { return e; }                                                                                                      \
    , #e
#define TG_FORMULA_1(e) TG_FORMULA(e, const auto& x)
#define TG_FORMULA_2(...) TG_FORMULA((__VA_ARGS__), const auto& x, const auto& y)
#define TG_FORMULA_3(...) TG_FORMULA((__VA_ARGS__), const auto& x, const auto& y, const auto& z)

/// "{1, 2}"
std::string braces(const std::vector<std::int64_t>& values);

} // namespace tapegraph::fuzz

/// Elementary functions of plain numbers, for the references of formulas.
namespace naive {
using tapegraph::testing::real;

inline real tanh(real x) { return std::tanh(x); }
inline real sigmoid(real x) { return 1 / (1 + std::exp(-x)); }
inline real relu(real x) { return x > 0 ? x : 0; }
inline real softplus(real x) { return std::log1p(std::exp(x)); }
inline real erf(real x) { return std::erf(x); }
inline real exp(real x) { return std::exp(x); }
inline real expm1(real x) { return std::expm1(x); }
inline real log(real x) { return std::log(x); }
inline real log1p(real x) { return std::log1p(x); }
inline real square(real x) { return x * x; }
inline real sqrt(real x) { return std::sqrt(x); }
inline real rsqrt(real x) { return 1 / std::sqrt(x); }
inline real sin(real x) { return std::sin(x); }
inline real cos(real x) { return std::cos(x); }
inline real abs(real x) { return std::abs(x); }
inline real sign(real x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
inline real maximum(real x, real y) { return x > y ? x : y; }
inline real minimum(real x, real y) { return x < y ? x : y; }
inline real pow(real x, real y) { return std::pow(x, y); }
inline real where(real c, real x, real y) { return c != 0 ? x : y; }
inline real stop_gradient(real x) { return x; }
inline real logical_and(real x, real y) { return x != 0 && y != 0; }
inline real logical_or(real x, real y) { return x != 0 || y != 0; }
inline real logical_not(real x) { return x == 0; }
template <class T>
real cast(real x) {
    return static_cast<real>(static_cast<T>(x));
}
} // namespace naive
