// Operators of single nodes against numbers by hand, or against other operators.

#include <io/onnx_files.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace load_onnx_operators_test {

namespace tg = tapegraph;
using namespace onnx_files;

namespace {

using integers = std::vector<std::int64_t>;
constexpr int u64 = 13;

struct operand {
    std::string name;
    tg::any_tensor x;
};
int number_of_type(tg::dtype type) {
    switch (type) {
    case tg::dtype::f32: return f32;
    case tg::dtype::u64: return u64;
    case tg::dtype::i64: return i64;
    case tg::dtype::f64: return 11;
    default: return boolean;
    }
}
// The outputs of a graph whose inputs have these shapes.
std::vector<tg::any_tensor> results(const std::string& nodes, const std::vector<operand>& inputs,
                                    const std::vector<std::pair<std::string, int>>& outputs, int opset = 24) {
    const support::temporary_folder folder;
    std::string graph = nodes;
    std::vector<tg::any_tensor> x;
    for (const operand& o : inputs) {
        std::vector<std::string> dims;
        for (int i = 0; i < o.x.rank(); ++i) dims.push_back(std::to_string(o.x.shape()[i].value));
        graph += value(11, o.name, number_of_type(o.x.type()), dims);
        x.push_back(o.x);
    }
    for (const auto& [name, type] : outputs) graph += value(12, name, type, {});
    return loaded(folder, model(graph, opset)).predict(std::span<const tg::any_tensor>(x));
}
template <class T>
void check_equal(const tg::any_tensor& t, const std::vector<T>& expected, double tolerance = 0) {
    const tg::tensor<T> y(t);
    REQUIRE(y.size() == static_cast<std::int64_t>(expected.size()));
    for (std::int64_t i = 0; i < y.size(); ++i) {
        const T wanted = expected[static_cast<std::size_t>(i)];
        if (tolerance == 0)
            CHECK(y.data()[i] == wanted);
        else
            CHECK(std::fabs(static_cast<double>(y.data()[i]) - static_cast<double>(wanted)) <= tolerance);
    }
}
std::string list(const char* name, const integers& items) {
    return initializer<std::int64_t>(name, i64, {static_cast<std::int64_t>(items.size())}, items);
}
tg::tensor<float> counted(const tg::shape& dims) {
    tg::tensor<float> x(tg::any_tensor(tg::dtype::f32, dims));
    for (std::int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = static_cast<float>(i);
    return x;
}

} // namespace

TEST_CASE("u64 beyond 2^63: order, division, shifts, bits, floating numbers") {
    using words = std::vector<std::uint64_t>;
    const std::uint64_t top = std::uint64_t{1} << 63, most = ~std::uint64_t{0};
    const tg::tensor<std::uint64_t> a{most, top, 7, top + 5, 1}, b{3, most, 2, top + 5, top};
    const auto both = [&](const std::string& type, int result, const std::string& attributes = {}) {
        return results(node(type, {"a", "b"}, {"y"}, attributes), {{"a", a}, {"b", b}}, {{"y", result}})[0];
    };
    check_equal<bool>(both("Less", boolean), {false, true, false, false, true});
    check_equal<bool>(both("GreaterOrEqual", boolean), {true, false, true, true, false});
    check_equal<std::uint64_t>(both("Max", u64), words{most, most, 7, top + 5, top});
    check_equal<std::uint64_t>(both("Div", u64), words{most / 3, 0, 3, 1, 0});
    check_equal<std::uint64_t>(both("Mod", u64), words{0, top, 1, 0, 1});
    check_equal<std::uint64_t>(both("BitwiseXor", u64), words{most ^ 3, most ^ top, 5, 0, top + 1});
    const tg::tensor<std::uint64_t> by{63, 1, 64, 0, 63};
    const auto shifted = [&](const char* direction) {
        return results(node("BitShift", {"a", "by"}, {"y"}, attribute("direction", std::string(direction))),
                       {{"a", a}, {"by", by}}, {{"y", u64}})[0];
    };
    check_equal<std::uint64_t>(shifted("RIGHT"), words{1, top >> 1, 0, top + 5, 0});
    check_equal<std::uint64_t>(shifted("LEFT"), words{top, 0, 0, top + 5, top});
    const auto floats = results(node("Cast", {"a"}, {"y"}, attribute("to", 11)), {{"a", a}}, {{"y", 11}})[0];
    check_equal<double>(floats, {18446744073709551616.0, 9223372036854775808.0, 7, 9223372036854775808.0, 1});
    check_equal<std::uint64_t>(results(node("Cast", {"x"}, {"y"}, attribute("to", u64)),
                                       {{"x", tg::tensor<double>{0x1p63, 3.75}}}, {{"y", u64}})[0],
                               words{top, 3});
    const auto largest =
        results(node("TopK", {"a", "k"}, {"y", "i"}) + list("k", {2}), {{"a", a}}, {{"y", u64}, {"i", i64}});
    check_equal<std::uint64_t>(largest[0], words{most, top + 5});
    check_equal<std::int64_t>(largest[1], {0, 3});
    check_equal<std::int64_t>(results(node("ArgMin", {"a"}, {"y"}), {{"a", a}}, {{"y", i64}})[0], {4});
    check_equal<std::uint64_t>(results(node("ReduceMax", {"a"}, {"y"}), {{"a", a}}, {{"y", u64}})[0], words{most});
}

TEST_CASE("clips between known numbers are one operation and keep what is not a number") {
    const float inf = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> items{-inf, -7, -1.5F, -0.25F, -0.0F, 0, 0.5F, 2, 6, 6.5F, 1e30F, inf, none};
    const auto count = static_cast<std::int64_t>(items.size());
    tg::tensor<float> x(tg::any_tensor(tg::dtype::f32, {count}));
    std::copy(items.begin(), items.end(), x.mutable_data());
    struct bounds {
        float low, high; // NaN: none
        const tg::ir::operation* op;
    };
    using tg::ir::descriptor_of;
    for (const bounds& b :
         {bounds{0, 6, &descriptor_of<tg::relu6_op>}, bounds{0, none, &descriptor_of<tg::relu_op>},
          bounds{-1.5F, 2, &descriptor_of<tg::clip_op>}, bounds{0, 5, &descriptor_of<tg::clip_op>},
          bounds{2, -1, &descriptor_of<tg::clip_op>}, bounds{-inf, 6, &descriptor_of<tg::clip_op>},
          bounds{-1, none, &descriptor_of<tg::maximum_op>}, bounds{none, 6, &descriptor_of<tg::minimum_op>}})
        for (const int opset : {6, 11, 17}) {
            CAPTURE(b.low);
            CAPTURE(b.high);
            CAPTURE(opset);
            const bool low = !std::isnan(b.low), high = !std::isnan(b.high);
            const auto as_number = [](const char* name, float v) {
                const std::string bytes(reinterpret_cast<const char*>(&v), sizeof v);
                return text(5, text(1, name) + varint(2 * 8 + 5) + bytes + number(20, 1));
            };
            std::string graph;
            if (opset < 11)
                graph = node("Clip", {"x"}, {"y"},
                             (low ? as_number("min", b.low) : "") + (high ? as_number("max", b.high) : ""));
            else
                graph = node("Clip", {"x", low ? "low" : "", high ? "high" : ""}, {"y"}) +
                        initializer<float>("low", f32, {}, {b.low}) + initializer<float>("high", f32, {}, {b.high});
            const support::temporary_folder folder;
            const tg::io::onnx_model net = loaded(
                folder, model(graph + value(11, "x", f32, {std::to_string(count)}) + value(12, "y", f32, {}), opset));
            const tg::tensor<float> y(net.predict({x})[0]);
            for (std::int64_t i = 0; i < count; ++i) {
                const float from = items[static_cast<std::size_t>(i)];
                float wanted = low && from < b.low ? b.low : from;
                wanted = high && wanted > b.high ? b.high : wanted;
                CAPTURE(from);
                CHECK((std::isnan(from) ? std::isnan(y.data()[i]) : y.data()[i] == wanted));
            }
            tg::ir::model_trace t;
            net.trace_prediction(t);
            int found = 0, others = 0;
            for (const tg::ir::entry& e : t.nodes)
                if (e.op->kind == tg::operation_kind::map) ++(e.op == b.op ? found : others);
            CHECK(found == 1);
            CHECK(others == 0);
        }
}

TEST_CASE("the extremes of no elements") {
    const tg::any_tensor none(tg::dtype::f32, {2, 0, 3});
    const auto y = results(node("ReduceMax", {"x", "axes"}, {"y"}, attribute("keepdims", 0)) + list("axes", {1}),
                           {{"x", none}}, {{"y", f32}})[0];
    CHECK(y.shape() == tg::shape{2, 3});
    CHECK(tg::tensor<float>(y).data()[5] == -std::numeric_limits<float>::infinity());
    const auto low =
        results(node("ReduceMin", {"x", "axes"}, {"y"}) + list("axes", {1}), {{"x", none}}, {{"y", f32}})[0];
    CHECK(low.shape() == tg::shape{2, 1, 3});
    CHECK(tg::tensor<float>(low).data()[0] == std::numeric_limits<float>::infinity());
    // Limits that doubles do not hold.
    const std::string of = list("axes", {0});
    const tg::any_tensor signed_none(tg::dtype::i64, {0, 2}), unsigned_none(tg::dtype::u64, {0, 2});
    const auto extreme = [&](const char* type, const tg::any_tensor& x, int number) {
        return results(node(type, {"x", "axes"}, {"y"}, attribute("keepdims", 0)) + of, {{"x", x}}, {{"y", number}})[0];
    };
    constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    check_equal<std::int64_t>(extreme("ReduceMax", signed_none, i64), {lowest, lowest});
    check_equal<std::int64_t>(extreme("ReduceMin", signed_none, i64), {-(lowest + 1), -(lowest + 1)});
    check_equal<std::uint64_t>(extreme("ReduceMax", unsigned_none, u64), std::vector<std::uint64_t>{0, 0});
    check_equal<std::uint64_t>(extreme("ReduceMin", unsigned_none, u64), std::vector<std::uint64_t>{most, most});
}

TEST_CASE("the places of maxima, and back to them") {
    const tg::tensor<float> x{
        {{{1, 9, 2, 0}, {3, 4, 8, 8}, {5, 6, 7, 1}}, {{-1, -2, -3, -4}, {-5, -6, 0, -8}, {-9, -1, -2, -3}}}};
    const std::string window = attribute("kernel_shape", integers{2, 2}) + attribute("strides", integers{1, 2}) +
                               attribute("pads", integers{0, 0, 1, 0});
    const auto pooled = results(node("MaxPool", {"x"}, {"y", "i"}, window), {{"x", x}}, {{"y", f32}, {"i", i64}});
    REQUIRE(pooled[1].shape() == tg::shape{1, 2, 3, 2});
    check_equal<float>(pooled[0], {9, 8, 6, 8, 6, 7, -1, 0, -1, 0, -1, -2});
    check_equal<std::int64_t>(pooled[1], {1, 6, 9, 6, 9, 10, 12, 18, 21, 18, 21, 22});
    const auto columns = results(node("MaxPool", {"x"}, {"y", "i"}, window + attribute("storage_order", 1)), {{"x", x}},
                                 {{"y", f32}, {"i", i64}});
    CHECK(tg::tensor<std::int64_t>(columns[1]).data()[1] == 7); // row 1, column 2: 2 * 3 + 1
    const auto back =
        results(node("MaxUnpool", {"y", "i"}, {"z"}, window), {{"y", pooled[0]}, {"i", pooled[1]}}, {{"z", f32}})[0];
    CHECK(back.shape() == tg::shape{1, 2, 3, 4});
    check_equal<float>(back, {0, 9, 0, 0, 0, 0, 8, 0, 0, 6, 7, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, -1, -2, 0});
}

TEST_CASE("blocks of columns are summed into images") {
    // Ones: each element of the image is the number of blocks that hold it.
    tg::tensor<float> ones(tg::any_tensor(tg::dtype::f32, {1, 4, 6}));
    for (std::int64_t i = 0; i < ones.size(); ++i) ones.mutable_data()[i] = 1;
    const auto y = results(node("Col2Im", {"x", "image", "block"}, {"y"}, attribute("pads", integers{0, 1, 0, 0})) +
                               list("image", {3, 3}) + list("block", {2, 2}),
                           {{"x", ones}}, {{"y", f32}})[0];
    CHECK(y.shape() == tg::shape{1, 1, 3, 3});
    check_equal<float>(y, {2, 2, 1, 4, 4, 2, 2, 2, 1});
}

TEST_CASE("a deformable convolution without offsets is a convolution; with whole ones it is one of a moved image") {
    const tg::tensor<float> x = counted({1, 2, 4, 5});
    const auto w = counted({3, 2, 2, 3});
    const std::string window = attribute("pads", integers{1, 0, 0, 1}) + attribute("strides", integers{1, 2});
    const auto plain = results(node("Conv", {"x", "w"}, {"y"}, window), {{"x", x}, {"w", w}}, {{"y", f32}})[0];
    tg::any_tensor none(tg::dtype::f32, {1, 12, 4, 2});
    tg::tensor<float> offsets(none);
    for (std::int64_t i = 0; i < offsets.size(); ++i) offsets.mutable_data()[i] = 0;
    const auto deformed = [&] {
        return results(node("DeformConv", {"x", "w", "o"}, {"y"}, window), {{"x", x}, {"w", w}, {"o", offsets}},
                       {{"y", f32}})[0];
    };
    const auto as_floats = [](const tg::any_tensor& t) {
        const tg::tensor<float> y(t);
        return std::vector<float>(y.data(), y.data() + y.size());
    };
    check_equal<float>(deformed(), as_floats(plain), 1e-3);
    for (std::int64_t i = 0; i < offsets.size(); ++i)
        offsets.mutable_data()[i] = i / 8 % 2 == 0 ? 1.0f : 0.0f; // a row down
    const auto moved =
        results(node("Slice", {"x", "b", "e", "axes"}, {"s"}) + node("Pad", {"s", "p"}, {"m"}) +
                    node("Conv", {"m", "w"}, {"y"},
                         attribute("pads", integers{0, 0, 0, 1}) + attribute("strides", integers{1, 2})) +
                    list("b", {0}) + list("e", {4}) + list("axes", {2}) + list("p", {0, 0, 0, 0, 0, 0, 1, 0}),
                {{"x", x}, {"w", w}}, {{"y", f32}})[0];
    check_equal<float>(deformed(), as_floats(moved), 1e-3);
}

TEST_CASE("regions of an image that is linear have their centres' values") {
    tg::tensor<float> x(tg::any_tensor(tg::dtype::f32, {1, 1, 6, 8}));
    for (std::int64_t i = 0; i < 48; ++i) x.mutable_data()[i] = static_cast<float>(10 * (i / 8) + i % 8);
    const tg::tensor<float> boxes{{1, 1, 5, 3}, {2, 0.5f, 4, 4.5f}};
    const tg::tensor<std::int64_t> batch{0, 0};
    const auto y = results(
        node("RoiAlign", {"x", "boxes", "batch"}, {"y"}, attribute("output_width", 2) + attribute("sampling_ratio", 2)),
        {{"x", x}, {"boxes", boxes}, {"batch", batch}}, {{"y", f32}})[0];
    CHECK(y.shape() == tg::shape{2, 1, 1, 2});
    check_equal<float>(y, {15 + 1.5f, 15 + 3.5f, 20 + 2, 20 + 3}, 1e-5); // centres less half a pixel
    // As many points in a bin as it has pixels: of a linear image, the same centres, whether or not the regions are
    // known. A region without a size has no points.
    const tg::tensor<float> three{{1, 1, 5, 3}, {2, 0.5f, 4, 4.5f}, {3, 3, 3, 3}};
    const tg::tensor<std::int64_t> of_three{0, 0, 0};
    for (const char* mode : {"avg", "max"}) {
        const auto z = results(
            node("RoiAlign", {"x", "boxes", "batch"}, {"y"}, attribute("output_width", 2) + attribute("mode", mode)),
            {{"x", x}, {"boxes", three}, {"batch", of_three}}, {{"y", f32}})[0];
        REQUIRE(z.shape() == tg::shape{3, 1, 1, 2});
        if (mode == std::string("avg")) check_equal<float>(z, {15 + 1.5f, 15 + 3.5f, 20 + 2, 20 + 3, 0, 0}, 1e-5);
        // The largest of the weighted neighbours: points of the first region lie on pixels.
        if (mode == std::string("max")) CHECK(tg::tensor<float>(z).data()[0] == doctest::Approx(22));
    }
    const tg::tensor<float> theta{{{1, 0, 0}, {0, 1, 0}}};
    const auto grid = results(node("AffineGrid", {"theta", "size"}, {"y"}) + list("size", {1, 1, 2, 4}),
                              {{"theta", theta}}, {{"y", f32}})[0];
    CHECK(grid.shape() == tg::shape{1, 2, 4, 2});
    check_equal<float>(grid,
                       {-0.75f, -0.5f, -0.25f, -0.5f, 0.25f, -0.5f, 0.75f, -0.5f, -0.75f, 0.5f, -0.25f, 0.5f, 0.25f,
                        0.5f, 0.75f, 0.5f},
                       1e-6);
}

TEST_CASE("spectra of a cosine, mel bands, determinants") {
    tg::tensor<float> x(tg::any_tensor(tg::dtype::f32, {1, 24, 1}));
    for (int i = 0; i < 24; ++i) x.mutable_data()[i] = static_cast<float>(std::cos(2 * 3.14159265358979 * 2 * i / 8));
    const auto y =
        results(node("STFT", {"x", "step", "", "length"}, {"y"}) + initializer<std::int64_t>("step", i64, {}, {4}) +
                    initializer<std::int64_t>("length", i64, {}, {8}),
                {{"x", x}}, {{"y", f32}})[0];
    REQUIRE(y.shape() == tg::shape{1, 5, 5, 2});
    for (int i = 0; i < 50; ++i) CHECK(std::fabs(tg::tensor<float>(y).data()[i] - (i % 10 == 4 ? 4 : 0)) < 1e-5);
    const auto scalar = [](const char* name, std::int64_t n) { return initializer<std::int64_t>(name, i64, {}, {n}); };
    const auto mel = results(node("MelWeightMatrix", {"bands", "length", "rate", "low", "high"}, {"w"}) +
                                 node("MatMul", {"x", "w"}, {"y"}) + scalar("bands", 3) + scalar("length", 16) +
                                 scalar("rate", 8000) + initializer<float>("low", f32, {}, {0}) +
                                 initializer<float>("high", f32, {}, {4000}),
                             {{"x", tg::tensor<float>{{1, 1, 1, 1, 1, 1, 1, 1, 1}}}}, {{"y", f32}})[0];
    // 2595 log10(1 + 4000 / 700) / 5 = 429.2: edges at 0, 324, 799, 1493, 2508 Hz, bins 0, 0, 1, 3, 5
    check_equal<float>(mel, {1, 1.5f, 2}, 1e-6);
    const tg::tensor<float> m{{{0, 2, 1}, {1, 0, 3}, {4, -1, 0}}, {{1, 2, 3}, {2, 4, 6}, {0, 1, 1}}};
    check_equal<float>(results(node("Det", {"x"}, {"y"}), {{"x", m}}, {{"y", f32}})[0], {23, 0}, 1e-5);
}

TEST_CASE("states that are carried: caches, causal convolutions, linear attention") {
    const tg::tensor<float> cache{{{1, 2, 3}}, {{4, 5, 6}}}, update{{{8, 9}}, {{6, 7}}};
    const auto y = results(node("TensorScatter", {"c", "u", "w"}, {"y"},
                                attribute("axis", -1) + attribute("mode", std::string("circular"))),
                           {{"c", cache}, {"u", update}, {"w", tg::tensor<std::int64_t>{2, 0}}}, {{"y", f32}})[0];
    check_equal<float>(y, {9, 2, 8, 6, 7, 6});
    const tg::tensor<float> x{{{1, 2, 3}}}, w{{{1, 10}}}, past{{{5}}};
    const auto conv = results(node("CausalConvWithState", {"x", "w", "", "p"}, {"y", "s"}),
                              {{"x", x}, {"w", w}, {"p", past}}, {{"y", f32}, {"s", f32}}, 27);
    check_equal<float>(conv[0], {15, 21, 32});
    check_equal<float>(conv[1], {3});
    // One head of size 1: s = 2 * 3, then s = e^g s + b k (v - e^g s k), read by q with scale 1.
    const auto step = [](float a, float b) { return tg::tensor<float>{{{a}, {b}}}; };
    const auto read = results(
        node("LinearAttention", {"q", "k", "v", "", "g", "b"}, {"y", "s"},
             attribute("q_num_heads", 1) + attribute("kv_num_heads", 1)),
        {{"q", step(1, 2)}, {"k", step(1, 1)}, {"v", step(6, 4)}, {"g", step(0, std::log(0.5f))}, {"b", step(1, 0.5f)}},
        {{"y", f32}, {"s", f32}}, 27);
    check_equal<float>(read[0], {6, 7}, 1e-5);
    check_equal<float>(read[1], {3.5f}, 1e-5);
}

TEST_CASE("a recurrent layer by its steps: peepholes, clipped sums, other activations") {
    // One unit, gates i, o, f, c: i = x + c, f = 0, new = x, c = i x, o = x + c, y = o c, with sums limited to 2.
    const tg::tensor<float> x{{{1}}, {{-1}}};
    const std::string constants =
        initializer<float>("w", f32, {1, 4, 1}, {1, 1, 0, 1}) + initializer<float>("r", f32, {1, 4, 1}, {0, 0, 0, 0}) +
        initializer<float>("c0", f32, {1, 1, 1}, {2}) + initializer<float>("p", f32, {1, 3}, {1, 1, 0});
    const std::string clip = text(5, text(1, "clip") + std::string("\x15\0\0\0\x40", 5) + number(20, 1));
    const auto y = results(node("LSTM", {"x", "w", "r", "", "", "", "c0", "p"}, {"y", "h", "c"},
                                attribute("hidden_size", 1) +
                                    attribute("activations", std::vector<std::string>{"Affine", "Affine", "Affine"}) +
                                    attribute("activation_alpha", std::vector<float>{1, 1, 1}) +
                                    attribute("activation_beta", std::vector<float>{0, 0, 0}) + clip) +
                               constants,
                           {{"x", x}}, {{"y", f32}, {"h", f32}, {"c", f32}}, 14);
    check_equal<float>(y[0], {4, 2}); // c is 2, then -1; o is 2, then -2
    check_equal<float>(y[1], {2});
    check_equal<float>(y[2], {-1});
}

} // namespace load_onnx_operators_test
