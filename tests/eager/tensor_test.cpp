#include <support/messages.hpp>

#include <tapegraph/tensor.hpp>

#include <doctest/doctest.h>

#include <array>
#include <iterator>
#include <list>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tensor_test {

namespace tg = tapegraph;
using support::message_of;
using tg::tensor;

namespace {
template <class T>
std::string printed(const tensor<T>& t) {
    std::ostringstream out;
    out << t;
    return out.str();
}
} // namespace

TEST_CASE("tensor: made from numbers, lists, ranges") {
    const tensor<float> scalar = 2.5f;
    CHECK(scalar.rank() == 0);
    CHECK(scalar.size() == 1);
    CHECK(scalar.item() == 2.5f);
    CHECK(static_cast<float>(scalar) == 2.5f);

    const tensor<float> empty;
    CHECK(empty.shape() == tg::shape{0});
    CHECK(empty.to_vector().empty());

    const tensor<double> row{1, 2, 3};
    CHECK(row.shape() == tg::shape{3});
    const tensor<double> matrix({{1, 2, 3}, {4, 5, 6}});
    CHECK(matrix.shape() == tg::shape{2, 3});
    CHECK(matrix.rank() == 2);
    CHECK(matrix.to_vector() == std::vector<double>{1, 2, 3, 4, 5, 6});
    const tensor<int> cube({{{1, 2}}, {{3, 4}}, {{5, 6}}});
    CHECK(cube.shape() == tg::shape{3, 1, 2});
    CHECK(cube(2, 0, 1) == 6);

    const std::vector<int> source{1, 2, 3, 4};
    CHECK(tg::from_range<float>(source, {2, 2})(1, 0) == 3.0f);
    CHECK(tg::zeros<float>({2, 3}).to_vector() == std::vector<float>(6, 0.0f));
    CHECK(tg::ones<double>({}).item() == 1);
    CHECK(tg::full<int>({2}, 7).to_vector() == std::vector<int>{7, 7});
    CHECK(tg::arange<int>(4, 10, -3).to_vector() == std::vector<int>{10, 7, 4, 1});
    CHECK(tg::zeros<float>({3, 0, 2}).size() == 0);
    CHECK(tg::zeros<bool>({2}).to_vector() == std::vector<bool>{false, false});
}

namespace {
template <class T, class U>
concept listed = requires(U value) {
    tensor<T>{{value, value}, {value, value}};
};
} // namespace

TEST_CASE("tensor: braces nest as deep as the rank") {
    const tensor<float> column{{1}, {2}, {3}};
    CHECK(column.shape() == tg::shape{3, 1});
    CHECK(tensor<float>{{1}}.shape() == tg::shape{1, 1});
    CHECK(tensor<double>{{{1}}, {{2}}}.shape() == tg::shape{2, 1, 1});
    CHECK(tensor<float>{5}.shape() == tg::shape{1});
    CHECK(tensor<float>{}.shape() == tg::shape{0});
    CHECK(tensor<float>{{}, {}}.shape() == tg::shape{2, 0});
    CHECK(tensor<int>{{{{{{{{7}}}}}}}}.shape() == tg::shape{1, 1, 1, 1, 1, 1, 1, 1});
    const int whole = 3;
    const double real = 0.1;
    const tensor<float> mixed{{1, 2.5f, real}, {whole, -1, 4u}};
    CHECK(mixed.to_vector() == std::vector<float>{1, 2.5f, 0.1f, 3, -1, 4});
    CHECK(tensor<bool>{{true, false}, {false, true}}(1, 1));
    CHECK(static_cast<float>(tensor<tg::half>{{0.5, 1}, {2, 3}}(0, 0)) == 0.5f);
    CHECK(tensor<std::int8_t>{-128, 127}(0) == -128);
    CHECK(tensor<std::uint64_t>{~std::uint64_t{0}}(0) == ~std::uint64_t{0});
    static_assert(listed<int, long> && listed<float, int> && listed<float, double> && !listed<int, double>);

    CHECK(message_of([] {
              tensor<float>{{{1, 2}, {3, 4}}, {{5, 6}, {7}}};
          }) == "tensor: ragged list: [1, 1] has length 1, [0, 0] has length 2");
    CHECK(message_of([] { tensor<float>{{1, 2}, 3}; }) == "tensor: ragged list: [1] is a number, [0] has length 2");
    CHECK(message_of([] { tensor<float>{1, {2, 3}}; }) == "tensor: ragged list: [1] has length 2, [0] is a number");
    CHECK(message_of([] { tensor<float>{{{{{{{{{7}}}}}}}}}; }) == "tensor: lists are nested more than 8 deep");
    CHECK(message_of([] { tensor<std::int8_t>{128}; }) == "tensor: 128 in a list of i8");
    CHECK(message_of([] { tensor<std::uint8_t>{{-1}}; }) == "tensor: -1 in a list of u8");
    CHECK(message_of([] { tensor<std::int64_t>{~std::uint64_t{0}}; }) ==
          "tensor: 18446744073709551615 in a list of i64");
}

