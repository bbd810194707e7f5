#pragma once

#include <tapegraph/io/onnx_import/ml_scores.hpp>
#include <tapegraph/ops/records/records.hpp>

#include <cmath>
#include <limits>
#include <numeric>

/// SVMClassifier and SVMRegressor of ai.onnx.ml: support vector machines
/// (onnx.ai/onnx/operators/onnx_aionnxml_SVMClassifier.html). Kernels are computed in f32, distances
/// and sums in f64.

namespace tapegraph::io::onnx_import {

namespace rules {

/// kernel_type and kernel_params of a machine.
struct svm_kernel {
    std::string type;
    double gamma = 0, offset = 0, degree = 0;

    explicit svm_kernel(call& c) : type(c.text("kernel_type", "LINEAR")) {
        const std::vector<float> given = c.numbers("kernel_params");
        if (type != "LINEAR" && type != "POLY" && type != "RBF" && type != "SIGMOID")
            refuse("kernel_type = '" + type + "'");
        if (!given.empty() && given.size() != 3)
            refuse("kernel_params of " + std::to_string(given.size()) + " numbers, not gamma, coef0 and degree");
        if (given.empty() && type != "LINEAR") refuse("kernel_type = '" + type + "' without kernel_params");
        if (given.empty()) return;
        gamma = static_cast<double>(given[0]), offset = static_cast<double>(given[1]);
        degree = static_cast<double>(given[2]);
    }

