#include "vmap_support.hpp"

#include <doctest/doctest.h>

namespace vmap_gradient_test {

/// Gradients per example, gradients of batched functions, transforms under vmap.

namespace tg = tapegraph;
using namespace tapegraph::testing;
using tg::tensor;

namespace {

// One example: x [1, 4], w [4, 3], b [3]
constexpr auto loss = [](auto x, auto w, auto b) {
    const auto h = tg::eval(tanh(matmul(x, w) + b));
    return tg::eval(sum(square(h)) + tg::logsumexp(h) * mean(x));
};
constexpr auto image_loss = [](auto x, auto w) { // [1, 5, 5, 2], [3, 3, 2, 2]
    const auto y = tg::max_pooling2d(tg::conv2d(x, w, {.padding = tg::padding::same()}));
    return sum(square(y));
};
constexpr auto rows_loss = [](auto table, auto i) { // [5, 2], [3]
    return sum(square(tg::gather(table, i)) * 0.5) + sum(tg::sort(table) * table);
};

constexpr auto cubic = [](auto x) { return sum(x * x * x) * 0.5 + tg::square(sum(x)); };

constexpr auto clipped = tg::custom_gradient([](auto x, auto w) { return x * w; },
                                             [](auto dy, auto y, auto x, auto w) {
                                                 return std::tuple{tg::minimum(dy, 0.5) * w, dy * y * x};
                                             });

} // namespace

#define TG_SAME(text) CHECK_MESSAGE((text).empty(), text)

TEST_CASE("vmap of a gradient: one per example, also of shared arguments") {
    constexpr auto per_example = tg::vmap<0, tg::unbatched, tg::unbatched>(tg::value_and_gradient(loss));
    both_modes run(per_example, tg::spec<double, tg::dyn, 1, 4>{}, tg::spec<double, 4, 3>{}, tg::spec<double, 3>{});
    const auto w = drawn<double>({4, 3}, 2), b = drawn<double>({3}, 3);
    for (std::int64_t n : {3, 1, 64}) {
        const auto x = drawn<double>({n, 1, 4}, 1);
        TG_SAME(run.compare(x, w, b));
        CHECK(apart(run.results(), one_by_one(tg::value_and_gradient(loss), n, x, shared<double>{w}, shared<double>{b})) < 1e-13);
    }
}

TEST_CASE("vmap of a gradient: convolution and indices") {
    both_modes images(tg::vmap<0, tg::unbatched>(tg::gradient(image_loss)), tg::spec<double, 3, 1, 5, 5, 2>{},
                      tg::spec<double, 3, 3, 2, 2>{});
    const auto x = drawn<double>({3, 1, 5, 5, 2}, 1), w = drawn<double>({3, 3, 2, 2}, 2);
    TG_SAME(images.compare(x, w));
    CHECK(apart(images.results(), one_by_one(tg::gradient(image_loss), 3, x, shared<double>{w})) < 1e-13);

    constexpr auto rows_gradient = [](auto table, auto i) {
        return tg::gradient([i](auto t) { return rows_loss(t, i); })(table);
    };
    both_modes rows(tg::vmap(rows_gradient), tg::spec<double, tg::dyn, 5, 2>{}, tg::spec<std::int32_t, tg::dyn, 3>{});
    const auto table = drawn<double>({4, 5, 2}, 1);
    auto i = tensor<std::int32_t>::uninitialized({4, 3});
    for (std::int64_t k = 0; k < 12; ++k) i.mutable_data()[k] = static_cast<std::int32_t>(k * 3 % 5);
    TG_SAME(rows.compare(table, i));
    CHECK(apart(rows.results(), one_by_one(rows_gradient, 4, table, i)) < 1e-14);
}

TEST_CASE("gradient of a vmap: the gradient of the sum over examples") {
    constexpr auto total = [](auto x, auto w, auto b) {
        return tg::value_and_gradient([](auto p, auto q, auto r) {
            return mean(tg::vmap<0, tg::unbatched, tg::unbatched>(loss)(p, q, r));
        })(x, w, b);
    };
    both_modes run(total, tg::spec<double, tg::dyn, 1, 4>{}, tg::spec<double, 4, 3>{}, tg::spec<double, 3>{});
    const std::int64_t n = 6;
    const auto x = drawn<double>({n, 1, 4}, 1), w = drawn<double>({4, 3}, 2), b = drawn<double>({3}, 3);
    TG_SAME(run.compare(x, w, b));
    const auto single = one_by_one(tg::gradient(loss), n, x, shared<double>{w}, shared<double>{b});
    const tensor<double> dw(run.results()[2]);
    for (std::int64_t e = 0; e < dw.size(); ++e) {
        double expected = 0;
        for (const auto& each : single) expected += tensor<double>(each[1]).data()[e] / static_cast<double>(n);
        CHECK(dw.data()[e] == doctest::Approx(expected).epsilon(1e-13));
    }
}

TEST_CASE("vmap of second derivatives: a Hessian from basis vectors") {
    constexpr auto hessian = [](auto x, auto basis) {
        return tg::vmap([x](auto v) {
            return tg::gradient([v](auto at) { return sum(tg::gradient(cubic)(at) * v); })(v * 0 + x);
        })(basis);
    };
    both_modes run(hessian, tg::spec<double, 3>{}, tg::spec<double, 3, 3>{});
    const tensor<double> x{1, 2, -1}, identity{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    CHECK(run.distance(x, identity) < 1e-14); // derivatives of derivatives add in another order in eager mode
    const tensor<double> h(run.results()[0]);
    for (std::int64_t i = 0; i < 3; ++i)
        for (std::int64_t j = 0; j < 3; ++j) CHECK(h(i, j) == doctest::Approx(2 + (i == j ? 3 * x(i) : 0)));
}

TEST_CASE("vmap of custom_gradient: backward sees one example") {
    constexpr auto f = [](auto x, auto w) { return tg::value_and_gradient([](auto a, auto b) { return sum(2 * clipped(a, b)); })(x, w); };
    both_modes run(tg::vmap<0, tg::unbatched>(f), tg::spec<double, tg::dyn, 3>{}, tg::spec<double, 3>{});
    const auto x = drawn<double>({4, 3}, 1), w = drawn<double>({3}, 2);
    TG_SAME(run.compare(x, w));
    CHECK(apart(run.results(), one_by_one(f, 4, x, shared<double>{w})) < 1e-14);
    // A shared argument differentiated from outside receives the sum over the examples.
    constexpr auto outside = [](auto a, auto b) {
        return tg::gradient([](auto p, auto q) { return sum(2 * tg::vmap<0, tg::unbatched>(clipped)(p, q)); })(a, b);
    };
    both_modes sums(outside, tg::spec<double, tg::dyn, 3>{}, tg::spec<double, 3>{});
    TG_SAME(sums.compare(x, w));
    const auto single = one_by_one(f, 4, x, shared<double>{w});
    for (std::int64_t e = 0; e < 3; ++e) {
        double expected = 0;
        for (const auto& each : single) expected += tensor<double>(each[2]).data()[e];
        CHECK(tensor<double>(sums.results()[1]).data()[e] == doctest::Approx(expected).epsilon(1e-13));
    }
}

} // namespace vmap_gradient_test
