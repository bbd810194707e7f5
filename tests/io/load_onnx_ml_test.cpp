// Models of the domain ai.onnx.ml: trees, linear models, preparation of records. The numbers are computed by hand;
// tests/peers/onnx_ml.py compares models of scikit-learn with onnxruntime.

#include <tapegraph/traced.hpp>

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

TEST_CASE("support vector machines: kernels, votes of pairs, probabilities") {
    const support::temporary_folder folder;
    const tg::tensor<float> x{{1, 2}, {-1, 0}};
    const auto value_of = [&](const char* kernel) { // 2 k(x, (1, 0)) - 3 k(x, (0, 1)) + 0.25
        return loaded(folder,
                      one("SVMRegressor",
                          attribute("kernel_type", kernel) + attribute("kernel_params", floats{0.5f, 0.75f, 3}) +
                              attribute("n_supports", 2) + attribute("support_vectors", floats{1, 0, 0, 1}) +
                              attribute("coefficients", floats{2, -3}) + attribute("rho", floats{0.25f})))
            .predict({x})[0];
    };
    REQUIRE(value_of("LINEAR").shape() == tg::shape{2, 1});
    CHECK(at(value_of("LINEAR"), 0) == -3.75f);
    CHECK(at(value_of("LINEAR"), 1) == -1.75f);
    const auto cube = [](double v) { return v * v * v; };
    CHECK(at(value_of("POLY"), 0) == doctest::Approx(2 * cube(1.25) - 3 * cube(1.75) + 0.25));
    CHECK(at(value_of("POLY"), 1) == doctest::Approx(2 * cube(0.25) - 3 * cube(0.75) + 0.25));
    CHECK(at(value_of("RBF"), 0) == doctest::Approx(2 * std::exp(-2.0) - 3 * std::exp(-1.0) + 0.25));
    CHECK(at(value_of("SIGMOID"), 1) == doctest::Approx(2 * std::tanh(0.25) - 3 * std::tanh(0.75) + 0.25));

    // Three classes with a vector each, along the axes and at the origin: class i against j is coefficient
    // [j - 1, vector i] k_i + [i, vector j] k_j + rho.
    const auto classes = [&](const std::string& more) {
        const auto net = loaded(
            folder,
            model(ml("SVMClassifier", {"x"}, {"label", "y"},
                     attribute("kernel_params", floats{0, 0, 0}) + attribute("vectors_per_class", integers{1, 1, 1}) +
                         attribute("classlabels_ints", integers{7, 8, 9}) +
                         attribute("support_vectors", floats{1, 0, 0, 1, 0, 0}) +
                         attribute("coefficients", floats{1, -1, -1, 1, 1, -1}) +
                         attribute("rho", floats{0, -0.5f, -0.5f}) + more) +
                  value(11, "x", f32, {"n", "2"}) + value(12, "label", i64, {"n"}) + value(12, "y", f32, {"n", "3"})));
        return net.predict({x});
    };
    const auto scores = classes({});
    CHECK(at(scores[1], 0) == -1); // x0 - x1
    CHECK(at(scores[1], 1) == 0.5f);
    CHECK(at(scores[1], 2) == 1.5f);
    CHECK(tg::tensor<std::int64_t>(scores[0]).data()[0] == 8);
    CHECK(tg::tensor<std::int64_t>(scores[0]).data()[1] == 9);
    const auto p = classes(attribute("prob_a", floats{-1, -1, -1}) + attribute("prob_b", floats{0, 0, 0}));
    REQUIRE(p[1].shape() == tg::shape{2, 3});
    // Where the optimum of the coupling is, all rows of Q p are equal.
    const double r[3] = {1 / (1 + std::exp(1.0)), 1 / (1 + std::exp(-0.5)), 1 / (1 + std::exp(-1.5))};
    const double against[3][3] = {{0, r[0], r[1]}, {1 - r[0], 0, r[2]}, {1 - r[1], 1 - r[2], 0}};
    double row[3] = {}, sum = 0;
    for (int i = 0; i < 3; ++i) {
        sum += static_cast<double>(at(p[1], i));
        for (int j = 0; j < 3; ++j)
            if (i != j)
                row[i] += against[j][i] * (against[j][i] * static_cast<double>(at(p[1], i)) -
                                           against[i][j] * static_cast<double>(at(p[1], j)));
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-6));
    for (int i = 1; i < 3; ++i) CHECK(std::fabs(row[i] - row[0]) < 2 * 0.005 / 3); // the rule's own limit
    CHECK(tg::tensor<std::int64_t>(p[0]).data()[0] == 8);
    CHECK(loaded(folder, model(ml("SVMClassifier", {"x"}, {"label", "y"},
                                  attribute("rho", floats{0}) + attribute("coefficients", floats{1, 0, 0, 1}) +
                                      attribute("classlabels_ints", integers{7, 8})) +
                               value(11, "x", f32, {"n", "2"}) + value(12, "label", i64, {"n"}) +
                               value(12, "y", f32, {"n", "2"})))
              .predict({tg::zeros<float>(0, 2)})[1]
              .shape() == tg::shape{0, 2});
}