    /// Of records [records, features] with each of `count` vectors: [records, count].
    node values(call& c, const node& x, const std::vector<float>& vectors, std::int64_t count) const {
        const std::int64_t width = known_extent(x.shape()[1], "a support vector machine");
        if (static_cast<std::int64_t>(vectors.size()) != count * width)
            refuse("support_vectors of " + std::to_string(vectors.size()) + " numbers, not " + std::to_string(count) +
                   " x " + std::to_string(width));
        const node s = constant_of(c, {vectors.begin(), vectors.end()}, {count, width}, dtype::f32);
        if (type == "RBF")
            return converted(eval(exp(-gamma * distances(c, x, vectors, count))), dtype::f64, dtype::f32);
        const node products = matmul(x, s, {.transpose_b = true});
        if (type == "LINEAR") return products;
        const node inner = eval(gamma * products + offset);
        return type == "SIGMOID" ? node(eval(tanh(inner))) : node(eval(pow(inner, degree)));
    }

private:
    /// The squares of distances by a product, in f64: what is lost where they are small is 1e-16 of the squares.
    static node distances(call& c, const node& x, const std::vector<float>& vectors, std::int64_t count) {
        const std::size_t width = vectors.size() / static_cast<std::size_t>(count);
        std::vector<double> squares(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < vectors.size(); ++i)
            squares[i / width] += static_cast<double>(vectors[i]) * static_cast<double>(vectors[i]);
        const node wide = converted(x, dtype::f32, dtype::f64);
        const node s =
            constant_of(c, {vectors.begin(), vectors.end()}, {count, static_cast<std::int64_t>(width)}, dtype::f64);
        const node own = sum(square(wide), -1, {.keepdims = true});
        const node d =
            eval(own + constant_of(c, squares, {count}, dtype::f64) - 2.0 * matmul(wide, s, {.transpose_b = true}));
        const double infinity = std::numeric_limits<double>::infinity();
        return eval(where(own == infinity, own, maximum(d, 0.0))); // not inf - inf
    }
};

/// x W^T + rho in f64, for `rows` rows of coefficients: a machine that has no support vectors.
inline node svm_linear_scores(call& c, const node& x, const std::vector<float>& coefficients, std::int64_t rows,
                              double rho) {
    const std::int64_t width = known_extent(x.shape()[1], "a support vector machine");
    if (static_cast<std::int64_t>(coefficients.size()) != rows * width)
        refuse("coefficients of " + std::to_string(coefficients.size()) + " numbers, not " + std::to_string(rows) +
               " x " + std::to_string(width));
    const node w = constant_of(c, {coefficients.begin(), coefficients.end()}, {rows, width}, dtype::f64);
    return eval(matmul(converted(x, dtype::f32, dtype::f64), w, {.transpose_b = true}) + rho);
}

/// The numbers of an attribute that must not be empty.
inline std::vector<float> svm_numbers(call& c, const char* name) {
    const std::vector<float> items = c.numbers(name);
    if (items.empty()) refuse(std::string("without ") + name);
    return items;
}

inline void svm_regressor(call& c) {
    const svm_kernel kernel(c);
    const node x = records_of(c, 0, dtype::f32);
    const std::vector<float> coefficients = svm_numbers(c, "coefficients"), rho = svm_numbers(c, "rho"),
                             vectors = c.numbers("support_vectors");
    const std::int64_t count = c.integer("n_supports", 0);
    const bool one_class = c.integer("one_class", 0) != 0;
    const std::string transform = c.text("post_transform", "NONE");
    if (transform != "NONE") refuse("post_transform = '" + transform + "'");
    if (count < 0) refuse("n_supports = " + std::to_string(count));
    if (rho.size() != 1) refuse("rho of " + std::to_string(rho.size()) + " numbers");
    node y;
    if (count == 0) {
        y = svm_linear_scores(c, x, coefficients, 1, static_cast<double>(rho[0]));
    } else {
        if (static_cast<std::int64_t>(coefficients.size()) != count)
            refuse("coefficients of " + std::to_string(coefficients.size()) + " numbers for " + std::to_string(count) +
                   " support vectors");
        const node k = converted(kernel.values(c, x, vectors, count), dtype::f32, dtype::f64);
        const node w = constant_of(c, {coefficients.begin(), coefficients.end()}, {count, 1}, dtype::f64);
        y = eval(matmul(k, w) + static_cast<double>(rho[0]));
    }
    if (one_class) y = eval(where(y > 0, 1.0, c.on.number(-1, dtype::f64)));
    c.give(0, converted(y, dtype::f64, dtype::f32), dtype::f32);
}

/// A machine for each pair of classes.
struct svm_pairs {
    std::int64_t classes, vectors, count;
    std::vector<double> weights;               ///< [vectors, pairs]
    std::vector<double> for_first, for_second; ///< [pairs, classes]: whom a pair votes for
};
inline svm_pairs svm_pairs_of(const std::vector<std::int64_t>& of_classes, const std::vector<float>& coefficients) {
    svm_pairs p;
    p.classes = static_cast<std::int64_t>(of_classes.size());
    p.vectors = std::accumulate(of_classes.begin(), of_classes.end(), std::int64_t{0});
    p.count = p.classes * (p.classes - 1) / 2;
    if (static_cast<std::int64_t>(coefficients.size()) != (p.classes - 1) * p.vectors)
        refuse("coefficients of " + std::to_string(coefficients.size()) + " numbers, not " +
               std::to_string(p.classes - 1) + " x " + std::to_string(p.vectors));
    p.weights.resize(static_cast<std::size_t>(p.vectors * p.count));
    p.for_first.resize(static_cast<std::size_t>(p.count * p.classes)), p.for_second.resize(p.for_first.size());
    std::vector<std::int64_t> begin{0};
    for (const std::int64_t n : of_classes) begin.push_back(begin.back() + n);
    std::int64_t pair = 0;
    // Row r of the coefficients has, for a vector of class i, its weight against class r, or r + 1 from class i on.
    const auto take = [&](std::int64_t own, std::int64_t row) {
        for (std::int64_t v = begin[static_cast<std::size_t>(own)]; v < begin[static_cast<std::size_t>(own) + 1]; ++v)
            p.weights[static_cast<std::size_t>(v * p.count + pair)] =
                static_cast<double>(coefficients[static_cast<std::size_t>(row * p.vectors + v)]);
    };
    for (std::int64_t i = 0; i < p.classes; ++i)
        for (std::int64_t j = i + 1; j < p.classes; ++j, ++pair) {
            take(i, j - 1), take(j, i);
            p.for_first[static_cast<std::size_t>(pair * p.classes + i)] = 1;
            p.for_second[static_cast<std::size_t>(pair * p.classes + j)] = 1;
        }
    return p;
}

/// Probabilities of classes from the scores of pairs, by the sigmoids that were fitted to them (Platt).
inline node svm_probabilities(call& c, const node& scores, const svm_pairs& p, const std::vector<float>& a,
                              const std::vector<float>& b) {
    const auto row = [&](const std::vector<float>& items) {
        return constant_of(c, {items.begin(), items.end()}, {p.count}, dtype::f32);
    };
    const node of_pairs = eval(minimum(maximum(sigmoid(-(scores * row(a) + row(b))), 1e-7), 1 - 1e-7));
    couple_pairs_op::attributes attributes;
    attributes.classes = p.classes;
    return graph::invoke<couple_pairs_op>(attributes, nullptr, std::source_location::current(), of_pairs);
}

inline void svm_classifier(call& c) {
    const svm_kernel kernel(c);
    const std::vector<std::int64_t> labels = labels_of(c, "classlabels_ints", "classlabels_strings"),
                                    of_classes = c.integers("vectors_per_class");
    const node x = records_of(c, 0, dtype::f32);
    const std::vector<float> coefficients = svm_numbers(c, "coefficients"), rho = svm_numbers(c, "rho"),
                             vectors = c.numbers("support_vectors"), a = c.numbers("prob_a"), b = c.numbers("prob_b");
    const std::string transform = c.text("post_transform", "NONE");
    const auto classes = static_cast<std::int64_t>(labels.size());
    if (classes < 2) refuse("of " + std::to_string(classes) + " class labels");
    if (std::any_of(of_classes.begin(), of_classes.end(), [](std::int64_t n) { return n < 0; }))
        refuse("vectors_per_class below zero");
    if (std::accumulate(of_classes.begin(), of_classes.end(), std::int64_t{0}) == 0) {
        const node y = converted(svm_linear_scores(c, x, coefficients, classes, static_cast<double>(rho[0])),
                                 dtype::f64, dtype::f32);
        node place = argmax(y, -1);
        if (classes == 2) { // the second class from a limit on, whichever score is above it
            const bool positive = std::none_of(coefficients.begin(), coefficients.end(), [](float w) { return w < 0; });
            const node most = max(y, -1);
            const node second = positive ? node(eval(most >= 0.5)) : node(eval(most > 0));
            place = eval(where(second, c.on.number(1, place.type()), place));
        }
        give_labels(c, labels, place);
        return give_scores(c, 1, y, transform);
    }
    if (of_classes.size() != labels.size())
        refuse("vectors_per_class of " + std::to_string(of_classes.size()) + " classes, not " +
               std::to_string(classes));
    const svm_pairs p = svm_pairs_of(of_classes, coefficients);
    if (static_cast<std::int64_t>(rho.size()) != p.count)
        refuse("rho of " + std::to_string(rho.size()) + " pairs of classes, not " + std::to_string(p.count));
    if (a.size() != b.size() || (!a.empty() && static_cast<std::int64_t>(a.size()) != p.count))
        refuse("prob_a and prob_b of " + std::to_string(a.size()) + " and " + std::to_string(b.size()) +
               " pairs of classes, not " + std::to_string(p.count));
    const node k = converted(kernel.values(c, x, vectors, p.vectors), dtype::f32, dtype::f64);
    const node sums = eval(matmul(k, constant_of(c, p.weights, {p.vectors, p.count}, dtype::f64)) +
                           constant_of(c, {rho.begin(), rho.end()}, {p.count}, dtype::f64));
    if (c.wants(0)) {
        const node first = converted(eval(sums > 0), dtype::boolean, dtype::f32);
        const auto votes = [&](const node& by, const std::vector<double>& whom) {
            return matmul(by, constant_of(c, whom, {p.count, classes}, dtype::f32));
        };
        give_labels(c, labels, argmax(eval(votes(first, p.for_first) + votes(eval(1 - first), p.for_second)), -1));
    }
    const node scores = converted(sums, dtype::f64, dtype::f32);
    if (!a.empty()) return give_scores(c, 1, svm_probabilities(c, scores, p, a, b), transform);
    if (classes > 2) return give_scores(c, 1, scores, transform);
    if (transform == "PROBIT") refuse("post_transform = 'PROBIT' of one score for two classes");
    const bool logistic = transform == "LOGISTIC";
    give_scores(c, 1, two_scores(scores, transform != "NONE" && !logistic), logistic ? transform : "NONE");
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
