#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>

#include <cmath>
#include <numbers>

/// What operators of the domain ai.onnx.ml share: attributes of two element types, scores and
/// labels of classes. Where the operators' pages leave something open, this is onnxruntime's way.

namespace tapegraph::io::onnx_import {

namespace rules {

/// The numbers of an attribute `name` of floats or of `name`_as_tensor. `wide` becomes true by the
/// latter if it holds doubles.
inline std::vector<double> numbers_of(call& c, const std::string& name, bool& wide) {
    std::vector<double> items;
    for (const float f : c.numbers(name.c_str())) items.push_back(static_cast<double>(f));
    const attribute* const a = c.find((name + "_as_tensor").c_str());
    if (a == nullptr) return items;
    if (!items.empty()) refuse("attribute " + name + " twice, as floats and as a tensor");
    if (a->t == nullptr) refuse("attribute " + name + "_as_tensor of an unknown element type");
    wide = wide || a->t->type() == dtype::f64;
    for (std::int64_t i = 0; i < a->t->size(); ++i) items.push_back(a->t->number(i));
    return items;
}
/// The operand as [records, features] of a floating type.
inline node records_of(call& c, int i, dtype type) {
    const node x = converted(c.plain(i), c.type(i), type);
    if (x.rank() == 1) return with_axis(x, 0);
    if (x.rank() != 2) refuse("operand " + std::to_string(i) + " of rank " + std::to_string(x.rank()));
    return x;
}
inline void no_texts(call& c, const char* name, const char* what) {
    if (!c.texts(name).empty()) refuse(std::string(what) + " that are strings (attribute " + name + ")");
}

/// The inverse of the error function by Winitzki's formula, within 2e-3, as PROBIT means it to
/// runtimes (S. Winitzki, "A handy approximation for the error function and its inverse", 2008).
inline node inverse_erf(const node& x) {
    constexpr double a = 0.147;
    const node log_term = eval(log((1 - x) * (1 + x)));
    const node v = eval(2 / (std::numbers::pi * a) + log_term / 2);
    return eval(sign(x) * sqrt(sqrt(v * v - log_term / a) - v));
}
/// Scores [records, classes] after post_transform.
inline node transformed(const node& x, const std::string& how) {
    if (how == "NONE") return x;
    if (how == "LOGISTIC") return eval(sigmoid(x));
    if (how == "SOFTMAX") return softmax(x, -1);
    if (how == "PROBIT") return eval(std::numbers::sqrt2 * inverse_erf(eval(2 * x - 1)));
    if (how != "SOFTMAX_ZERO") refuse("post_transform = '" + how + "'");
    // Zeros stay near zero: they are not raised to exp(-largest), but multiplied by it.
    const node largest = max(x, -1, {.keepdims = true});
    const node e = eval(where(abs(x) > 1e-7, exp(x - largest), x * exp(-largest)));
    const node total = sum(e, -1, {.keepdims = true});
    return eval(where(total == 0, 0.5, e / total));
}

inline void give_scores(call& c, int output, const node& scores, const std::string& transform) {
    const node y = transformed(scores, transform);
    c.give(output, converted(y, y.type(), dtype::f32), dtype::f32);
}
/// Gives the labels of classes [records], from their places in the list of labels.
inline void give_labels(call& c, const std::vector<std::int64_t>& labels, const node& places) {
    if (!c.wants(0)) return;
    c.give(0, gather(c.on.constant(array::integers(labels)), eval(cast<std::int64_t>(places)), 0), dtype::i64);
}
inline std::vector<std::int64_t> labels_of(call& c, const char* integers, const char* strings) {
    if (c.wants(0)) no_texts(c, strings, "class labels");
    const auto text_count = c.texts(strings).size();
    std::vector<std::int64_t> labels = c.integers(integers);
    if (labels.empty() && text_count > 0) labels.resize(text_count);
    return labels;
}
/// Two scores of one: [1 - s, s] or [-s, s].
inline node two_scores(const node& s, bool complement) {
    return tapegraph::concat(std::vector<node>{complement ? node(eval(1 - s)) : node(eval(-s)), s}, 1);
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
