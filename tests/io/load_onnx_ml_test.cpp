// Models of the domain ai.onnx.ml: trees, linear models, preparation of records. The numbers are computed by hand;
// tests/peers/onnx_ml.py compares models of scikit-learn with onnxruntime.

#include <io/onnx_files.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace load_onnx_ml_test {

namespace tg = tapegraph;
using namespace onnx_files;

namespace {

using integers = std::vector<std::int64_t>;
using floats = std::vector<float>;
using texts = std::vector<std::string>;

std::string ml(const std::string& type, const std::vector<std::string>& in, const std::vector<std::string>& out,
               const std::string& attributes = {}) {
    return node(type, in, out, attributes, "ai.onnx.ml");
}
std::string one(const std::string& type, const std::string& attributes, const char* width = "2") {
    return model(ml(type, {"x"}, {"y"}, attributes) + value(11, "x", f32, {"n", width}) +
                 value(12, "y", f32, {"n", "m"}));
}
float at(const tg::any_tensor& t, std::int64_t i) { return tg::tensor<float>(t).data()[i]; }

// Two trees: x0 <= 0.5 ? (x1 > 2 ? leaf 2 : leaf 3) : leaf 4, where NaN is taken for x1 > 2; and x1 < 1 ? leaf 1 : leaf 2.
std::string trees(const integers& next = {1, 2, 0, 0, 0, 1, 0, 0}) {
    return attribute("nodes_treeids", integers{0, 0, 0, 0, 0, 1, 1, 1}) +
           attribute("nodes_nodeids", integers{0, 1, 2, 3, 4, 0, 1, 2}) +
           attribute("nodes_featureids", integers{0, 1, 0, 0, 0, 1, 0, 0}) +
           attribute("nodes_values", floats{0.5f, 2, 0, 0, 0, 1, 0, 0}) +
           attribute("nodes_modes",
                     texts{"BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"}) +
           attribute("nodes_truenodeids", next) + attribute("nodes_falsenodeids", integers{4, 3, 0, 0, 0, 2, 0, 0}) +
           attribute("nodes_missing_value_tracks_true", integers{0, 1, 0, 0, 0, 0, 0, 0});
}
std::string votes(const std::string& kind, const integers& targets, const floats& weights) {
    return attribute(kind + "_treeids", integers{0, 0, 0, 1, 1}) +
           attribute(kind + "_nodeids", integers{2, 3, 4, 1, 2}) + attribute(kind + "_ids", targets) +
           attribute(kind + "_weights", weights);
}
std::string regressor(const std::string& more = {}) {
    return one("TreeEnsembleRegressor", trees() + votes("target", {0, 0, 0, 0, 0}, {1, 2, 4, 10, 20}) + more);
}
const float missing = std::numeric_limits<float>::quiet_NaN();
const tg::tensor<float> records{{0.5f, 3}, {0.5f, 2}, {0.6f, 0}, {0, missing}, {missing, 0.5f}};

} // namespace

TEST_CASE("trees: branches at their limits, missing values, sums, means and extremes") {
    const support::temporary_folder folder;
    const auto sums = loaded(folder, regressor(attribute("base_values", floats{100})));
    const auto y = sums.predict({records})[0];
    REQUIRE(y.shape() == tg::shape{5, 1});
    const float expected[] = {121, 122, 114, 121, 114};
    for (int i = 0; i < 5; ++i) CHECK(at(y, i) == expected[i]);
    CHECK(sums.predict({tg::tensor<float>{{0, 0}}})[0].shape() == tg::shape{1, 1}); // any number of records
    CHECK(at(loaded(folder, regressor(attribute("aggregate_function", "AVERAGE"))).predict({records})[0], 1) == 11);
    CHECK(at(loaded(folder, regressor(attribute("aggregate_function", "MIN"))).predict({records})[0], 1) == 2);
    CHECK(at(loaded(folder, regressor(attribute("aggregate_function", "MAX"))).predict({records})[0], 2) == 10);
}

