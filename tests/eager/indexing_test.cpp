#include <tapegraph/tapegraph.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <vector>

/// x[i], x(parts...), range-for, += and what a tape, a graph and vmap make of them.

namespace indexing_test {

namespace tg = tapegraph;
using support::message_of;
using tg::tensor;

namespace {
// Python's slice.indices: where begin:end:step begins and how many elements it takes. Bounds far outside stand for none.
std::vector<std::int64_t> taken(std::int64_t begin, std::int64_t end, std::int64_t step, std::int64_t size) {
    std::vector<std::int64_t> result;
    if (begin < 0) begin += size;
    if (end < 0) end += size;
    for (std::int64_t i = begin; step > 0 ? i < end : i > end; i += step)
        if (i >= 0 && i < size) result.push_back(i);
    return result;
}
const tensor<double> numbers = tg::reshape(tg::arange<double>(105), {3, 5, 7});
} // namespace

TEST_CASE("parts: what Python's ranges take of an axis") {
    const auto open = tg::all.end;
    for (const auto& [begin, end, step] : std::vector<std::array<std::int64_t, 3>>{
             {0, 5, 1}, {1, 4, 2}, {-3, 5, 1}, {0, -1, 1}, {-1, 1, -1}, {4, 0, -3}, {2, 2, 1}, {3, 1, 1}, {0, 99, 3}}) {
        const auto at = taken(begin, end, step, 5);
        const tensor<double> part = numbers(tg::all, {begin, end, step}, -2);
        REQUIRE(part.shape() == tg::shape{3, static_cast<std::int64_t>(at.size())});
        for (int i = 0; i < 3; ++i)
            for (std::size_t k = 0; k < at.size(); ++k) CHECK(part(i, k) == numbers(i, at[k], 5));
        CHECK(tg::array_equal(part, tg::take(tg::slice(numbers, {tg::all, {begin, end, step}}), -2, 2)));
    }
    CHECK(tg::array_equal(numbers({1}), tg::slice(numbers, {{1}})));
    CHECK(tg::array_equal(numbers[{1, 2}], tg::slice(numbers, {{1, 2}})));
    CHECK(tg::array_equal(numbers(tg::range{2, open, -1}), tg::reverse(numbers, {0})));
    CHECK(tg::array_equal(numbers(tg::all, tg::all), numbers));
}

TEST_CASE("parts: indices drop axes, newaxis adds them, ellipsis stands for the others") {
    CHECK(numbers[1].shape() == tg::shape{5, 7});
    CHECK(numbers[1][2][3].item() == numbers(1, 2, 3));
    CHECK(numbers[-1](4, 0) == numbers(2, 4, 0));
    CHECK(tg::array_equal(numbers(tg::ellipsis, 3), tg::take(numbers, 3, 2)));
    CHECK(tg::array_equal(numbers(1, tg::ellipsis, {0, 2}), tg::slice(tg::take(numbers, 1), {tg::all, {0, 2}})));
    CHECK(tg::array_equal(numbers(1, 2, 3, tg::ellipsis), tensor<double>(numbers(1, 2, 3))));
    CHECK(numbers(tg::newaxis, 1, tg::newaxis, tg::ellipsis, tg::newaxis).shape() == tg::shape{1, 1, 5, 7, 1});
    CHECK(numbers(std::size_t{1}, tg::all).shape() == tg::shape{5, 7});
    const tensor<bool> mask{{true, false}};
    CHECK(mask[0](1) == false);
    const tensor<tg::bfloat16> stored{{1, 2}, {3, 4}};
    CHECK(static_cast<float>(stored[1](0)) == 3);
}

TEST_CASE("parts: what does not exist is refused") {
    CHECK(message_of<tg::range_error>([] { (void)numbers[3]; }) ==
          "tensor: index 3 on axis 0 is outside shape [3, 5, 7]");
    CHECK(message_of<tg::range_error>([] { (void)numbers(tg::all, -6); }) ==
          "tensor: index -6 on axis 1 is outside shape [3, 5, 7]");
    CHECK(message_of<tg::shape_error>([] { (void)numbers(0, 0, 0, tg::all, 0); }).find("more ranges than axes") !=
          std::string::npos);
    CHECK(message_of<tg::shape_error>([] { (void)numbers(tg::ellipsis, tg::ellipsis); }).find("only once") !=
          std::string::npos);
    CHECK(message_of<tg::shape_error>([] { (void)numbers({0, 1, 2, 3}); }).find("at most") != std::string::npos);
    CHECK(message_of<tg::shape_error>([] { (void)numbers({0, 3, 0}); }).find("a step is zero") != std::string::npos);
    CHECK(message_of<tg::shape_error>([] { (void)tensor<float>(1.0f)[0]; }).find("more ranges than axes") !=
          std::string::npos);
}

TEST_CASE("range-for walks along axis 0") {
    std::vector<double> first;
    for (const tensor<double>& each : numbers) first.push_back(each(4, 6));
    CHECK(first == std::vector<double>{34, 69, 104});
    for (const auto& none : tg::zeros<float>(0, 2)) CHECK(none.size() == 99);
    CHECK(message_of<tg::shape_error>([] {
              for (const auto& none : tensor<float>(1.0f)) CHECK(none.size() == 99);
          }) == "range-for: a scalar has no axis to walk along: f32[]");
}

TEST_CASE("+= gives a name a new value and leaves what shared the old one") {
    tensor<float> a{1, 2, 3};
    const tensor<float> before = a;
    const auto formula = a * 2;
    a += 1;
    a -= tensor<float>{0, 1, 2};
    a *= a + 1;
    a /= 2;
    CHECK(a.to_vector() == std::vector<float>{3, 3, 3});
    CHECK(before.to_vector() == std::vector<float>{1, 2, 3});
    CHECK(tensor<float>(formula).to_vector() == std::vector<float>{2, 4, 6});
    a += a;
    CHECK(a.to_vector() == std::vector<float>{6, 6, 6});
    CHECK(message_of<tg::shape_error>([&] { a += tg::ones<float>(2, 3); }) ==
          "+=, -=, *=, /=: the right side has more elements than the left; write a = a + b: f32[2, 3]");
    CHECK(a.to_vector() == std::vector<float>{6, 6, 6});
    CHECK_THROWS_AS(a += tg::ones<float>(4), tg::shape_error);

    tensor<double> w{1, 2, 3};
    tg::gradient_tape tape;
    tape.watch(w);
    const tensor<double> source = w;
    w *= w;
    w += 3;
    const tensor<double> loss = sum(w * w[1]);
    // (sum(w^2) + 9)(w1^2 + 3): 23 and 7 at this point.
    CHECK(tape.gradient(loss, source).to_vector() == std::vector<double>{14, 4 * 30, 42});
}

namespace {
constexpr auto model = [](const auto& x) {
    auto y = x(tg::all, {0, 4, 2});
    y += 1;
    y *= y;
    auto total = x[0];
    for (const auto& row : x) total += row * 2;
    total -= x[-1];
    total /= 3;
    return sum(y) + sum(total * x(tg::ellipsis, -2)[0]) + sum(x({1}, tg::newaxis, {-1, tg::all.end, -1}));
};
constexpr auto the_same = [](const auto& x) {
    const auto part = slice(x, {tg::all, {0, 4, 2}});
    const auto y = tg::eval(part + 1);
    const auto rows = tg::eval(tg::eval(tg::eval(take(x, 0) + take(x, 0) * 2) + take(x, 1) * 2) + take(x, 2) * 2);
    const auto total = tg::eval(tg::eval(rows - take(x, -1)) / 3);
    return sum(y * y) + sum(total * take(take(x, -2, 1), 0)) + sum(reverse(slice(x, {{1}}), {1}));
};
} // namespace

TEST_CASE("parts in both modes: the operations of slice and take, the same bits") {
    const tensor<double> x = tg::reshape(tg::random::normal<double>({15}, {.seed = 3}), {3, 5});
    const auto [value, derivative] = tg::value_and_gradient(model)(x);
    const auto [same_value, same_derivative] = tg::value_and_gradient(the_same)(x);
    CHECK(value.item() == same_value.item());
    CHECK(tg::array_equal(derivative, same_derivative));
    auto compiled = tg::function<tg::graph>(tg::value_and_gradient(model), tg::spec<double, 3, 5>{});
    const auto [graph_value, graph_derivative] = compiled(x);
    CHECK(value.item() == graph_value.item());
    CHECK(tg::array_equal(derivative, graph_derivative));
}

TEST_CASE("parts under vmap are parts of each example") {
    const auto each = [](auto x) {
        auto y = x[0];
        y += x[1];
        return tg::eval(y * sum(x(tg::range{1, 3})));
    };
    const tensor<double> rows = tg::vmap(each)(numbers[0]);
    for (int i = 0; i < 5; ++i) {
        const tensor<double> x = numbers[0][i];
        CHECK(rows(i) == (x(0) + x(1)) * (x(1) + x(2)));
    }
}

TEST_CASE("allclose and array_equal") {
    const tensor<float> a{1, 2};
    CHECK(tg::allclose(a, a * 1.000009f));
    CHECK_FALSE(tg::allclose(a, a * 1.0001f));
    CHECK(tg::allclose(a, a * 1.0001f, {.rtol = 1e-3}));
    CHECK(tg::allclose(a, a + 0.01f, {.rtol = 0, .atol = 0.02}));
    CHECK(tg::allclose(a, tensor<float>{{1, 2}, {1, 2}}));
    const tensor<double> odd{INFINITY, -INFINITY, NAN};
    CHECK(tg::allclose(odd({0, 2}), odd({0, 2})));
    CHECK_FALSE(tg::allclose(odd({0, 2}), -odd({0, 2})));
    CHECK_FALSE(tg::allclose(odd, tg::zeros<double>(3)));
    CHECK_FALSE(tg::allclose(tg::zeros<double>(2), odd({0, 2})));
    CHECK_FALSE(tg::allclose(odd, odd));
    CHECK(tg::allclose(odd, odd, {.equal_nan = true}));
    CHECK(tg::allclose(tg::zeros<float>(0), tg::zeros<float>(0)));
    CHECK_THROWS_AS(tg::allclose(a, tg::zeros<float>(3)), tg::shape_error);
    CHECK_THROWS_AS(tg::allclose(a, a, {.rtol = -1}), tg::argument_error);
    CHECK_THROWS_AS(tg::allclose(a, a, {.atol = NAN}), tg::argument_error);
    CHECK(tg::array_equal(a, tensor<float>{1, 2}));
    CHECK_FALSE(tg::array_equal(a, tensor<float>{{1, 2}}));
    CHECK_FALSE(tg::array_equal(odd, odd));
}

} // namespace indexing_test