TEST_CASE("tensor: made from containers, spans, pointers, iterators") {
    const std::vector<double> values{1, 2, 3, 4};
    CHECK(tensor<float>(values).shape() == tg::shape{4});
    CHECK(tensor<float>(values, {2, 2})(1, 0) == 3);
    CHECK(tensor<float>{values}(3) == 4);
    CHECK(tensor<float>(std::span(values).first(2)).to_vector() == std::vector<float>{1, 2});
    CHECK(tensor<int>(std::array<long, 2>{5, 6})(1) == 6);
    const float raw[]{1, 2, 3, 4, 5, 6};
    CHECK(tensor<float>(raw).size() == 6);
    CHECK(tensor<double>(&raw[0], {2, 3})(1, 2) == 6);
    const std::list<int> listed{7, 8, 9};
    CHECK(tensor<float>(listed).to_vector() == std::vector<float>{7, 8, 9});
    CHECK(tensor<float>(std::next(listed.begin()), listed.end()).to_vector() == std::vector<float>{8, 9});
    CHECK(tensor<bool>(std::vector<bool>{true, false}).to_vector() == std::vector<bool>{true, false});
    CHECK(tensor<float>(std::vector<tg::half>{tg::half(0.5f)})(0) == 0.5f);
    std::istringstream text("1 2.5 3");
    CHECK(tensor<double>(std::istream_iterator<double>(text), std::istream_iterator<double>()).to_vector() ==
          std::vector<double>{1, 2.5, 3});
    CHECK(tensor<float>(std::vector<float>()).shape() == tg::shape{0});
    CHECK(message_of([&] { tensor<float>(values, {3}); }) == "tensor: 4 values for shape [3]");
    CHECK(message_of([&] { tensor<float>(values, {-4}); }) == "tensor: negative extent in shape [-4]");
    // A vector is no tensor by itself: what it becomes is said by name.
    static_assert(!std::is_convertible_v<std::vector<float>, tensor<float>>);
    static_assert(!std::is_constructible_v<tensor<float>, std::vector<std::string>>);
}

TEST_CASE("creators take extents one by one") {
    CHECK(tg::zeros<float>(5).shape() == tg::shape{5});
    CHECK(tg::ones<double>(2, 3).to_vector() == std::vector<double>(6, 1));
    CHECK(tg::full<int>(3, 7).to_vector() == std::vector<int>{7, 7, 7});
    CHECK(tg::zeros<float>(std::vector<int>(4).size()).size() == 4);
    CHECK(tg::array_equal(tg::eye<float>(2), tensor<float>{{1, 0}, {0, 1}}));
    CHECK(tg::array_equal(tg::eye<int>(2, 3, 1), tensor<int>{{0, 1, 0}, {0, 0, 1}}));
    CHECK(tg::array_equal(tg::eye<int>(3, 2, -2), tensor<int>{{0, 0}, {0, 0}, {1, 0}}));
    CHECK(tg::linspace<double>(0, 1, 5).to_vector() == std::vector<double>{0, 0.25, 0.5, 0.75, 1});
    CHECK(tg::linspace<float>(2, 3, 1).to_vector() == std::vector<float>{2});
    CHECK(tg::array_equal(tg::random::uniform<float>(2, 3), tg::random::uniform<float>({2, 3})));
    CHECK(tg::array_equal(tg::random::normal<double>(7), tg::random::normal<double>({7})));
    CHECK(message_of([] { tg::zeros<float>(2, -1); }) == "tensor: negative extent in shape [2, -1]");
}

