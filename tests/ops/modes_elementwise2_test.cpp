#include <support/graph_runner.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace modes_elementwise2_test {

/// The further elementwise operations: the same bits in both modes, values and gradients, and the same bits whether a
/// formula is one kernel or every operation of it has its own.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr auto formulas = [](auto x, auto y) { // [n, 5], [5]
    const auto inside = tg::eval(tanh(x) * 0.9), above = tg::eval(square(y) + 1.25);
    return std::tuple{tg::eval(exp2(x) + log2(above) - log10(above)),
                      tg::eval(tan(inside) * asin(inside) - acos(inside)),
                      tg::eval(atan(x) + atan2(x, y) * hypot(x, y)),
                      tg::eval(sinh(x) - cosh(y) + asinh(x)),
                      tg::eval(acosh(above) * atanh(inside)),
                      tg::eval(cbrt(above) + reciprocal(above) * tg::pow<3>(x) + tg::pow<-2>(above)),
                      tg::eval(erfc(x) * log_sigmoid(y) + softsign(x)),
                      tg::eval(gelu(x) - gelu(y, tg::approximate) + swish(x * y)),
                      tg::eval(mish(x) + hard_swish(4 * x) * hard_sigmoid(y)),
                      tg::eval(elu(x, 0.7) + selu(y) - leaky_relu(x) + relu6(5 * x)),
                      tg::eval(clip(x, -0.5, y) + squared_difference(x, y) + lerp(x, y, 0.25)),
                      tg::eval(x % above + stop_gradient(floor_divide(x, above)) * y)};
};

constexpr auto answers = [](auto x, auto y) {
    return std::tuple{tg::eval(floor(3 * x) + ceil(y) - round(2 * x) * trunc(x)),
                      tg::eval(logical_xor(is_finite(x), less(x, y))),
                      tg::eval(logical_or(is_nan(x), is_inf(y))),
                      tg::eval(tg::cast<std::uint8_t>(abs(8 * x)) % tg::cast<std::uint8_t>(abs(3 * y) + 1)),
                      tg::eval(floor_divide(tg::cast<std::int64_t>(9 * x), tg::cast<std::int64_t>(3 * y))),
                      tg::eval(tg::cast<double>(clip(tg::cast<std::int32_t>(9 * x), -3, 4)))};
};

constexpr auto loss = [](auto x, auto y) {
    return std::apply(
        [](auto first, auto... rest) {
            auto total = tg::eval(sum(first));
            ((total = tg::eval(total + sum(square(rest)))), ...);
            return total;
        },
        formulas(x, y));
};

// One kernel, or one each: `e` is nothing or eval.
template <class E>
auto formula(const E& e, const auto& x, const auto& y) {
    const auto a = e(x * y), b = e(exp2(e(a + 0.5))), c = e(erfc(x)), d = e(e(gelu(a)) * e(softplus(b)));
    return e(e(d - e(mish(e(c * y)))) + e(e(atan2(x, b)) * e(log2(e(1 + e(square(a)))))));
}

} // namespace

TEST_CASE("both modes: further elementwise values, float") {
    both_modes modes(formulas, tg::spec<float, tg::dyn, 5>{}, tg::spec<float, 5>{});
    for (std::int64_t n : {7, 0, 1, 131}) {
        const std::string text = modes.compare(drawn<float>({n, 5}, 1), drawn<float>({5}, 2));
        CHECK_MESSAGE(text.empty(), "batch " << n << ": " << text);
    }
}

TEST_CASE("both modes: steps, questions, integers") {
    both_modes modes(answers, tg::spec<float, tg::dyn, 5>{}, tg::spec<float, 5>{});
    for (std::int64_t n : {7, 1, 131}) {
        const std::string text = modes.compare(drawn<float>({n, 5}, 1), drawn<float>({5}, 2));
        CHECK_MESSAGE(text.empty(), "batch " << n << ": " << text);
    }
}

TEST_CASE("both modes: further elementwise gradients, double") {
    both_modes modes(tg::value_and_gradient(loss), tg::spec<double, tg::dyn, 5>{}, tg::spec<double, 5>{});
    for (std::int64_t n : {7, 0, 1, 131}) {
        const std::string text = modes.compare(drawn<double>({n, 5}, 1), drawn<double>({5}, 2));
        CHECK_MESSAGE(text.empty(), "batch " << n << ": " << text);
    }
}

TEST_CASE_TEMPLATE("a formula has the same bits fused and operation by operation", T, float, double) {
    const auto x = drawn<T>({701, 3}, 4, -3, 3), y = drawn<T>({3}, 5, -3, 3);
    const tg::tensor<T> fused = formula([](const auto& f) { return f; }, x, y);
    const tg::tensor<T> single = formula([](const auto& f) { return tg::eval(f); }, x, y);
    CHECK(difference({fused}, {single}).empty());
}

} // namespace modes_elementwise2_test
