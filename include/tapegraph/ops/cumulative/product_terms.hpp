#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>
#include <tapegraph/ops/refusal.hpp>

#include <tuple>

/// Derivatives of prod and cumulative_product up to the fourth order. They are exact for zeros, and
/// correct where a product of some elements overflows or underflows while the result does not
/// (ops/cumulative/product_line.hpp).

namespace tapegraph::detail {

/// The kind of product: of all elements along axes (prod), or running along one axis.
struct product_attributes {
    std::int64_t axes = 0; ///< bit i: axis i is multiplied
    std::int64_t total = 0, reverse = 0, exclusive = 0;
};

struct product_order {
    static constexpr const char* text(std::int64_t) {
        return "prod, cumulative_product: derivatives end with the fourth";
    }
};
inline constexpr int most_product_terms = 3;

struct product_operation {
    static constexpr operation_kind kind = operation_kind::kernel;
    using attributes = product_attributes;
};

template <int M>
struct product_terms_op;

/// Op over some operands, v_1, ..., v_M (the K-th of them, but `instead` where K is Without) and,
/// with `More`, one after them.
template <class Op, int Without, bool More, std::size_t... K>
constexpr auto product_derivative(const product_attributes& a, const auto& instead, const auto& v,
                                  std::index_sequence<K...>, const auto&... first) {
    const auto here = std::source_location::current();
    const auto at = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) -> const auto& {
        if constexpr (static_cast<int>(I) == Without)
            return instead;
        else
            return std::get<I>(v);
    };
    if constexpr (More)
        return invoke<Op>(a, nullptr, here, first..., at(std::integral_constant<std::size_t, K>{})..., instead);
    else
        return invoke<Op>(a, nullptr, here, first..., at(std::integral_constant<std::size_t, K>{})...);
}
template <int M>
using product_places = std::make_index_sequence<static_cast<std::size_t>(M)>;

/// The adjoint of x, from dy, whose reduced axes stay, and x, v_1, ..., v_M of one shape. It is
/// linear in dy and in each v; its derivative by x is of the next order, along the adjoint.
template <int M>
struct product_gradient_op : product_operation {
    static constexpr std::string_view name = "product_gradient";
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = M + 2;
    static constexpr void infer(const product_attributes&, inference& io) {
        io.type = io.in[1].type;
        io.result = io.in[1].dims;
    }
    template <int I>
    static constexpr auto vjp(const product_attributes& a, auto u, auto dy, auto x, const auto&... v_and_result) {
        const auto v = std::tie(v_and_result...);
        if constexpr (I >= 2)
            return product_derivative<product_gradient_op<M>, I - 2, false>(a, u, v, product_places<M>{}, dy, x);
        else if constexpr (M == most_product_terms)
            return refuse<product_order>(0, std::source_location::current(), u);
        else if constexpr (I == 1)
            return product_derivative<product_gradient_op<M + 1>, -1, true>(a, u, v, product_places<M>{}, dy, x);
        else
            return product_derivative<product_terms_op<M + 1>, -1, true>(a, u, v, product_places<M>{}, x);
    }
    static double flops(const kernel_call& c) { return (4 << M) * static_cast<double>(c.out[0].elements()); }
};

/// Computes from x, v_1, ..., v_M the adjoint of dy in a product_gradient_op<M - 1>.
template <int M>
struct product_terms_op : product_operation {
    static constexpr std::string_view name = "product_terms";
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = M + 1;
    static constexpr void infer(const product_attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[0].dims;
        for (int i = 0; i < io.result.rank(); ++i)
            if (a.total != 0 && (a.axes >> i & 1) != 0) io.result.set(i, 1);
    }
    template <int I>
    static constexpr auto vjp(const product_attributes& a, auto u, auto x, const auto&... v_and_result) {
        const auto v = std::tie(v_and_result...);
        if constexpr (I == 0)
            return product_derivative<product_gradient_op<M>, -1, false>(a, u, v, product_places<M>{}, u, x);
        else // the last v takes the place of the I-th, because their order does not matter
            return product_derivative<product_gradient_op<M - 1>, I - 1, false>(a, last_of(v), v,
                                                                                product_places<M - 1>{}, u, x);
    }
    static double flops(const kernel_call& c) { return (2 << M) * static_cast<double>(c.in[0].elements()); }

private:
    static constexpr const auto& last_of(const auto& v) { return std::get<static_cast<std::size_t>(M - 1)>(v); }
};

} // namespace tapegraph::detail