TEST_CASE("tensor: what does not fit is refused with the shapes in the message") {
    CHECK(message_of([] {
              tensor<float>({{1, 2}, {3}});
          }) == "tensor: ragged list: [1] has length 1, [0] has length 2");
    CHECK(message_of([] {
              tensor<float>({{{1, 2}}, {{3, 4}, {5, 6}}});
          }) == "tensor: ragged list: [1] has length 2, [0] has length 1");
    CHECK(message_of([] {
              tg::from_range<float>(std::vector<float>(5), {2, 3});
          }) == "tensor: 5 values for shape [2, 3]");
    CHECK(message_of([] { tg::zeros<float>({2, -1}); }) == "tensor: negative extent in shape [2, -1]");
    const tensor<float> t({{1, 2, 3}, {4, 5, 6}});
    CHECK_THROWS_AS(t(1), tg::shape_error);
    CHECK(message_of([&] { t(1); }) == "tensor: 1 indices for shape [2, 3]");
    CHECK_THROWS_AS(t(0, 3), tg::range_error);
    CHECK(message_of([&] { t(0, 3); }) == "tensor: index 3 on axis 1 is outside shape [2, 3]");
    CHECK(message_of([&] { t(-1, 0); }) == "tensor: index -1 on axis 0 is outside shape [2, 3]");
    CHECK(message_of([&] { (void)t.item(); }) == "item: the tensor has shape [2, 3]");
    CHECK_THROWS_AS(tensor<double>(static_cast<const tg::any_tensor&>(t)), tg::dtype_error);
}

// What numpy.array_str of NumPy 2.4 with set_printoptions(legacy="2.2") says of the same arrays.
TEST_CASE("tensor: printed as NumPy prints it") {
    CHECK(printed(tensor<float>(2.0f)) == "2.");
    CHECK(printed(tensor<double>{1, 2.5, -3}) == "[ 1.   2.5 -3. ]");
    CHECK(printed(tensor<double>{{100, 20, 3}, {1.5, -2.25, 0}}) ==
          "[[100.    20.     3.  ]\n [  1.5   -2.25   0.  ]]");
    CHECK(printed(tensor<float>{1.0f / 3, 2.0f / 3, 123.456f}) == "[  0.33333334   0.6666667  123.456     ]");
    CHECK(printed(tensor<double>{1.0 / 3, 1e3 / 7}) == "[  0.33333333 142.85714286]");
    CHECK(printed(tensor<double>{0.1, 1e-9}) == "[1.e-01 1.e-09]");
    CHECK(printed(tensor<double>{1.23456789012e10, -1}) == "[ 1.23456789e+10 -1.00000000e+00]");
    CHECK(printed(tensor<float>{16777216, 1}) == "[1.6777216e+07 1.0000000e+00]");
    CHECK(printed(tensor<double>{0.0001234, 0.12}) == "[0.0001234 0.12     ]");
    CHECK(printed(tensor<double>{1, NAN, INFINITY}) == "[ 1. nan inf]");
    CHECK(printed(tensor<double>{1.25, -INFINITY, -NAN}) == "[1.25 -inf  nan]");
    CHECK(printed(tensor<double>{-0.0, 0}) == "[-0.  0.]");
    CHECK(printed(tensor<tg::half>{0.1, 1, 10.0}) == "[ 0.1  1.  10. ]");
    CHECK(printed(tensor<tg::half>{-25984, 15000}) == "[-25984.  15000.]");
    CHECK(printed(tensor<int>{{1, -20}, {300, 4}}) == "[[  1 -20]\n [300   4]]");
    CHECK(printed(tensor<std::uint8_t>{1, 200}) == "[  1 200]");
    CHECK(printed(tensor<bool>{true, false}) == "[ true false]");
    CHECK(printed(tensor<int>(std::vector<int>{1, 2, 3, 4}, {2, 2, 1})) == "[[[1]\n  [2]]\n\n [[3]\n  [4]]]");
    CHECK(printed(tg::zeros<float>(0)) == "[]");
    CHECK(printed(tg::arange<int>(1001)) == "[   0    1    2 ...  998  999 1000]");
    CHECK(printed(tg::arange<int>(1000)).find("...") == std::string::npos);
    CHECK(
        printed(tg::reshape(tg::arange<int>(1400), {7, 200})) ==
        "[[   0    1    2 ...  197  198  199]\n [ 200  201  202 ...  397  398  399]\n [ 400  401  402 ...  597  598  "
        "599]\n ...\n [ 800  801  802 ...  997  998  999]\n [1000 1001 1002 ... 1197 1198 1199]\n [1200 1201 1202 ... "
        "1397 1398 1399]]");
}

