// Sequences of tensors, whose lengths are known, and loops whose bodies read what lies around them.

#include <tapegraph/io/load_onnx.hpp>

#include <io/onnx_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace load_onnx_sequences_test {

namespace tg = tapegraph;
using namespace onnx_files;

namespace {

std::string number_of(const std::string& name, std::int64_t v) { return initializer<std::int64_t>(name, i64, {}, {v}); }
std::string list_of(const std::string& name, const std::vector<std::int64_t>& v) {
    return initializer<std::int64_t>(name, i64, {static_cast<std::int64_t>(v.size())}, v);
}
// A graph as an attribute.
std::string body(const std::string& name, const std::string& graph) {
    return text(5, text(1, name) + text(6, graph) + number(20, 5));
}
tg::tensor<float> column(const std::vector<float>& items) {
    const auto rows = static_cast<std::int64_t>(items.size());
    auto x = tg::tensor<float>::uninitialized({rows, 1});
    std::copy(items.begin(), items.end(), static_cast<float*>(x.write()));
    return x;
}
std::vector<float> items_of(const tg::any_tensor& t) {
    const tg::tensor<float> x(t);
    return {x.data(), x.data() + x.size()};
}

} // namespace

TEST_CASE("tensors are put into sequences, counted from either end, and joined") {
    const support::temporary_folder folder;
    const std::string start = value(11, "x", f32, {"n", "1"}) + value(11, "y", f32, {"n", "1"}) +
                              number_of("first", 0) + number_of("last", -1) + number_of("before", -3);
    const auto net =
        loaded(folder,
               model(node("SequenceConstruct", {"x", "y", "x"}, {"a"}) + node("SequenceErase", {"a", "before"}, {"b"}) +
                     node("Neg", {"x"}, {"minus"}) + node("SequenceInsert", {"b", "minus", "last"}, {"c"}) + // y, -x, x
                     node("SequenceInsert", {"c", "y"}, {"d"}) + node("SequenceErase", {"d"}, {"e"}) +
                     node("Identity", {"e"}, {"f"}) + node("SequenceLength", {"f"}, {"length"}) +
                     node("ConcatFromSequence", {"f"}, {"all"}, attribute("axis", 1)) +
                     node("ConcatFromSequence", {"f"}, {"raised"}, attribute("axis", -1) + attribute("new_axis", 1)) +
                     node("SequenceAt", {"f", "first"}, {"head"}) + start + value(12, "all", f32, {"n", "3"}) +
                     value(12, "raised", f32, {"n", "1", "3"}) + value(12, "head", f32, {"n", "1"}) +
                     value(12, "length", i64, {})));
    for (const std::int64_t rows : {1, 3}) {
        std::vector<float> x, y, all;
        for (std::int64_t i = 0; i < rows; ++i) {
            x.push_back(static_cast<float>(i + 1)), y.push_back(static_cast<float>(10 * i));
            for (const float v : {y.back(), -x.back(), x.back()}) all.push_back(v);
        }
        const auto results = net.predict({column(x), column(y)});
        CHECK(items_of(results[0]) == all);
        CHECK(items_of(results[1]) == all);
        CHECK(results[1].shape() == tg::shape{rows, 1, 3});
        CHECK(items_of(results[2]) == y);
        CHECK(tg::tensor<std::int64_t>(results[3]).item() == 3);
    }
}

TEST_CASE("a tensor is split into a sequence: by ones, by a size, by sizes") {
    const support::temporary_folder folder;
    const auto split = [&](const std::string& sizes, const std::string& attributes, std::int64_t at) {
        const std::vector<std::string> in =
            sizes.empty() ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "s"};
        return loaded(folder, model(node("SplitToSequence", in, {"parts"}, attributes) +
                                    node("SequenceAt", {"parts", "at"}, {"y"}) + sizes + number_of("at", at) +
                                    value(11, "x", f32, {"5", "1"}) + value(12, "y", f32, {"a", "b"})));
    };
    const auto x = column({1, 2, 3, 4, 5});
    CHECK(items_of(split("", "", -2).predict({x})[0]) == std::vector<float>{4});
    CHECK(split("", "", -2).predict({x})[0].shape() == tg::shape{1, 1});
    CHECK(split("", attribute("keepdims", 0), 0).predict({x})[0].shape() == tg::shape{1});
    CHECK(items_of(split(number_of("s", 2), "", 2).predict({x})[0]) == std::vector<float>{5});
    CHECK(items_of(split(list_of("s", {1, 0, 4}), "", 2).predict({x})[0]) == std::vector<float>{2, 3, 4, 5});
    CHECK(split(list_of("s", {1, 0, 4}), "", 1).predict({x})[0].shape() == tg::shape{0, 1});
}

