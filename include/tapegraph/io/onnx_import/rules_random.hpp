#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>
#include <tapegraph/ops/random/random.hpp>

/// Random numbers. They are the library's own, and each prediction is a step of their stream: the standard names no
/// generator, so that an attribute `seed` says nothing that two runtimes share.

namespace tapegraph::io::onnx_import {

namespace rules {

/// The element type that an attribute dtype names.
inline dtype type_of_attribute(call& c, dtype otherwise) {
    const attribute* const a = c.find("dtype");
    if (a == nullptr) return otherwise;
    const auto type = element_type(static_cast<int>(a->i));
    if (!type) refuse("dtype = " + element_type_name(static_cast<int>(a->i)));
    return *type;
}
/// Numbers of a law with the attributes `first` and `second`. `like`: of the first operand's extents and type.
inline void draw_rule(call& c, bool normal, bool like) {
    c.ignore("seed");
    const double first = c.number(normal ? "mean" : "low", 0), second = c.number(normal ? "scale" : "high", 1);
    const dtype type = type_of_attribute(c, like ? c.type(0) : dtype::f32);
    if (!is_floating(type)) refuse(std::string("of ") + name_of(type));
    const shape s = like ? c.dims(0) : shape_of_items(c, c.integers("shape"));
    const node example = c.on.number(0, type);
    c.give(0, normal ? random::normal(example, s, {first, second}) : random::uniform(example, s, {first, second}),
           type);
}
inline void bernoulli_rule(call& c) {
    c.ignore("seed");
    const dtype type = type_of_attribute(c, c.type(0));
    const node p = in_float(c.plain(0), [](const node& x) { return x; });
    const node wide = p.type() == dtype::f64 ? p : converted(p, p.type(), dtype::f32);
    c.give(0, converted(eval(random::uniform_like(wide) < wide), dtype::boolean, type), type);
}
/// Places of classes, drawn by logarithms of their weights.
inline void multinomial_rule(call& c) {
    c.ignore("seed");
    const std::int64_t count = c.integer("sample_size", 1);
    const dtype type = type_of_attribute(c, dtype::i32);
    if (type != dtype::i32 && type != dtype::i64) refuse(std::string("dtype = ") + name_of(type));
    if (count < 0 || c.rank(0) != 2)
        refuse("sample_size = " + std::to_string(count) + " of rank " + std::to_string(c.rank(0)));
    const node x = converted(c.plain(0), c.type(0), dtype::f32);
    const shape s = x.shape();
    const node each = eval(broadcast_to(with_axis(x, 1), shape_of_items(c, {s[0].value, count, s[1].value})));
    c.give(0, converted(random::categorical(each), dtype::i32, type), type);
}
inline void dropout(call& c) {
    c.ignore("seed"), c.ignore("is_test"), c.ignore("consumed_inputs");
    double rate = c.number("ratio", 0.5);
    bool trains = false;
    if (c.has(2)) {
        if (c.known(2) == nullptr) refuse_symbols("a training_mode that is computed from values");
        trains = c.known(2)->integer(0) != 0;
    }
    if (trains && c.has(1)) rate = c.scalar(1, "a ratio");
    if (trains && rate != 0) {
        if (!(rate > 0 && rate < 1)) refuse("a ratio of " + number_text(rate));
        const node x = c.plain(0);
        const dtype type = c.type(0);
        const node wide = type == dtype::f64 ? x : converted(x, type, dtype::f32);
        const node kept = eval(random::uniform_like(wide) >= rate);
        c.give(0, converted(eval(where(kept, wide * (1 / (1 - rate)), 0)), wide.type(), type), type);
        c.give(1, kept, dtype::boolean);
        return;
    }
    c.give(0, c.pointer(0));
    if (!c.wants(1)) return;
    array yes(dtype::boolean, {});
    *static_cast<bool*>(yes.data()) = true;
    c.give(1, eval(broadcast_to(c.on.constant(yes), c.dims(0))), dtype::boolean);
}

inline std::span<const operator_rule> randoms() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"RandomNormal", [](call& c) { draw_rule(c, true, false); }},
        {"RandomNormalLike", [](call& c) { draw_rule(c, true, true); }},
        {"RandomUniform", [](call& c) { draw_rule(c, false, false); }},
        {"RandomUniformLike", [](call& c) { draw_rule(c, false, true); }},
        {"Bernoulli", &bernoulli_rule},
        {"Multinomial", &multinomial_rule},
        {"Dropout", &dropout},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