namespace {
// Takes texts and nothing else.
struct text_only {
    std::string text;
    text_only& operator<<(std::string_view more) {
        text += more;
        return *this;
    }
};
} // namespace

TEST_CASE("streams take tensors, formulas, shapes and types") {
    std::ostringstream out;
    const tensor<int> t{1, -2};
    out << t << ' ' << t + 1 << ' ' << tg::shape{2, 3} << ' ' << tg::shape{} << ' ' << tg::dtype::bf16;
    CHECK(out.str() == "[ 1 -2] [ 2 -1] [2, 3] [] bf16");
    text_only mine;
    mine << tg::shape{4} << "x" << abs(t);
    CHECK(mine.text == "[4]x[1 2]");
}

TEST_CASE("tensor: copies share until one is written") {
    tensor<float> a{1, 2, 3};
    const tensor<float> b = a;
    CHECK(a.data() == b.data());
    a.set(20, 1);
    CHECK(a.data() != b.data());
    CHECK(b.to_vector() == std::vector<float>{1, 2, 3});
    CHECK(a.to_vector() == std::vector<float>{1, 20, 3});
    const float* before = a.data();
    a.set(10, 0); // alone now: written in place
    CHECK(a.data() == before);
    // Views share too, so writing must not reach through them.
    const tensor<float> view = tg::reshape(a, {3, 1});
    CHECK(view.data() == a.data());
    a.set(30, 2);
    CHECK(view(2, 0) == 3);
}

TEST_CASE("elementwise: shapes that do not broadcast, element types that differ") {
    const tensor<float> a = tg::zeros<float>({2, 3}), b = tg::zeros<float>({4});
    const std::string text = message_of([&] { tensor<float> c = a + b; });
    CHECK(text == "add: shapes do not broadcast: f32[2, 3], f32[4]");
    // The operation that it is, wherever it stands, and what it was given.
    CHECK(message_of([&] { tensor<float> c = exp(2 * a) * (b - 1) + a; }) ==
          "multiply: shapes do not broadcast: f32[2, 3], f32[4]");
    CHECK(message_of([&] { (void)tg::sum(a - b); }) == "subtract: shapes do not broadcast: f32[2, 3], f32[4]");
    CHECK(message_of([&] { (void)tg::mean(abs(a - b)); }) == "subtract: shapes do not broadcast: f32[2, 3], f32[4]");
    // The first operation that does not fit, not the last; of `where` the two operands that follow the condition.
    CHECK(message_of([&] { tensor<float> c = tanh(2 * a - square(b)) / b; }) ==
          "subtract: shapes do not broadcast: f32[2, 3], f32[4]");
    CHECK(message_of([&] { tensor<float> c = where(a > 0, a, b); }) ==
          "where: shapes do not broadcast: f32[2, 3], f32[4]");
    CHECK(message_of([&] { (void)shape_of(a * b + 1); }) == "multiply: shapes do not broadcast: f32[2, 3], f32[4]");
    CHECK_THROWS_AS(tensor<float>(a * b), tg::shape_error);
    CHECK_THROWS_AS(tensor<float>(a + tg::zeros<float>({0, 3})), tg::shape_error);
    CHECK_THROWS_AS(tg::sum(a * b), tg::shape_error);
}