TEST_CASE("trees that vote for classes: the top class, and two classes of which one has votes") {
    const support::temporary_folder folder;
    const auto classifier = [&](const integers& labels, const integers& classes, const floats& weights,
                                const std::string& more = {}) {
        const auto net = loaded(
            folder,
            model(ml("TreeEnsembleClassifier", {"x"}, {"label", "y"},
                     trees() + votes("class", classes, weights) + attribute("classlabels_int64s", labels) + more) +
                  value(11, "x", f32, {"n", "2"}) + value(12, "label", i64, {"n"}) + value(12, "y", f32, {"n", "k"})));
        return net.predict({records});
    };
    // Record 0 votes for 0 and 1 by 1 and 20, record 2 for 2 and 0 by 4 and 10.
    const auto three = classifier({7, 8, 9}, {0, 1, 2, 0, 1}, {1, 2, 4, 10, 20});
    REQUIRE(three[1].shape() == tg::shape{5, 3});
    CHECK(tg::tensor<std::int64_t>(three[0]).data()[0] == 8);
    CHECK(tg::tensor<std::int64_t>(three[0]).data()[2] == 7);
    CHECK(at(three[1], 0) == 1);
    CHECK(at(three[1], 1) == 20);
    CHECK(at(three[1], 2) == 0);
    // A class without a vote is no top class, although its score of 0 is higher.
    const auto negative = classifier({7, 8, 9}, {0, 1, 2, 0, 1}, {-1, -2, -4, -10, -20});
    CHECK(tg::tensor<std::int64_t>(negative[0]).data()[0] == 7);
    // One class has all votes: above 1/2 where all are positive, otherwise above 0.
    const auto probability = classifier({3, 4}, {0, 0, 0, 0, 0}, {0.125f, 0.25f, 0, 0.25f, 0.5f});
    CHECK(tg::tensor<std::int64_t>(probability[0]).data()[0] == 4);
    CHECK(tg::tensor<std::int64_t>(probability[0]).data()[2] == 3);
    CHECK(at(probability[1], 0) == 0.375f);
    CHECK(at(probability[1], 1) == 0.625f);
    const auto margin =
        classifier({3, 4}, {0, 0, 0, 0, 0}, {-1, 0, 0, 0.25f, 0.5f}, attribute("post_transform", "LOGISTIC"));
    CHECK(tg::tensor<std::int64_t>(margin[0]).data()[0] == 3);
    CHECK(at(margin[1], 1) == doctest::Approx(1 / (1 + std::exp(0.5))).epsilon(1e-6));
    CHECK(at(margin[1], 0) == doctest::Approx(1 / (1 + std::exp(-0.5))).epsilon(1e-6));
}

TEST_CASE("linear models") {
    const support::temporary_folder folder;
    const tg::tensor<float> x{{1, 2}, {-1, 0}};
    const auto y =
        loaded(folder, one("LinearRegressor", attribute("coefficients", floats{1, 2, 3, 4}) +
                                                  attribute("intercepts", floats{0.5f, -1}) + attribute("targets", 2)))
            .predict({x})[0];
    REQUIRE(y.shape() == tg::shape{2, 2});
    CHECK(at(y, 0) == 5.5f);
    CHECK(at(y, 1) == 10);
    CHECK(at(y, 3) == -4);
    const auto net = loaded(
        folder,
        model(ml("LinearClassifier", {"x"}, {"label", "y"},
                 attribute("coefficients", floats{1, 1}) + attribute("intercepts", floats{0}) +
                     attribute("classlabels_ints", integers{5, 6}) + attribute("post_transform", "LOGISTIC")) +
              value(11, "x", f32, {"n", "2"}) + value(12, "label", i64, {"n"}) + value(12, "y", f32, {"n", "2"})));
    const auto both = net.predict({x});
    CHECK(tg::tensor<std::int64_t>(both[0]).data()[0] == 6);
    CHECK(tg::tensor<std::int64_t>(both[0]).data()[1] == 5);
    CHECK(at(both[1], 1) == doctest::Approx(1 / (1 + std::exp(-3.0))).epsilon(1e-6));
}

