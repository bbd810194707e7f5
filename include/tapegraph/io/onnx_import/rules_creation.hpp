#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>

#include <cmath>

/// Operators that create tensors from numbers and positions.

namespace tapegraph::io::onnx_import {

namespace rules {

inline void constant_rule(call& c) {
    if (const attribute* a = c.find("value")) {
        if (a->t == nullptr) refuse("a value of an unknown element type");
        return c.give_known(0, *a->t);
    }
    if (const attribute* a = c.find("value_int")) return c.give_known(0, array::integers({a->i}, true));
    if (c.find("value_ints") != nullptr) return c.give_known(0, array::integers(c.integers("value_ints")));
    const bool one = c.find("value_float") != nullptr;
    const std::vector<float> items = one ? std::vector<float>{c.find("value_float")->f} : c.numbers("value_floats");
    if (!one && c.find("value_floats") == nullptr) refuse("without a tensor");
    array a(dtype::f32, one ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{std::int64_t(items.size())});
    if (!items.empty()) std::memcpy(a.data(), items.data(), items.size() * sizeof(float));
    c.give_known(0, std::move(a));
}
inline void constant_of_shape(call& c) {
    array one(dtype::f32, {});
    if (const attribute* a = c.find("value")) {
        if (a->t == nullptr || a->t->size() != 1) refuse("a value that is not a number");
        one = *a->t;
        one.set_dims({});
    }
    const shape target = shape_of_items(c, c.extents(0, "extents"));
    if (target.rank() == 0) return c.give_known(0, std::move(one));
    c.give(0, eval(broadcast_to(c.on.constant(one), target)), one.type());
}
inline void range_rule(call& c) {
    const dtype type = c.type(0);
    const auto item = [&](int i) { return c.extents(i, "ends").at(0); };
    if (is_integer(type)) {
        extent_table* const table = &c.on.trace().extents;
        const extent begin(item(0), table), end(item(1), table);
        const std::int64_t step = c.integers(2, "steps").at(0);
        if (step == 0 || !begin.known()) refuse_symbols("from a place that is computed");
        constexpr std::int64_t exact = std::int64_t{1} << 53; // arange counts in double
        for (const std::int64_t n : {begin.value, end.known() ? end.value : 0, step})
            if (n > exact || n < -exact) refuse("of " + std::to_string(n) + ", beyond 2^53");
        const extent span = step > 0 ? end - begin : begin - end, stride = step > 0 ? step : -step;
        extent count = (span + (stride - 1)) / stride.value;
        if (count.known() && count.value < 0) count = 0;
        const auto b = static_cast<double>(begin.value), s = static_cast<double>(step);
        return c.give(0,
                      type == dtype::i64 ? arange<std::int64_t>(c.on.example(), count, b, s)
                                         : arange<std::int32_t>(c.on.example(), count, b, s),
                      type);
    }
    const double begin = c.scalar(0, "a start"), end = c.scalar(1, "a limit"), step = c.scalar(2, "a step");
    if (step == 0) refuse("steps of 0");
    const auto count = static_cast<std::int64_t>(std::max(0.0, std::ceil((end - begin) / step)));
    const node x = arange<double>(c.on.example(), count, begin, step);
    c.give(0, converted(x, dtype::f64, type), type);
}
inline void eye_like(call& c) {
    const shape s = c.dims(0);
    if (s.rank() != 2) refuse("of rank " + std::to_string(s.rank()));
    const std::int64_t number = c.integer("dtype", onnx::type_number(c.type(0)));
    const auto type = element_type(static_cast<int>(number));
    if (!type) refuse("dtype = " + element_type_name(static_cast<int>(number)));
    c.give(0, converted(eye<double>(c.on.example(), s[0], s[1], c.integer("k", 0)), dtype::f64, *type), *type);
}
inline void trilu(call& c) {
    const bool upper = c.integer("upper", 1) != 0;
    const std::int64_t k = c.has(1) ? c.integers(1, "a diagonal").at(0) : 0;
    const node x = c.plain(0);
    const shape s = x.shape();
    const auto number =
        tapegraph::detail::diagonal_number(c.on.example(), tapegraph::detail::last_extent(s, 2),
                                           tapegraph::detail::last_extent(s, 1), std::source_location::current());
    const auto offset = static_cast<double>(std::clamp<std::int64_t>(k, -1000000000, 1000000000));
    const node kept = upper ? eval(number >= offset) : eval(number <= offset);
    const node nothing = c.type(0) == dtype::boolean ? eval(logical_and(x, logical_not(x))) : eval(zeros_like(x));
    c.give(0, eval(where(kept, x, nothing)), c.type(0));
}
inline std::span<const operator_rule> creations() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"Constant", &constant_rule},
        {"ConstantOfShape", &constant_of_shape},
        {"Range", &range_rule},
        {"EyeLike", &eye_like},
        {"Trilu", &trilu},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
