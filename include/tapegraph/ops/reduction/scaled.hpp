#pragma once

#include <tapegraph/core/math/bits.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

/// Sums of squares that neither overflow nor underflow: for float and 16-bit elements in double,
/// which has enough range for the squares of all of them; for doubles after an exact multiplication
/// by a power of two. (Lengths of float and double, ops/reduction/length.hpp, need neither as a rule.)

namespace tapegraph::detail {

/// The power of two that scales a magnitude to [1, 2), or as near as powers of two with finite
/// inverses allow. Constant for derivatives.
struct inverse_scale_op : map_op<1> {
    static constexpr std::string_view name = "inverse_scale";
    template <class V>
    TG_HD static constexpr V value(V x) {
        using traits = math::detail::traits<V>;
        constexpr auto bias = traits::bias;
        constexpr V most = math::detail::from_exponent<V>(2 * bias - 1);
        const auto exponent =
            math::detail::to_bits(math::detail::select(x > most, most, x)) & math::detail::to_bits(traits::infinity);
        return math::detail::from_bits<V>((2 * bias << traits::mantissa) - exponent);
    }
};

/// A maximum of formulas that is constant for derivatives; -infinity for no elements.
struct largest_op : reduce_op {
    static constexpr std::string_view name = "largest";
    static constexpr reduction combines = reduction::maximum;
    static constexpr auto vjp(auto dy, auto, auto) { return 0 * dy; }
};
struct smallest_op : reduce_op {
    static constexpr std::string_view name = "smallest";
    static constexpr reduction combines = reduction::minimum;
    static constexpr auto vjp(auto dy, auto, auto) { return 0 * dy; }
};
template <tensor_like A>
constexpr auto largest_magnitude(const A& x, std::int64_t mask, std::source_location where) {
    return reduce<largest_op>({mask, reduce_op::empty_allowed | 1}, where, abs(x));
}
template <tensor_like A>
constexpr auto smallest_magnitude(const A& x, std::int64_t mask, std::source_location where) {
    return reduce<smallest_op>({mask, reduce_op::empty_allowed | 1}, where, abs(x));
}
/// The factor of x before it is squared; the reduced axes stay.
template <tensor_like A>
constexpr auto inverse_scale(const A& x, std::int64_t mask, std::source_location where) {
    return eval(apply<inverse_scale_op>(largest_magnitude(x, mask, where)), where);
}

/// Which elements in_double widens: float and those of 16 bits, or only the latter.
enum class widened_types { floats, storage };
constexpr bool widens(widened_types which, dtype type) {
    return is_storage_type(type) || (type == dtype::f32 && which == widened_types::floats);
}

/// f(x, whether x was widened): for elements that are widened f(cast<double>(x)), a formula,
/// rounded once.
template <widened_types Which = widened_types::floats, tensor_like A, class F>
    requires one_handle<mode_of_t<A>>
constexpr auto in_double(const A& x, std::source_location where, const F& f) {
    using node = typename mode_of_t<A>::node;
    const dtype type = type_of(x);
    if (!widens(Which, type)) return node(f(x, std::false_type{}));
    const node wide(f(cast<double>(x), std::true_type{}));
    if (type == dtype::f32) return node(eval(cast<float>(wide), where));
    return rounded_to_storage(wide, type, where);
}
template <widened_types Which = widened_types::floats, tensor_like A, class F>
    requires(!one_handle<mode_of_t<A>>)
constexpr auto in_double(const A& x, std::source_location where, const F& f) {
    constexpr dtype type = static_type<A>::value;
    if constexpr (widens(Which, type))
        return eval(cast<element_t<type>>(f(cast<double>(x), std::true_type{})), where);
    else
        return f(x, std::false_type{});
}

} // namespace tapegraph::detail
