#pragma once

#include <operations/attributes.hpp>

#include <tapegraph/eager/transforms.hpp>
#include <tapegraph/graph/transforms.hpp>
#include <tapegraph/ir/gradient.hpp>
#include <tapegraph/ops/ops.hpp>
#include <tapegraph/ops/vmap/vmap.hpp>

#include <array>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

/// The table of operations, of which the table tests and random programs are made. An operation says once how it is called
/// (one generic lambda for every mode and element type), what it should give, how it is written in C++ and which operands and
/// attributes suit it; its rows are the attributes at which the table tests look closely.

namespace tapegraph::testing {

/// Where a random program's operands must lie for the operation to be smooth and to stay far from overflow.
struct domain {
    double low = -1e3, high = 1e3;
};
/// Where a row's operands are drawn from.
struct interval {
    double low = -2, high = 2;
};

inline constexpr double inf = INFINITY, nan = NAN;
inline constexpr interval positive{0.3, 3}, moderate{-2, 2};

using shape_list = std::vector<std::vector<extents>>; ///< each a list of one shape per operand

/// An operation at certain attributes, as the table tests see it.
struct row {
    std::string name{}; ///< by default the operation's source, or its name
    attributes with{};
    shape_list shapes{};
    std::vector<interval> domains{}; ///< one per operand; those left out are moderate
    /// Error allowed, in units of the type's epsilon times the larger of |expected| and `floor`.
    double ulps = 4;
    double floor = 0;
    int derivatives = 2;       ///< how many are checked
    bool forward_twice = true; ///< whether the tangent of a tangent exists
    int watched = -1;          ///< operands differentiated, from the first; -1: all real ones
    bool elementwise = false;
    double away = 0;                            ///< operands keep this far from zero (kinks, poles)
    bool apart = false;                         ///< operands lie on grids that never meet (kinks where they are equal)
    bool whole = false;                         ///< operands are integers
    std::vector<std::vector<double>> awkward{}; ///< tuples of operands whose values are checked, not their derivatives
    std::string why{};                          ///< the reason for the tolerance, where it is not the default one

    // What rows_of adds of the operation. Operands are numbers: indices are cast, and what is above zero is true.
    tensor_function<double> run{};
    tensor_function<float> run_float{}; ///< empty: double only
    std::function<array(const std::vector<array>&)> expected{};