TEST_CASE("records are scaled, filled in and encoded") {
    const support::temporary_folder folder;
    const tg::tensor<float> x{{1, missing}, {-3, 4}};
    const auto result = [&](const std::string& type, const std::string& attributes) {
        return loaded(folder, one(type, attributes)).predict({x})[0];
    };
    CHECK(at(result("Scaler", attribute("offset", floats{1, 2}) + attribute("scale", floats{2, 0.5f})), 3) == 1);
    CHECK(at(result("Normalizer", attribute("norm", "L2")), 3) == doctest::Approx(0.8));
    CHECK(at(result("Normalizer", attribute("norm", "L1")), 2) == doctest::Approx(-3 / 7.0));
    CHECK(at(result("Binarizer", {}), 2) == 0);
    CHECK(at(result("Binarizer", {}), 3) == 1);
    const std::string nan_is_replaced =
        text(5, text(1, "replaced_value_float") + std::string("\x15\0\0\xc0\x7f", 5) + number(20, 1));
    const auto filled = result("Imputer", attribute("imputed_value_floats", floats{8, 9}) + nan_is_replaced);
    CHECK(at(filled, 1) == 9);
    CHECK(at(filled, 2) == -3);
    const auto hot = result("OneHotEncoder", attribute("cats_int64s", integers{4, 1}));
    REQUIRE(hot.shape() == tg::shape{2, 2, 2});
    CHECK(at(hot, 1) == 1);
    CHECK(at(hot, 4) == 0); // -3 is of no category
    CHECK(at(hot, 6) == 1);
    // The last of equal keys counts; NaN is a key.
    const auto labels =
        result("LabelEncoder",
               attribute("keys_floats", floats{1, missing, 1}) + attribute("values_floats", floats{10, 20, 30}) +
                   text(5, text(1, "default_float") + std::string("\x15\0\0\xe0\x40", 5) + number(20, 1)));
    CHECK(at(labels, 0) == 30);
    CHECK(at(labels, 1) == 20);
    CHECK(at(labels, 2) == 7);
}

TEST_CASE("what is wrong with trees, and what is strings, is refused by node and reason") {
    const support::temporary_folder folder;
    const auto why = [&](const std::string& type, const std::string& attributes) {
        return refusal(folder, one(type, attributes));
    };
    const auto contains = [](const std::string& text, const char* part) {
        CHECK_MESSAGE(text.find(part) != text.npos, text);
    };
    const std::string leaves = votes("target", {0, 0, 0, 0, 0}, {1, 2, 4, 10, 20});
    contains(why("TreeEnsembleRegressor", trees({1, 1, 0, 0, 0, 1, 0, 0}) + leaves),
             "TreeEnsembleRegressor 'the TreeEnsembleRegressor': node 1 below itself");
    contains(why("TreeEnsembleRegressor", trees({1, 9, 0, 0, 0, 1, 0, 0}) + leaves),
             "node 9, which tree 0 does not have");
    contains(why("TreeEnsembleRegressor", trees() + votes("target", {0, 0, 3, 0, 0}, {1, 2, 4, 10, 20})),
             "a vote for target 3 of 1");
    contains(why("LabelEncoder", attribute("keys_strings", texts{"a"}) + attribute("values_floats", floats{1})),
             "keys of labels that are strings");
    contains(why("OneHotEncoder", attribute("cats_strings", texts{"a"})), "categories that are strings");
    contains(why("LinearRegressor", attribute("coefficients", floats{1, 2, 3})),
             "coefficients of 3 numbers, not 1 x 2");
    contains(why("ZipMap", attribute("classlabels_int64s", integers{1, 2})), "zipmap=False");
    contains(why("SVMRegressor", {}), "SVMRegressor 'the SVMRegressor': no such operator of domain 'ai.onnx.ml' here");
    // Whichever byte of the file is another.
    const std::string whole = regressor();
    for (std::size_t i = 0; i < whole.size(); ++i) {
        std::string other = whole;
        other[i] = static_cast<char>(other[i] ^ (1 + i % 255));
        const std::string reason = refusal(folder, other);
        if (reason != "none") contains(reason, "m.onnx");
    }
}

} // namespace load_onnx_ml_test