TEST_CASE("a loop of known steps whose body reads weights and inputs around it") {
    const support::temporary_folder folder;
    const std::string graph = node("Gather", {"w", "i"}, {"row"}) + node("Add", {"row", "x"}, {"sum"}) +
                              node("Identity", {"go"}, {"on"}) + node("SequenceInsert", {"s", "sum"}, {"t"}) +
                              value(11, "i", i64, {}) + value(11, "go", boolean, {}) + value(11, "s", f32, {}) +
                              value(12, "on", boolean, {}) + value(12, "t", f32, {}) + value(12, "row", f32, {"2"});
    const auto net =
        loaded(folder, model(node("SequenceEmpty", {}, {"none"}) +
                             node("Loop", {"steps", "yes", "none"}, {"all", "rows"}, body("body", graph)) +
                             node("ConcatFromSequence", {"all"}, {"y"}, attribute("axis", 0)) + number_of("steps", 3) +
                             initializer<std::uint8_t>("yes", boolean, {}, {1}) +
                             initializer<float>("w", f32, {3, 2}, {1, 2, 3, 4, 5, 6}) + value(11, "x", f32, {"2"}) +
                             value(12, "y", f32, {"6"}) + value(12, "rows", f32, {"3", "2"})));
    const auto results = net.predict({tg::tensor<float>{10, 20}});
    CHECK(items_of(results[0]) == std::vector<float>{11, 22, 13, 24, 15, 26});
    CHECK(items_of(results[1]) == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(results[1].shape() == tg::shape{3, 2});
    CHECK(net.variables().size() == 1);
}

TEST_CASE("what is wrong with sequences is refused by node and reason") {
    const support::temporary_folder folder;
    const std::string x = value(11, "x", f32, {"4", "1"}), y = value(12, "y", f32, {"n"});
    const auto after = [&](const std::string& nodes) {
        return refusal(folder,
                       model(node("SequenceConstruct", {"x", "x"}, {"s"}) + nodes + number_of("at", 2) + x + y));
    };
    CHECK(after(node("Neg", {"s"}, {"y"})).find("Neg 'the Neg': operand 0 is a sequence") != std::string::npos);
    CHECK(after(node("SequenceAt", {"s", "at"}, {"y"})).find("position 2 of 2") != std::string::npos);
    CHECK(after(node("SequenceAt", {"x", "at"}, {"y"})).find("operand 0 is no sequence") != std::string::npos);
    CHECK(after(node("Identity", {"s"}, {"y"})).find("'y' is a sequence, not a tensor") != std::string::npos);
    CHECK(after(node("SequenceConstruct", {"s"}, {"y"})).find("a sequence of sequences") != std::string::npos);
    CHECK(after(node("SequenceEmpty", {}, {"e"}) + node("ConcatFromSequence", {"e"}, {"y"}, attribute("axis", 0)))
              .find("of an empty sequence") != std::string::npos);
    CHECK(after(node("SequenceEmpty", {}, {"e"}) + node("SequenceErase", {"e"}, {"f"}) +
                node("SequenceAt", {"f", "at"}, {"y"}))
              .find("of an empty sequence") != std::string::npos);
    CHECK(after(node("SplitToSequence", {"x", "at"}, {"p"}, attribute("axis", 2)) +
                node("SequenceAt", {"p", "at"}, {"y"}))
              .find("axis 2 of 2 axes") != std::string::npos);
    CHECK(after(node("Transpose", {"x"}, {"z"}) + node("SequenceConstruct", {"x", "z"}, {"t"}) +
                node("ConcatFromSequence", {"t"}, {"y"}, attribute("axis", 0)))
              .find("ConcatFromSequence 'the ConcatFromSequence'") != std::string::npos);
}

} // namespace load_onnx_sequences_test
