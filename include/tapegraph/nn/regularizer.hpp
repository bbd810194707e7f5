#pragma once

#include <tapegraph/model/eager_scope.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/product/matmul.hpp>
#include <tapegraph/ops/reduction/norm.hpp>

/// Penalties on weights, as `{.kernel_regularizer = tg::regularizers::l2{1e-4}}`. They are added to
/// a model's loss, in training and in evaluation, variable by variable in the order in which the
/// model requests them. Not part of tapegraph.hpp: programs without them do not compile them.

namespace tapegraph {

/// Formulas and defaults are those of keras.regularizers.
namespace regularizers {
/// factor sum |w|
struct l1 {
    double factor = 0.01;
    constexpr operator regularizer() const { return {regularizer_kind::l1_l2, factor, 0}; }
};
/// factor sum w^2
struct l2 {
    double factor = 0.01;
    constexpr operator regularizer() const { return {regularizer_kind::l1_l2, 0, factor}; }
};
/// l1 sum |w| + l2 sum w^2
struct l1_l2 {
    double l1 = 0, l2 = 0;
    constexpr operator regularizer() const { return {regularizer_kind::l1_l2, l1, l2}; }
};
/// factor times the mean |cosine| of two different rows of a matrix, or of two columns; 0 if they
/// are orthogonal.
struct orthogonal {
    double factor = 0.01;
    bool columns = false; ///< Keras's mode="columns"
    constexpr operator regularizer() const {
        return {columns ? regularizer_kind::orthogonal_columns : regularizer_kind::orthogonal_rows, factor, 0};
    }
};
} // namespace regularizers

namespace detail {
/// factor 0.5 sum over i != j of |r_i . r_j| / (n (n - 1) / 2), with rows r scaled to length 1 (0
/// stays 0); 0 for a single row.
template <handle H>
constexpr H orthogonal_penalty(double factor, bool columns, const H& w, std::source_location where) {
    const H rows = columns ? H(transpose(w, {}, where)) : w;
    const shape dims = shape_of(rows);
    const H unit = unit_vectors(rows, 2, 1e-12, where);
    const H products = matmul(unit, unit, {.transpose_b = true}, where);
    const std::int64_t n = dims[0].value, pairs = n * (n - 1);
    const auto diagonal = eval(diagonal_number(rows, dims[0], dims[0], where) == 0, where);
    const H total = sum(tapegraph::where(diagonal, 0, abs(products)), {}, {}, where);
    return eval(total * (pairs > 0 ? factor / static_cast<double>(pairs) : 0), where);
}
} // namespace detail

/// The penalty on a weight, a scalar, in either mode, to be added to a custom loss. 0 without a
/// regularizer.
template <handle H>
constexpr H regularization(const regularizer& r, const H& w,
                           std::source_location where = std::source_location::current()) {
    switch (r.kind) {
    case regularizer_kind::l1_l2:
        if (r.b == 0) return eval(r.a * sum(abs(w), {}, {}, where), where);
        if (r.a == 0) return eval(r.b * sum(square(w), {}, {}, where), where);
        return eval(sum(r.a * abs(w) + r.b * square(w), {}, {}, where), where);
    case regularizer_kind::orthogonal_rows:
    case regularizer_kind::orthogonal_columns:
        return detail::orthogonal_penalty(r.a, r.kind == regularizer_kind::orthogonal_columns, w, where);
    default: return eval(sum(zeros_like(w), {}, {}, where), where);
    }
}

namespace detail {
template <class T>
struct penalties {
    static constexpr graph_node of(ir::model_trace& t, const ir::weight_rule& r) {
        t.scope = t.variables[r.variable].scope;
        const graph_node w(&t, t.variables[r.variable].node);
        t.compute_where(w.id());
        const graph_node penalty = regularization({static_cast<regularizer_kind>(r.kind), r.a, r.b}, w);
        t.compute_anywhere();
        return penalty;
    }
    template <class V>
    static tensor<V> of(const regularizer& r, const tensor<V>& w) {
        return regularization(r, w);
    }
    static constexpr void add(ir::model_trace& t) {
        for (int i = 0; i < t.regularizers.size(); ++i) {
            const ir::weight_rule r = t.regularizers[i];
            t.added_losses.push_back(of(t, r).id());
        }
    }
    /// A loss and the penalties on some variables.
    static constexpr int added_to(ir::model_trace& t, int loss, const list<int>& wanted) {
        graph_node total(&t, loss);
        for (int i = 0; i < t.regularizers.size(); ++i) {
            const ir::weight_rule r = t.regularizers[i];
            if (wanted[r.variable] != 0) total = eval(total + of(t, r));
        }
        return total.id();
    }
    template <class V, class Wanted>
    static tensor<V> added_to(eager_context& context, tensor<V> loss, const Wanted& wanted) {
        for (const auto& u : context.used)
            if (u.regularizer && wanted(*u.target))
                loss = eval(loss + regularization(u.regularizer, tensor<V>(u.handle)));
        return loss;
    }
    /// Sums over the variables that an evaluation has requested.
    template <class V>
    static void add(eager_context& context) {
        for (const auto& u : context.used) {
            if (!u.regularizer) continue;
            const std::string& path = u.target->path();
            const std::size_t name = path.rfind('/');
            numeric_check::enter(name == path.npos ? std::string() : path.substr(0, name));
            context.losses.push_back(regularization(u.regularizer, tensor<V>(u.handle)));
        }
    }
};
} // namespace detail

} // namespace tapegraph