TEST_CASE("operations name themselves and both shapes") {
    const auto z = [](const tg::shape& s) { return tg::zeros<float>(s); };
    const auto names = [&](const std::string& text, std::initializer_list<const char*> parts) {
        for (const char* part : parts) CHECK_MESSAGE(text.find(part) != std::string::npos, text);
    };
    names(message_of([&] {
              matmul(z({2, 3}), z({4, 5}));
          }),
          {"matmul: inner extents differ", "f32[2, 3]", "f32[4, 5]"});
    names(message_of([&] { matmul(z({}), z({3, 2})); }), {"matmul", "scalar", "f32[]"});
    names(message_of([&] { matmul(z({2, 1, 3}), z({3, 3, 1})); }), {"matmul: batch extents do not broadcast"});
    names(message_of([&] { reshape(z({2, 3}), {4, 2}); }), {"reshape", "f32[2, 3]", "to [4, 2]"});
    names(message_of([&] { reshape(z({2, 3}), {4, -1}); }), {"reshape", "f32[2, 3]"});
    names(message_of([&] { squeeze(z({2, 3}), 0); }), {"f32[2, 3]"});
    names(message_of([&] { concat(z({2, 3}), z({3, 3}), 1); }), {"concat", "f32[2, 3]", "f32[3, 3]"});
    names(message_of([&] { concat(z({2, 3}), z({2}), 0); }), {"concat: ranks differ"});
    names(message_of([&] { transpose(z({2, 3}), {0, 0}); }), {"transpose: an axis is named twice"});
    names(message_of([&] { transpose(z({2, 3}), {0, 2}); }), {"transpose"});
    names(message_of([&] { sum(z({2, 3}), 2); }), {"axis outside the rank", "sum", "f32[2, 3]"});
    names(message_of([&] { max(z({2, 3}), -3); }), {"max", "f32[2, 3]"});
    names(message_of([&] { softmax(z({2, 3}), 5); }), {"axis outside"});
    names(message_of([&] { broadcast_to(z({2, 3}), {3, 2}); }), {"broadcast_to", "[2, 3]", "[3, 2]"});
    names(message_of([&] {
              conv2d(z({1, 3, 3, 2}), z({2, 2, 3, 1}));
          }),
          {"convolution: channels differ", "f32[1, 3, 3, 2]", "f32[2, 2, 3, 1]"});
    names(message_of([&] { conv2d(z({1, 2, 2, 1}), z({3, 3, 1, 1})); }), {"kernel larger"});
    names(message_of([&] { max_pooling2d(z({1, 1, 4, 1})); }), {"pooling", "f32[1, 1, 4, 1]"});
    names(message_of([&] { argmax(z({2}), 1); }), {"argmax"});
    names(message_of([&] { cumulative_sum(tensor<float>(1.0f)); }), {"cumulative_sum"});
    names(message_of([&] { pad(z({2}), {{-3, 0}}); }), {"pad"});
    names(message_of([&] { slice(z({4}), {{0, 4, 0}}); }), {"slice"});
    names(message_of([&] { expand_dims(z({4}), 5); }), {"expand_dims"});
    names(message_of([&] { expand_dims(z({4}), -3); }), {"expand_dims"});
    names(message_of([&] { squeeze(z({1}), 1); }), {"squeeze"});
    names(message_of([&] { slice(z({4}), {tg::all, tg::all}); }), {"slice: more ranges than axes", "f32[4]"});
    names(message_of([&] { pad(z({4}), {{0, 0}, {1, 0}}); }), {"pad: more amounts than axes"});
    names(message_of([&] { reshape(z({2, 3}), {-1, -1}); }), {"reshape"});
}