TEST_CASE("forests: the walk by one operation is that by operations on all records") {
    // Random trees, as they come from a file, with all modes, missing values, and trees of a single leaf.
    const support::temporary_folder folder;
    std::uint32_t seed = 7;
    const auto random = [&](std::uint32_t limit) { return (seed = seed * 1664525u + 1013904223u) / 65536u % limit; };
    for (const bool mixed : {false, true})
        for (const int count : {1, 7, 8, 37}) {
            integers ids, nodes, features, yes, no, tracks, of_trees, of_nodes, targets;
            floats splits, weights;
            texts modes;
            for (int t = 0; t < count; ++t) {
                const std::int64_t inner = random(40);
                for (std::int64_t i = 0; i < 2 * inner + 1; ++i) {
                    const bool leaf = i >= inner; // node i has children 2 i + 1 and 2 i + 2
                    ids.push_back(t), nodes.push_back(i), features.push_back(leaf ? 0 : random(3));
                    splits.push_back(leaf ? 0 : static_cast<float>(random(9)) - 4);
                    yes.push_back(leaf ? 0 : 2 * i + 1), no.push_back(leaf ? 0 : 2 * i + 2);
                    tracks.push_back(leaf || !mixed ? 0 : random(2));
                    const char* const names[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                                 "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
                    modes.push_back(leaf ? "LEAF" : names[mixed ? random(6) : 1]);
                    if (!leaf) continue;
                    of_trees.push_back(t), of_nodes.push_back(i), targets.push_back(random(2));
                    weights.push_back(static_cast<float>(random(1000)) / 7);
                }
            }
            const auto net = loaded(
                folder, one("TreeEnsembleRegressor",
                            attribute("nodes_treeids", ids) + attribute("nodes_nodeids", nodes) +
                                attribute("nodes_featureids", features) + attribute("nodes_values", splits) +
                                attribute("nodes_modes", modes) + attribute("nodes_truenodeids", yes) +
                                attribute("nodes_falsenodeids", no) +
                                attribute("nodes_missing_value_tracks_true", tracks) + attribute("n_targets", 2) +
                                attribute("target_treeids", of_trees) + attribute("target_nodeids", of_nodes) +
                                attribute("target_ids", targets) + attribute("target_weights", weights),
                            "3"));
            auto part_of_model = tg::compile<tg::traced>(net, tg::spec<float, tg::dyn, 3>{}); // walks by levels
            for (const std::int64_t records : {0, 1, 5, 8, 29, 300}) {
                tg::tensor<float> x = tg::zeros<float>(records, 3);
                float* const to = x.mutable_data();
                for (std::int64_t i = 0; i < 3 * records; ++i)
                    to[i] = random(8) == 0 ? missing : static_cast<float>(random(9)) - 4;
                const tg::tensor<float> a(net.predict({x})[0]);
                if (records == 0) {
                    CHECK(a.shape() == tg::shape{0, 2});
                    continue;
                }
                const tg::tensor<float> b(part_of_model.predict(x));
                REQUIRE(a.shape() == b.shape());
                CHECK(std::equal(a.data(), a.data() + a.size(), b.data()));
            }
        }
}

TEST_CASE("several values of a graph become its outputs") {
    const support::temporary_folder folder;
    const auto net =
        loaded(folder, model(node("Neg", {"x"}, {"a"}) + node("Abs", {"a"}, {"b"}) + node("Neg", {"b"}, {"y"}) +
                             value(11, "x", f32, {"n", "2"}) + value(12, "y", f32, {"n", "2"})));
    const auto part = net.until_all({"b", "x", "a"});
    REQUIRE(part.outputs().size() == 3);
    CHECK(part.outputs()[2].name == "a");
    const auto y = part.predict({records});
    CHECK(at(y[0], 1) == 3);
    CHECK(at(y[1], 1) == 3);
    CHECK(at(y[2], 1) == -3);
    CHECK_THROWS_WITH_AS(net.until_all({"a", "nothing"}), doctest::Contains("no node gives 'nothing'"),
                         tg::argument_error);
    CHECK_THROWS_AS(net.until_all({}), tg::argument_error);
}

TEST_CASE("maps from labels to scores are tensors of scores") {
    const support::temporary_folder folder;
    // The type of y is sequence(map(int64, tensor(float))), as skl2onnx writes it.
    const std::string map = text(5, number(1, i64) + text(2, text(1, number(1, f32))));
    const std::string file =
        model(ml("ZipMap", {"x"}, {"y"}, attribute("classlabels_int64s", integers{7, 9})) +
              value(11, "x", f32, {"n", "2"}) + text(12, text(1, "y") + text(2, text(4, text(1, map)))));
    const auto net = loaded(folder, file);
    REQUIRE(net.outputs().size() == 1);
    CHECK(net.outputs()[0].type == tg::dtype::f32);
    const auto y = net.predict({tg::tensor<float>{{0.25f, 0.75f}, {1, 0}, {0.5f, 0.5f}}})[0];
    REQUIRE(y.shape() == tg::shape{3, 2});
    CHECK(at(y, 1) == 0.75f);
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
    contains(why("ZipMap", attribute("classlabels_int64s", integers{1, 2, 3})), "3 labels for 2 scores");
    const std::string rho = attribute("rho", floats{0});
    contains(why("SVMRegressor", rho), "SVMRegressor 'the SVMRegressor': without coefficients");
    contains(why("SVMRegressor", rho + attribute("coefficients", floats{1, 2}) + attribute("kernel_type", "WAVES")),
             "kernel_type = 'WAVES'");
    contains(why("SVMRegressor", rho + attribute("coefficients", floats{1, 2}) + attribute("n_supports", 3)),
             "coefficients of 2 numbers for 3 support vectors");
    contains(why("SVMRegressor", rho + attribute("coefficients", floats{1, 2}) + attribute("n_supports", 2) +
                                     attribute("support_vectors", floats{1, 2, 3})),
             "support_vectors of 3 numbers, not 2 x 2");
    contains(why("SVMClassifier", rho + attribute("coefficients", floats{1, 2, 3}) +
                                      attribute("classlabels_ints", integers{1, 2}) +
                                      attribute("vectors_per_class", integers{1, 1})),
             "coefficients of 3 numbers, not 1 x 2");
    contains(why("SVMClassifier",
                 rho + attribute("coefficients", floats{1}) + attribute("classlabels_strings", texts{"a", "b"})),
             "class labels that are strings");
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