    std::size_t sources() const { return watched < 0 ? domains.size() : static_cast<std::size_t>(watched); }
};

struct operation {
    std::string name;
    std::vector<dtype> types;    ///< of the operands: f64, boolean, i32, i64
    std::vector<domain> domains; ///< one per operand
    any_tensor (*eager)(const any_tensor* x, const attributes& with) = nullptr;
    /// In float, where operands are `floating`.
    any_tensor (*eager_float)(const any_tensor* x, const attributes& with) = nullptr;
    graph_node (*graph)(const graph_node* x, const attributes& with) = nullptr; ///< of any element types
    /// Under vmap: bit k of `own` says that operand k is a batch, with the examples along axis 0, as the result is. Which sets
    /// of operands may be batches, all of them among others, says `mapped_sets`; none where vmap does not go.
    any_tensor (*mapped)(std::uint32_t own, const any_tensor* x, const attributes& with) = nullptr;
    std::vector<std::uint32_t> mapped_sets{};
    /// The call in C++, given the operands' names.
    std::function<std::string(const std::vector<std::string>& x, const attributes& with)> source{};
    /// Draws attributes for operands of these extents; false: not for these operands.
    std::function<bool(choices& random, const std::vector<extents>& x, attributes& with)> draw{};
    /// Extents for operand k >= 1, given those before it; false: none fit. Unset: whatever broadcasts.
    std::function<bool(choices& random, std::size_t k, const std::vector<extents>& before, extents& dims)> partner{};
    /// Indices must lie below this.
    std::function<std::int64_t(const std::vector<extents>& x, const attributes& with)> index_limit{};
    /// Whether operands of these values will do, where domains do not say enough; unset: they will.
    std::function<bool(const std::vector<array>& x, const attributes& with)> accepts{};
    /// The value by plain loops in long double; unset: programs do not check it by itself, and there are no rows.
    std::function<array(const std::vector<array>& x, const attributes& with)> reference{};
    bool formula = false;       ///< elementwise: may be an inner part of a larger formula
    bool takes_formula = false; ///< operands may be inner parts
    bool rounds = false;        ///< derivatives pass in float
    bool smooth = true;         ///< false: the derivative is not that of the value by definition (stop_gradient)
    bool splits_ties = false;   ///< equal elements each receive the derivative: no finite differences then
    std::vector<dtype> graph_types{dtype::f64, dtype::f32, dtype::f16,
                                   dtype::bf16}; ///< of which `graph` takes operands
    double weight = 1;                           ///< how often random programs have it, relative to others; 0: never
    std::vector<row> rows{};
};

/// An operand that is double and, for the rows, float.
struct floating {};
template <class T, class Real = double>
using element_of = std::conditional_t<std::is_same_v<T, floating>, Real, T>;

/// The elements as plain numbers.
array plain_values(const any_tensor& x);
/// The rows of operations, ready to be run.
std::vector<row> rows_of(const std::vector<operation>& operations);

namespace table_detail {
template <class F, class... T, std::size_t... I>
any_tensor call_eager(const any_tensor* x, const attributes& with, std::index_sequence<I...>) {
    return tapegraph::eval(F{}(tensor<T>(x[I])..., with));
}
template <class F, std::size_t... I>
graph_node call_graph(const graph_node* x, const attributes& with, std::index_sequence<I...>) {
    return tapegraph::eval(F{}(x[I]..., with));
}
struct examples {}; // tells these batches from those of vmaps inside operations
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
/// Two operands: every set of them. More: all, the first, the others.
template <std::size_t Operands, bool Together>
inline constexpr auto mapped_sets = [] {
    constexpr std::uint32_t all = (1u << Operands) - 1;
    if constexpr (Operands == 1 || Together)
        return std::array<std::uint32_t, 1>{all};
    else
        return std::array<std::uint32_t, 3>{all, 1, all - 1};
}();
} // namespace table_detail

/// A lambda that no vmap can run: an operation in it has no batching rule.
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
/// One that random programs do not have.
template <class F>
struct not_drawn : F {
    static constexpr bool alone = true, by_rows = true;
    explicit not_drawn(F) {}
    not_drawn() = default;
};

/// An operation of a lambda `f(operands..., attributes)` without captures; T are the operands' element types, `floating` among
/// them.
template <class... T, class F>
operation make_operation(std::string name, F, std::vector<row> rows = {}) {
    operation made;
    made.name = std::move(name);
    made.types = {dtype_of<element_of<T>>...};
    made.domains.resize(sizeof...(T));
    made.rows = std::move(rows);
    made.eager = [](const any_tensor* x, const attributes& with) {
        return table_detail::call_eager<F, element_of<T>...>(x, with, std::index_sequence_for<T...>{});
    };
    if constexpr ((std::is_same_v<T, floating> || ...))
        made.eager_float = [](const any_tensor* x, const attributes& with) {
            return table_detail::call_eager<F, element_of<T, float>...>(x, with, std::index_sequence_for<T...>{});
        };
    made.graph = [](const graph_node* x, const attributes& with) {
        return table_detail::call_graph<F>(x, with, std::index_sequence_for<T...>{});
    };
    if constexpr (requires { F::by_rows; }) made.weight = 0;
    if constexpr (!requires { F::alone; }) {
        constexpr bool together = requires { F::together; };
        constexpr auto& sets = table_detail::mapped_sets<sizeof...(T), together>;
        made.mapped_sets.assign(sets.begin(), sets.end());
        made.mapped = [](std::uint32_t own, const any_tensor* x, const attributes& with) {
            any_tensor result;
            [&]<std::size_t... S>(std::index_sequence<S...>) {
                ((own == sets[S] ? void(result = table_detail::call_mapped<sets[S], F, element_of<T>...>(
                                            x, with, std::index_sequence_for<T...>{}))
                                 : void()),
                 ...);
            }
            (std::make_index_sequence<sets.size()>{});
            return result;
        };
    }
    return made;
}

/// The operations, by file: X(file, what it has, whether random programs draw them, too).
#define TG_OPERATION_FILES(X)                                                                                          \
    X(arithmetic, "arithmetic", true)                                                                                  \
    X(function, "elementary functions", true)                                                                          \
    X(elementwise, "further elementwise functions", true)                                                              \
    X(activation, "activations", true)                                                                                 \
    X(selection, "selection, comparison, logic", true)                                                                 \
    X(reduction, "reductions", true)                                                                                   \
    X(contraction, "contractions", true)                                                                               \
    X(convolution, "convolutions", true)                                                                               \
    X(einsum, "einsum, tensordot, dot", true)                                                                          \
    X(pooling, "pooling", true)                                                                                        \
    X(transposed, "transposed, depthwise, separable convolutions", true)                                               \
    X(movement, "movement", true)                                                                                      \
    X(slicing, "slices, parts and concatenation", true)                                                                \
    X(padding, "padding, tiles, masks by position", true)                                                              \
    X(indexing, "indices", true)                                                                                       \
    X(edges, "sums over edges", true)                                                                                  \
    X(ordering, "order", true)                                                                                         \
    X(recurrent, "recurrent layers", false)                                                                            \
    X(gru, "gru and simple_rnn", false)                                                                                \
    X(normalization, "normalization", false)                                                                           \
    X(attention, "attention", false)
#define TG_OPERATIONS_OF(file, text, drawn) std::vector<operation> file##_operations();
TG_OPERATION_FILES(TG_OPERATIONS_OF)
#undef TG_OPERATIONS_OF
/// Without operands, for random programs alone.
std::vector<operation> constant_operations();

} // namespace tapegraph::testing
