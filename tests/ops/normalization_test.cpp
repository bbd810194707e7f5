#include <ops/loss_of.hpp>
#include <transforms/vmap_support.hpp>

#include <doctest/doctest.h>

namespace normalization_test {

/// Normalization in graph mode: the same bits as in eager mode, values and gradients, and second derivatives but for
/// rounding; and under vmap, with parameters that examples share or have for themselves, what each example gives alone.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr tg::normalization_attributes in_rows{.first = 2, .last = 2, .epsilon = 0.1},
    in_groups{.first = 1, .last = 2, .groups = 2, .epsilon = 0.1},
    of_squares{.first = 2, .last = 2, .centered = 0, .epsilon = 0.1};

constexpr auto normalized(const tg::normalization_attributes& how, const auto& x, const auto& gamma, const auto& beta) {
    return tg::invoke<tg::normalization_op>(how, nullptr, std::source_location::current(), x, gamma, beta);
}

constexpr auto values = [](auto x, auto gamma, auto beta) { // [n, 3, 4], [4], [4]
    const auto y = normalized(in_rows, x, gamma, beta);
    return std::tuple{y, normalized(in_groups, y, gamma, beta)};
};
// The gradient of the squares of a gradient.
constexpr auto second = tg::value_and_gradient([](auto x, auto gamma, auto beta) {
    const auto inner = tg::value_and_gradient([](auto a, auto b, auto c) {
        const auto y = normalized(in_groups, a, b, c);
        return sum(y * y * y);
    });
    const auto [dx, dgamma, dbeta] = inner(x, gamma, beta).gradient;
    const auto of_x = eval(sum(square(dx))), of_gamma = eval(sum(square(dgamma)));
    return eval(of_x + of_gamma + sum(square(dbeta)));
});

} // namespace

TEST_CASE("both modes: normalization") {
    constexpr tg::spec<float, tg::dyn, 3, 4> narrow_spec{};
    constexpr tg::spec<double, tg::dyn, 3, 4> spec{};
    both_modes forward(values, narrow_spec, tg::spec<float, 4>{}, tg::spec<float, 4>{});
    both_modes gradients(gradient_loss(values), narrow_spec, tg::spec<float, 4>{}, tg::spec<float, 4>{});
    both_modes twice(second, spec, tg::spec<double, 4>{}, tg::spec<double, 4>{});
    for (const std::int64_t n : {5, 1, 0, 701}) {
        const auto x = drawn<float>({n, 3, 4}, 1), gamma = drawn<float>({4}, 2), beta = drawn<float>({4}, 3);
        CHECK(forward.compare(x, gamma, beta) == "");
        CHECK(gradients.compare(x, gamma, beta) == "");
        // Derivatives of derivatives add in another order in eager mode: thousands of terms, each rounded to 1e-16 of
        // sums that their squares make thousands of times larger.
        CHECK(twice.distance(drawn<double>({n, 3, 4}, 1), drawn<double>({4}, 2), drawn<double>({4}, 3)) < 1e-11);
    }
}

// One example: x [2, 5, 4], parameters [4].
constexpr auto one = [](auto x, auto gamma, auto beta) {
    const auto y = normalized(in_groups, x, gamma, beta);
    return normalized(of_squares, y, gamma, beta);
};
constexpr auto one_gradient = tg::gradient([](auto x, auto gamma, auto beta) {
    const auto y = one(x, gamma, beta);
    return sum(y * y * y);
});

TEST_CASE("normalization under vmap is that of each example") {
    const auto x = drawn<double>({3, 2, 5, 4}, 1), gammas = drawn<double>({3, 4}, 2), betas = drawn<double>({3, 4}, 3),
               gamma = drawn<double>({4}, 4), beta = drawn<double>({4}, 5);
    const auto check = [](const auto& batched, const auto& single) {
        CHECK(apart(flattened(batched), single) < 1e-13); // some roundings of numbers near 1, added in another order
    };
    const shared<double> g{gamma}, b{beta};
    check(tg::vmap(one)(x, gammas, betas), one_by_one(one, 3, x, gammas, betas));
    check(tg::vmap<0, tg::unbatched, tg::unbatched>(one)(x, gamma, beta), one_by_one(one, 3, x, g, b));
    check(tg::vmap<0, 0, tg::unbatched>(one)(x, gammas, beta), one_by_one(one, 3, x, gammas, b));
    check(tg::vmap(one_gradient)(x, gammas, betas), one_by_one(one_gradient, 3, x, gammas, betas));
    check(tg::vmap<0, tg::unbatched, tg::unbatched>(one_gradient)(x, gamma, beta),
          one_by_one(one_gradient, 3, x, g, b));
}

} // namespace normalization_test