TEST_CASE("indices outside the table name the value") {
    const tensor<float> table = tg::zeros<float>({3, 2});
    for (int bad : {3, -1}) {
        const tensor<std::int32_t> at{0, bad};
        CHECK_THROWS_AS(gather(table, at), tg::range_error);
        CHECK(message_of([&] { gather(table, at); }).find(std::to_string(bad)) != std::string::npos);
        CHECK_THROWS_AS(scatter_add(tg::zeros<float>({2, 2}), at, {3, 2}), tg::range_error);
        CHECK_THROWS_AS(take_along(tg::zeros<float>({3}), at), tg::range_error);
    }
    CHECK(message_of([&] { gather(table, tensor<float>{0}); }) != "");
    CHECK_THROWS_AS(tg::one_hot<float>(tensor<std::int32_t>{4}, 0), tg::error);
}

TEST_CASE("expressions: reused, aliased, written after") {
    tensor<double> x{1, 2, 3};
    const auto formula = x * x + 1; // keeps x by value
    CHECK(tensor<double>(formula).to_vector() == std::vector<double>{2, 5, 10});
    x.set(100, 0);
    CHECK(tensor<double>(formula).to_vector() == std::vector<double>{2, 5, 10});
    x = tensor<double>(x + x);
    CHECK(x.to_vector() == std::vector<double>{200, 4, 6});
    const tensor<double> y = formula * formula;
    CHECK(y.to_vector() == std::vector<double>{4, 25, 100});
    // Twelve tensors fit one formula.
    const tensor<double> twelve = x + x + x + x + x + x + x + x + x + x + x + x;
    CHECK(twelve(1) == 48);
}

TEST_CASE("literals keep the tensor's type") {
    const tensor<float> x{1, 2};
    const auto y = tg::eval(x * 0.25 + 1 - 2.0);
    static_assert(std::is_same_v<decltype(y), const tensor<float>>);
    CHECK(y(1) == -0.5f);
    static_assert(std::is_same_v<decltype(tg::eval(x > 1)), tensor<bool>>);
    static_assert(std::is_same_v<decltype(tg::eval(where(x > 1, x, 0.1))), tensor<float>>);
    static_assert(std::is_same_v<decltype(mean(x)), tensor<float>>);
    static_assert(std::is_same_v<decltype(argmax(x)), tensor<std::int32_t>>);
    CHECK(tg::eval(where(x > 1, x, 0.1))(0) == 0.1f);
}

TEST_CASE("buffers come back: a loop stops asking the system") {
    const auto loop = [](int times) {
        float last = 0;
        for (int i = 0; i < times; ++i) {
            tensor<float> x = tg::ones<float>({1000});
            const tensor<float> y = tg::ones<float>({1000, 3});
            tg::gradient_tape tape;
            tape.watch(x);
            const tensor<float> loss = mean(square(x * 2 + sum(y, 1)));
            last = tape.gradient(loss, x)(999);
        }
        return last;
    };
    const auto before = tg::eager_memory();
    loop(2);
    const auto warm = tg::eager_memory();
    CHECK(warm.in_use == before.in_use);
    CHECK(loop(50) == doctest::Approx(0.02f));
    const auto after = tg::eager_memory();
    CHECK(after.in_use == before.in_use);
    CHECK(after.cached == warm.cached); // nothing new was allocated, nothing given back
    CHECK(after.peak == warm.peak);
    tg::reset_peak_memory();
    tg::trim_memory();
    CHECK(tg::eager_memory().cached == 0);
    CHECK(tg::eager_memory().peak == before.in_use);
}

} // namespace tensor_test
