// Operators whose results have as many elements as values say: the graph is cut at them.

#include <io/onnx_files.hpp>

#include <doctest/doctest.h>

#include <cstring>

namespace load_onnx_counted_test {

namespace tg = tapegraph;
using namespace onnx_files;

namespace {

std::string number_of(const char* name, int type, std::int64_t n) {
    return initializer<std::int64_t>(name, type, {}, {n});
}
std::string real(const char* name, float v) { return initializer<float>(name, f32, {}, {v}); }

// Boxes [1, n, 4] are scaled by a weight, the best ones [m, 3] are chosen, and their corners [m, 4] come out, negated.
std::string detector() {
    return model(node("Mul", {"boxes", "scale"}, {"scaled"}) +
                 node("NonMaxSuppression", {"scaled", "scores", "most", "overlap", "least"}, {"chosen"}) +
                 node("Gather", {"chosen", "two"}, {"places"}, attribute("axis", 1)) +
                 node("Squeeze", {"scaled", "zero"}, {"flat"}) + node("Gather", {"flat", "places"}, {"best"}) +
                 node("Neg", {"best"}, {"corners"}) + node("Shape", {"corners"}, {"size"}) +
                 initializer<float>("scale", f32, {4}, {2, 2, 2, 2}) + number_of("most", i64, 3) +
                 real("overlap", 0.5f) + real("least", 0.25f) + number_of("two", i64, 2) +
                 initializer<std::int64_t>("zero", i64, {1}, {0}) + value(11, "boxes", f32, {"1", "n", "4"}) +
                 value(11, "scores", f32, {"1", "1", "n"}) + value(12, "corners", f32, {"m", "4"}) +
                 value(12, "size", i64, {"2"}) + value(12, "chosen", i64, {"m", "3"}));
}

} // namespace

TEST_CASE("a detector's boxes: as many as there are, by the weights of the moment") {
    const support::temporary_folder folder;
    auto net = loaded(folder, detector());
    // The second box covers most of the first, the third none of it; the fourth has too low a score.
    const tg::tensor<float> boxes{{{0, 0, 1, 1}, {0, 0, 1, 0.9f}, {2, 2, 3, 3}, {5, 5, 6, 6}}};
    const tg::tensor<float> scores{{{0.5f, 0.75f, 0.625f, 0.25f}}};
    for (int again = 0; again < 2; ++again) {
        const auto y = net.predict({boxes, scores});
        REQUIRE(y[0].shape() == tg::shape{2, 4});
        const tg::tensor<float> corners(y[0]);
        CHECK(corners.data()[3] == -1.8f); // box 1, scaled
        CHECK(corners.data()[4] == -4);    // box 2
        CHECK(tg::tensor<std::int64_t>(y[1]).data()[0] == 2);
        const tg::tensor<std::int64_t> chosen(y[2]);
        CHECK(chosen.data()[2] == 1);
        CHECK(chosen.data()[5] == 2);
    }
    const tg::tensor<float> low{{{0, 0, 0, 0}}};
    CHECK(net.predict({boxes, low})[0].shape() == tg::shape{0, 4});
    const tg::tensor<float> two_boxes{{{0, 0, 1, 1}, {4, 4, 3, 3}}}, two_scores{{{0.5f, 0.75f}}};
    CHECK(net.predict({two_boxes, two_scores})[0].shape() == tg::shape{2, 4}); // corners in any order
    net.variables()["scale"].assign(tg::tensor<float>{3, 3, 3, 3});
    CHECK(tg::tensor<float>(net.predict({boxes, scores})[0]).data()[4] == -6);
    // The part before the cut is a model of its own.
    CHECK(net.until("scaled").predict({boxes, scores})[0].shape() == tg::shape{1, 4, 4});
    CHECK(net.until("chosen").predict({boxes, scores})[0].shape() == tg::shape{2, 3});
}

TEST_CASE("distinct values, places and what a condition keeps, of inputs") {
    const support::temporary_folder folder;
    const auto unique =
        loaded(folder, model(node("Relu", {"x"}, {"r"}) + node("Unique", {"r"}, {"y", "i", "k", "n"}) +
                             node("Add", {"y", "y"}, {"twice"}) + value(11, "x", f32, {"n"}) +
                             value(12, "twice", f32, {"m"}) + value(12, "k", i64, {"n"}) + value(12, "n", i64, {"m"})));
    const auto y = unique.predict({tg::tensor<float>{3, -1, 1, 3, -2}});
    const tg::tensor<float> twice(y[0]);
    REQUIRE(twice.shape() == tg::shape{3});
    CHECK(twice.data()[1] == 2);
    CHECK(twice.data()[2] == 6);
    CHECK(tg::tensor<std::int64_t>(y[1]).data()[3] == 2);
    CHECK(tg::tensor<std::int64_t>(y[2]).data()[0] == 2);
    CHECK(unique.predict({tg::tensor<float>{7}})[0].shape() == tg::shape{1});

    // Extents that come from what was counted: a row of zeros for each positive element.
    const auto counted = loaded(folder, model(node("NonZero", {"x"}, {"places"}) + node("Shape", {"places"}, {"s"}) +
                                              node("ConstantOfShape", {"s"}, {"y"}) + value(11, "x", f32, {"n", "2"}) +
                                              value(12, "y", f32, {"2", "m"})));
    CHECK(counted.predict({tg::tensor<float>{{1, 0}, {0, 2}, {3, 4}}})[0].shape() == tg::shape{2, 4});
    CHECK(counted.predict({tg::tensor<float>{{0, 0}}})[0].shape() == tg::shape{2, 0});

    const auto kept = loaded(folder, model(node("Greater", {"x", "one"}, {"c"}) +
                                           node("Compress", {"x", "c"}, {"y"}, attribute("axis", 0)) + real("one", 1) +
                                           value(11, "x", f32, {"n"}) + value(12, "y", f32, {"m"})));
    const tg::tensor<float> few(kept.predict({tg::tensor<float>{1, 2, 0, 5}})[0]);
    REQUIRE(few.shape() == tg::shape{2});
    CHECK(few.data()[1] == 5);
}

TEST_CASE("the bits of floats as integers") {
    const support::temporary_folder folder;
    const auto bits =
        loaded(folder, model(node("Neg", {"x"}, {"n"}) + node("BitCast", {"n"}, {"y"}, attribute("to", 6)) +
                                 value(11, "x", f32, {"n"}) + value(12, "y", 6, {"n"}),
                             26));
    CHECK(tg::tensor<std::int32_t>(bits.predict({tg::tensor<float>{-1}})[0]).data()[0] == 0x3f800000);
}

TEST_CASE("what cannot be imported behind a cut is refused by name, and so is a cut graph within another") {
    const support::temporary_folder folder;
    const std::string ends = value(11, "x", f32, {"n"}) + value(12, "y", f32, {"m"});
    CHECK(refusal(folder, model(node("NonZero", {"x"}, {"z"}) + node("Nonsense", {"x"}, {"y"}) + ends))
              .find("Nonsense 'the Nonsense'") != std::string::npos);
    const auto net =
        loaded(folder, model(node("Compress", {"x", "c"}, {"k"}) + node("Elu", {"k"}, {"y"}, attribute("gamma", 3)) +
                             value(11, "c", boolean, {"n"}) + ends));
    const tg::tensor<bool> condition{true, false};
    CHECK_THROWS_WITH_AS(net.predict({condition, tg::tensor<float>{1, 2}}),
                         doctest::Contains("Elu 'the Elu': attribute gamma = 3"), tg::argument_error);
}

} // namespace load_onnx_counted_test
