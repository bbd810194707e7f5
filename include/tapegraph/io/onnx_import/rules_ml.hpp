#pragma once

#include <tapegraph/graph/transforms.hpp>
#include <tapegraph/io/onnx_import/ml_scores.hpp>
#include <tapegraph/io/onnx_import/rules_svm.hpp>
#include <tapegraph/io/onnx_import/rules_trees.hpp>

#include <cmath>

/// Operators of the domain ai.onnx.ml on numbers: linear models and preparation of records
/// (onnx.ai/onnx/operators, ai.onnx.ml). Those on strings and maps are refused by name.

namespace tapegraph::io::onnx_import {

namespace rules {

/// x W^T + b of records in float, for `rows` rows of coefficients.
inline node linear_scores(call& c, std::int64_t rows) {
    const node x = records_of(c, 0, dtype::f32);
    const std::vector<float> given = c.numbers("coefficients"), bias = c.numbers("intercepts");
    const std::int64_t width = known_extent(x.shape()[1], "a linear model");
    if (rows < 1 || static_cast<std::int64_t>(given.size()) != rows * width)
        refuse("coefficients of " + std::to_string(given.size()) + " numbers, not " + std::to_string(rows) + " x " +
               std::to_string(width));
    if (!bias.empty() && static_cast<std::int64_t>(bias.size()) != rows)
        refuse("intercepts of " + std::to_string(bias.size()) + " rows, not " + std::to_string(rows));
    const auto constant = [&](const std::vector<float>& items, std::vector<std::int64_t> dims) {
        return constant_of(c, {items.begin(), items.end()}, std::move(dims), dtype::f32);
    };
    const node y = matmul(x, constant(given, {rows, width}), {.transpose_b = true});
    return bias.empty() ? y : node(eval(y + constant(bias, {rows})));
}
inline void linear_regressor(call& c) {
    const node y = linear_scores(c, c.integer("targets", 1));
    give_scores(c, 0, y, c.text("post_transform", "NONE"));
}
inline void linear_classifier(call& c) {
    const std::vector<std::int64_t> labels = labels_of(c, "classlabels_ints", "classlabels_strings");
    const std::string transform = c.text("post_transform", "NONE");
    c.ignore("multi_class"); // how it was trained
    const auto bias_count = static_cast<std::int64_t>(c.numbers("intercepts").size());
    const auto classes = static_cast<std::int64_t>(labels.size());
    const node scores = linear_scores(c, bias_count > 0 ? bias_count : classes);
    const std::int64_t rows = scores.shape()[1].value;
    if (rows == classes && classes > 1) {
        give_labels(c, labels, argmax(scores, -1));
        return give_scores(c, 1, scores, transform);
    }
    if (rows != 1 || classes != 2)
        refuse(std::to_string(rows) + " rows of coefficients for " + std::to_string(classes) + " classes");
    give_labels(c, labels, squeeze(eval(scores > 0), axes_of({1})));
    if (transform == "PROBIT") refuse("post_transform = 'PROBIT' of one score for two classes");
    const bool logistic = transform == "LOGISTIC";
    give_scores(c, 1, two_scores(scores, !logistic), logistic ? transform : "NONE");
}

/// An attribute of one number for all features, or one for each: a constant that broadcasts.
inline node for_features(call& c, const std::vector<double>& items, const char* name, dtype type) {
    if (items.size() == 1) return c.on.number(items[0], type);
    const shape s = c.dims(0);
    if (s.rank() > 0 && s[s.rank() - 1].known() && s[s.rank() - 1].value != static_cast<std::int64_t>(items.size()))
        refuse(std::string(name) + " of " + std::to_string(items.size()) + " features, the operand has " +
               std::to_string(s[s.rank() - 1].value));
    return constant_of(c, items, {static_cast<std::int64_t>(items.size())}, type);
}
inline void scaler(call& c) {
    const dtype type = c.type(0) == dtype::f64 ? dtype::f64 : dtype::f32;
    node x = converted(c.plain(0), c.type(0), type);
    const std::vector<float> offset = c.numbers("offset"), scale = c.numbers("scale");
    if (!offset.empty()) x = eval(x - for_features(c, {offset.begin(), offset.end()}, "offset", type));
    if (!scale.empty()) x = eval(x * for_features(c, {scale.begin(), scale.end()}, "scale", type));
    c.give(0, converted(x, type, dtype::f32), dtype::f32);
}
inline void normalizer(call& c) {
    const std::string norm = c.text("norm", "MAX");
    const node x = converted(c.plain(0), c.type(0), dtype::f32);
    const reduce_options keep{.keepdims = true};
    node n;
    if (norm == "MAX")
        n = max(x, -1, keep);
    else if (norm == "L1")
        n = sum(abs(x), -1, keep);
    else if (norm == "L2")
        n = eval(sqrt(sum(square(x), -1, keep)));
    else
        refuse("norm = '" + norm + "'");
    c.give(0, eval(where(n == 0, x, x / n)), dtype::f32);
}
inline void imputer(call& c) {
    const dtype type = c.type(0);
    const std::vector<float> floats = c.numbers("imputed_value_floats");
    const std::vector<std::int64_t> integers = c.integers("imputed_value_int64s");
    const double from = c.number("replaced_value_float", 0);
    const auto from_integer = static_cast<double>(c.integer("replaced_value_int64", 0));
    if (is_floating(type) == floats.empty())
        refuse(std::string("of ") + name_of(type) + " with imputed values of another type");
    const std::vector<double> items = is_floating(type) ? std::vector<double>(floats.begin(), floats.end())
                                                        : std::vector<double>(integers.begin(), integers.end());
    if (items.empty()) refuse("without imputed values");
    const node x = c.plain(0), other = for_features(c, items, "imputed values", type);
    const node hit = std::isnan(from) && is_floating(type) ? node(eval(is_nan(x)))
                                                           : node(eval(x == (is_floating(type) ? from : from_integer)));
    c.give(0, eval(where(hit, other, x)), type);
}
inline void binarizer(call& c) {
    const double threshold = c.number("threshold", 0);
    const node x = c.plain(0);
    c.give(0, converted(eval(x > threshold), dtype::boolean, c.type(0)), c.type(0));
}
inline void feature_vectorizer(call& c) {
    std::vector<std::int64_t> widths = c.integers("inputdimensions");
    std::vector<node> parts;
    for (int i = 0; i < c.inputs(); ++i) {
        node x = records_of(c, i, dtype::f32);
        const std::int64_t own = known_extent(x.shape()[1], "features");
        const std::int64_t width =
            static_cast<std::size_t>(i) < widths.size() ? widths[static_cast<std::size_t>(i)] : own;
        if (width != own)
            refuse("inputdimensions of " + std::to_string(width) + " for an operand of " + std::to_string(own));
        parts.push_back(x);
    }
    if (parts.empty()) refuse("without operands");
    c.give(0, tapegraph::concat(parts, 1), dtype::f32);
}
inline void array_feature_extractor(call& c) {
    const shape s = c.dims(0);
    if (s.rank() == 0) refuse("of a number");
    const node at = ravel(converted(c.plain(1), c.type(1), dtype::i64));
    const node x = s.rank() == 1 ? with_axis(c.plain(0), 0) : c.plain(0);
    c.give(0, gather(x, at, x.rank() - 1), c.type(0));
}
inline void one_hot_encoder(call& c) {
    no_texts(c, "cats_strings", "categories");
    const std::vector<std::int64_t> categories = c.integers("cats_int64s");
    if (categories.empty()) refuse("without cats_int64s");
    const bool zeros = c.integer("zeros", 1) != 0;
    const dtype type = c.type(0);
    const node x = c.plain(0), keys = c.on.constant(array::integers(categories));
    const node hits = eval(with_axis(converted(x, type, dtype::i64), x.rank()) == keys);
    if (!zeros) check<"OneHotEncoder: an element of no category">(any(hits, -1));
    c.give(0, converted(hits, dtype::boolean, dtype::f32), dtype::f32);
}

/// The keys or values of a LabelEncoder.
inline array list_of(call& c, const std::string& kind) {
    no_texts(c, (kind + "_strings").c_str(), (kind + " of labels").c_str());
    const std::vector<float> floats = c.numbers((kind + "_floats").c_str());
    const std::vector<std::int64_t> integers = c.integers((kind + "_int64s").c_str());
    const attribute* const tensor = c.find((kind + "_tensor").c_str());
    if (tensor != nullptr && tensor->t == nullptr) refuse(kind + "_tensor of an element type that is not supported");
    if (tensor != nullptr) return *tensor->t;
    if (floats.empty()) return array::integers(integers);
    array a(dtype::f32, {static_cast<std::int64_t>(floats.size())});
    std::memcpy(a.data(), floats.data(), floats.size() * sizeof(float));
    return a;
}
inline void label_encoder(call& c) {
    const array keys = list_of(c, "keys"), values = list_of(c, "values");
    const dtype type = c.type(0), result = values.type();
    if (keys.size() != values.size() || keys.size() == 0)
        refuse(std::to_string(keys.size()) + " keys for " + std::to_string(values.size()) + " values");
    if (keys.type() != type) refuse(std::string("of ") + name_of(type) + " with keys of " + name_of(keys.type()));
    const attribute* const otherwise = c.find("default_tensor");
    const double fallback_float = c.number("default_float", -0.0);
    const std::int64_t fallback_integer = c.integer("default_int64", -1);
    if (otherwise != nullptr && (otherwise->t == nullptr || otherwise->t->size() != 1))
        refuse("default_tensor that is not a number");
    array fallback(result, {});
    if (otherwise != nullptr && otherwise->t->type() == result)
        fallback = *otherwise->t;
    else if (otherwise != nullptr)
        refuse("default_tensor of another type than the values");
    fallback.set_dims({});
    node missing = c.on.constant(fallback);
    if (otherwise == nullptr)
        missing = is_floating(result) ? c.on.number(fallback_float, result)
                                      : c.on.constant(array::integers({fallback_integer}, true));
    c.ignore("default_string");
    // The last of equal keys counts: the first one found in reverse order.
    const std::int64_t count = keys.size();
    std::vector<std::int64_t> backwards;
    for (std::int64_t i = count - 1; i >= 0; --i) backwards.push_back(i);
    const node order = c.on.constant(array::integers(backwards));
    array flat_keys = keys, flat_values = values;
    flat_keys.set_dims({count}), flat_values.set_dims({count});
    const node key = gather(c.on.constant(flat_keys), order, 0), value = gather(c.on.constant(flat_values), order, 0);
    const node x = with_axis(c.plain(0), c.rank(0));
    const node hits = is_floating(type) ? node(eval(logical_or(x == key, logical_and(is_nan(x), is_nan(key)))))
                                        : node(eval(x == key));
    const node found = eval(cast<std::int32_t>(hits));
    const node place = eval(cast<std::int64_t>(argmax(found, -1)));
    const node known = eval(max(found, -1) > 0);
    c.give(0, eval(where(known, gather(value, place, 0), converted(missing, missing.type(), result))), result);
}

/// Makes maps from labels to scores of records [records, classes]. Here the tensor of scores stays, whose columns are in
/// the order of the labels.
inline void zip_map(call& c) {
    const std::size_t count = c.integers("classlabels_int64s").size() + c.texts("classlabels_strings").size();
    const shape s = c.dims(0);
    if (s.rank() != 2) refuse("of scores of rank " + std::to_string(s.rank()));
    if (s[1].known() && s[1].value != static_cast<std::int64_t>(count))
        refuse(std::to_string(count) + " labels for " + std::to_string(s[1].value) + " scores");
    c.give(0, c.pointer(0));
}

inline std::span<const operator_rule> ml() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"TreeEnsemble", &tree_ensemble},
        {"TreeEnsembleClassifier", &tree_ensemble_classifier},
        {"TreeEnsembleRegressor", &tree_ensemble_regressor},
        {"SVMClassifier", &svm_classifier},
        {"SVMRegressor", &svm_regressor},
        {"LinearClassifier", &linear_classifier},
        {"LinearRegressor", &linear_regressor},
        {"Scaler", &scaler},
        {"Normalizer", &normalizer},
        {"Imputer", &imputer},
        {"Binarizer", &binarizer},
        {"FeatureVectorizer", &feature_vectorizer},
        {"ArrayFeatureExtractor", &array_feature_extractor},
        {"OneHotEncoder", &one_hot_encoder},
        {"LabelEncoder", &label_encoder},
        {"ZipMap", &zip_map},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
