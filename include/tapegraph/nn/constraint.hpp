#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/model/eager_scope.hpp>
#include <tapegraph/ops/reduction/norm.hpp>

/// Constraints of weights, as `{.kernel_constraint = tg::constraints::max_norm{2}}`: every update
/// is followed by a projection. Not part of tapegraph.hpp: programs without them do not compile
/// them.

namespace tapegraph {

/// Formulas and defaults are those of keras.constraints. Norms are taken along the axes: along axis
/// 0 of a dense kernel over the weights of one unit, along {0, 1, 2} of a conv2d kernel over those
/// of one filter.
namespace constraints {
namespace detail {
constexpr std::int64_t along(const axes& a) {
    std::int64_t bits = a.all ? std::int64_t{1} << 16 : 0; // no axes: refused
    for (int i = 0; i < a.count; ++i)
        bits |= std::int64_t{1} << (a.index[i] >= -8 && a.index[i] < 8 ? a.index[i] + 8 : 16);
    return bits;
}
any_tensor project(const constraint& c, const any_tensor& w);
} // namespace detail
/// w min(|w|, max_value) / (|w| + 1e-7)
struct max_norm {
    double max_value = 2;
    axes axis = 0;
    constexpr operator constraint() const {
        return {constraint_kind::max_norm, 0, max_value, 1, detail::along(axis), &detail::project};
    }
};
/// max(w, 0), NaN becomes 0
struct non_negative {
    constexpr operator constraint() const { return {constraint_kind::non_negative, 0, 0, 0, 0, &detail::project}; }
};
/// w / (|w| + 1e-7)
struct unit_norm {
    axes axis = 0;
    constexpr operator constraint() const {
        return {constraint_kind::unit_norm, 1, 1, 1, detail::along(axis), &detail::project};
    }
};
/// w (rate clip(|w|, min_value, max_value) + (1 - rate) |w|) / (|w| + 1e-7)
struct min_max_norm {
    double min_value = 0, max_value = 1;
    double rate = 1;
    axes axis = 0;
    constexpr operator constraint() const {
        return {constraint_kind::min_max_norm, min_value, max_value, rate, detail::along(axis), &detail::project};
    }
};
} // namespace constraints

/// Projects the weight onto the constraint, in either mode; returns w itself where there is none.
template <handle H>
constexpr H constrained(const constraint& c, const H& w, std::source_location where = std::source_location::current()) {
    if (c.kind == constraint_kind::none) return w;
    if (c.kind == constraint_kind::non_negative) return eval(tapegraph::where(w >= 0, w, 0), where);
    const H norm = detail::euclidean(w, c.mask(shape_of(w).rank()), true, where);
    switch (c.kind) {
    case constraint_kind::unit_norm: return eval(w / (norm + 1e-7), where);
    case constraint_kind::max_norm: return eval(w * (minimum(norm, c.b) / (norm + 1e-7)), where);
    default: {
        const H wanted = eval(c.c * clip(norm, c.a, c.b) + (1 - c.c) * norm, where);
        return eval(w * (wanted / (norm + 1e-7)), where);
    }
    }
}

namespace detail {
template <class T>
struct projections {
    static constexpr auto project = &constraints::detail::project;
    static constexpr void apply(ir::model_trace& t) {
        for (int i = 0; i < t.constraints.size(); ++i) {
            const ir::weight_rule r = t.constraints[i];
            for (ir::assignment_entry& update : t.assignments) {
                if (update.variable != r.variable) continue;
                t.scope = t.variables[r.variable].scope;
                t.compute_where(update.node);
                update.node = constrained({static_cast<constraint_kind>(r.kind), r.a, r.b, r.c, r.along},
                                          graph_node(&t, update.node))
                                  .id();
            }
        }
        t.compute_anywhere();
    }
    template <class V>
    static void apply(eager_context& context) {
        for (const auto& u : context.used) {
            if (!u.constraint || u.target->frozen()) continue;
            for (auto& p : context.updates)
                if (p.target == u.target && p.write_rows == nullptr)
                    p.value = constrained(u.constraint, tensor<V>(p.value));
        }
    }
};
} // namespace detail

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION any_tensor constraints::detail::project(const constraint& c, const any_tensor& w) {
    if (w.type() == dtype::f64) return constrained(c, tensor<double>(w));
    return constrained(c, tensor<float>(w));
}

#endif

} // namespace tapegraph
