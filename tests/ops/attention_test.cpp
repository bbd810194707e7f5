#include <ops/loss_of.hpp>
#include <transforms/vmap_support.hpp>

#include <tapegraph/eager/random.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace attention_test {

/// Attention in graph mode: the same bits as in eager mode, values and gradients, and second derivatives but for rounding;
/// under vmap what each example gives alone; what is not seen does not count; dropout has the numbers of tg::dropout.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr auto values = [](auto q, auto k, auto v, auto mask) {
    const auto plain = tg::attention(q, k, v, {.causal = true, .causal_at_end = true});
    const auto hidden = tg::attention(q, k, v, tg::eval(mask > 0), {.scale = 2});
    return std::tuple{plain, hidden, tg::attention(q, k, v, mask)};
};
// The gradient of the squares of a gradient.
constexpr auto second = tg::value_and_gradient([](auto q, auto k, auto v, auto mask) {
    const auto inner = tg::value_and_gradient([](auto a, auto b, auto c, auto d) {
        const auto y = tg::attention(a, b, c, d, {.causal = true, .causal_offset = 1});
        return sum(y * y * y);
    });
    const auto [dq, dk, dv, dmask] = inner(q, k, v, mask).gradient;
    const auto of_q = eval(sum(square(dq))), of_k = eval(sum(square(dk))), of_v = eval(sum(square(dv)));
    return eval(of_q + of_k + of_v + sum(square(dmask)));
});

} // namespace

TEST_CASE("both modes: attention") {
    constexpr auto dyn = tg::dyn;
    both_modes forward(values, tg::spec<float, dyn, 5, 4, 3>{}, tg::spec<float, dyn, 7, 2, 3>{},
                       tg::spec<float, dyn, 7, 2, 2>{}, tg::spec<float, 5, 7>{});
    both_modes gradients(gradient_loss(values), tg::spec<float, dyn, 5, 4, 3>{}, tg::spec<float, dyn, 7, 2, 3>{},
                         tg::spec<float, dyn, 7, 2, 2>{}, tg::spec<float, 5, 7>{});
    both_modes twice(second, tg::spec<double, dyn, 5, 4, 3>{}, tg::spec<double, dyn, 7, 2, 3>{},
                     tg::spec<double, dyn, 7, 2, 2>{}, tg::spec<double, 5, 7>{});
    for (const std::int64_t n : {2, 1, 0, 9}) {
        const auto q = drawn<float>({n, 5, 4, 3}, 1), k = drawn<float>({n, 7, 2, 3}, 2),
                   v = drawn<float>({n, 7, 2, 2}, 3), mask = drawn<float>({5, 7}, 4);
        CHECK(forward.compare(q, k, v, mask) == "");
        CHECK(gradients.compare(q, k, v, mask) == "");
        // Derivatives of derivatives add in another order in eager mode: thousands of terms near 1.
        CHECK(twice.distance(drawn<double>({n, 5, 4, 3}, 1), drawn<double>({n, 7, 2, 3}, 2),
                             drawn<double>({n, 7, 2, 2}, 3), drawn<double>({5, 7}, 4)) < 1e-11);
    }
}

// One example: q [2, 3, 4, 2], k [2, 5, 2, 2], v [2, 5, 2, 3], mask [2, 1, 1, 5].
constexpr auto one = [](auto q, auto k, auto v, auto mask) {
    const auto y = tg::attention(q, k, v, mask);
    return tg::attention(q, k, v, {.causal = true}) * y;
};
constexpr auto one_gradient = tg::gradient([](auto q, auto k, auto v, auto mask) {
    const auto y = one(q, k, v, mask);
    return sum(y * y * y);
});

TEST_CASE("attention under vmap is that of each example") {
    const auto q = drawn<double>({3, 2, 3, 4, 2}, 1), ks = drawn<double>({3, 2, 5, 2, 2}, 2),
               vs = drawn<double>({3, 2, 5, 2, 3}, 3), masks = drawn<double>({3, 2, 1, 1, 5}, 4),
               k = drawn<double>({2, 5, 2, 2}, 5), v = drawn<double>({2, 5, 2, 3}, 6),
               mask = drawn<double>({1, 1, 1, 5}, 7);
    const auto check = [](const auto& batched, const auto& single) {
        CHECK(apart(flattened(batched), single) < 1e-13); // some roundings of numbers near 1, added in another order
    };
    const shared<double> all_k{k}, all_v{v}, all_masks{mask};
    check(tg::vmap(one)(q, ks, vs, masks), one_by_one(one, 3, q, ks, vs, masks));
    check(tg::vmap<0, tg::unbatched, tg::unbatched, tg::unbatched>(one)(q, k, v, mask),
          one_by_one(one, 3, q, all_k, all_v, all_masks));
    check(tg::vmap(one_gradient)(q, ks, vs, masks), one_by_one(one_gradient, 3, q, ks, vs, masks));
    check(tg::vmap<0, 0, tg::unbatched, tg::unbatched>(one_gradient)(q, ks, v, mask),
          one_by_one(one_gradient, 3, q, ks, all_v, all_masks));
}

TEST_CASE("attention: infinities and NaN that no query sees do not count, and a query that sees nothing gives zeros") {
    constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    // 140 keys, of which the first 135 count, and query 1 sees nothing.
    tg::tensor<double> q = drawn<double>({1, 3, 2, 4}, 1), k = drawn<double>({1, 140, 1, 4}, 2),
                       v = drawn<double>({1, 140, 1, 3}, 3);
    tg::tensor<bool> seen = tg::tensor<bool>::uninitialized({3, 140});
    for (std::int64_t i = 0; i < 3; ++i)
        for (std::int64_t j = 0; j < 140; ++j) seen.set(i != 1 && j < 135, i, j);
    const auto f = tg::value_and_gradient([](auto a, auto b, auto c, auto mask) {
        const auto y = tg::attention(a, b, c, stop_gradient(mask));
        return sum(y * y * y);
    });
    const tg::tensor<double> bias = tg::eval(where(seen, tg::zeros<double>({3, 140}), -inf));
    const auto plain = f(q, k, v, bias);
    for (const double odd : {nan, inf, -inf}) {
        for (std::int64_t c = 0; c < 3; ++c) v.set(odd, 0, 137, 0, c);
        for (std::int64_t c = 0; c < 4; ++c) k.set(odd, 0, 136, 0, c), q.set(odd, 0, 1, 1, c);
        const auto with = f(q, k, v, bias);
        CHECK(with.value.item() == doctest::Approx(plain.value.item()).epsilon(1e-13)); // products in another order
        const auto near = [](const tg::tensor<double>& a, const tg::tensor<double>& b) {
            return max(abs(a - b)).item() < 1e-12;
        };
        CHECK(near(std::get<0>(with.gradient), std::get<0>(plain.gradient)));
        CHECK(near(std::get<1>(with.gradient), std::get<1>(plain.gradient)));
        CHECK(near(std::get<2>(with.gradient), std::get<2>(plain.gradient)));
    }
    const tg::tensor<double> y = tg::attention(q, k, v, seen);
    for (std::int64_t h = 0; h < 2; ++h)
        for (std::int64_t c = 0; c < 3; ++c) {
            CHECK(y(0, 1, h, c) == 0);
            CHECK(std::isfinite(y(0, 2, h, c)));
        }
    v.set(nan, 0, 0, 0, 0); // what is seen counts
    CHECK(std::isnan(tg::tensor<double>(tg::attention(q, k, v, seen))(0, 0, 0, 0)));
}

TEST_CASE_TEMPLATE("attention drops the weights that dropout drops", T, float, double) {
    const auto q = drawn<T>({2, 70, 4, 3}, 1), k = drawn<T>({2, 131, 2, 3}, 2), v = drawn<T>({2, 131, 2, 5}, 3);
    tg::random::set_seed(11);
    const tg::tensor<T> y = tg::attention(q, k, v, {.scale = 1, .dropout = 0.25});
    tg::random::set_seed(11);
    const tg::tensor<T> keys = tg::transpose(tg::repeat(k, 2, 2), {0, 2, 1, 3}),
                        rows = tg::transpose(tg::repeat(v, 2, 2), {0, 2, 1, 3});
    const tg::tensor<T> queries = tg::transpose(q, {0, 2, 1, 3});
    const tg::tensor<T> weights = tg::softmax(tg::matmul(queries, keys, {.transpose_b = true}), -1);
    const tg::tensor<T> want = tg::transpose(tg::matmul(tg::dropout(weights, 0.25), rows), {0, 2, 1, 3});
    // Sums of 131 products of weights that add up to 1 with numbers near 1.
    CHECK(max(abs(y - want)).item() < 16 * std::numeric_limits<T>::epsilon());
    const auto slopes = [&](const auto& f) {
        tg::random::set_seed(11);
        return tg::gradient([&](auto a) { return sum(square(f(a))); })(q);
    };
    const tg::tensor<T> got = slopes([&](auto a) { return tg::attention(a, k, v, {.scale = 1, .dropout = 0.25}); });
    const tg::tensor<T> expected = slopes([&](auto a) {
        const auto of = tg::softmax(tg::matmul(tg::transpose(a, {0, 2, 1, 3}), keys, {.transpose_b = true}), -1);
        return tg::matmul(tg::dropout(of, 0.25), rows);
    });
    CHECK(max(abs(got - expected)).item() < 64 * std::numeric_limits<T>::epsilon());
}

TEST_CASE("attention: 16-bit elements are computed in float, and errors name what does not fit") {
    const auto q = drawn<float>({1, 5, 2, 4}, 1), k = drawn<float>({1, 6, 2, 4}, 2), v = drawn<float>({1, 6, 2, 4}, 3);
    const auto narrow = [](const auto& x) { return tg::tensor<tg::half>(tg::cast<tg::half>(x)); };
    const auto wide = [](const auto& x) { return tg::tensor<float>(tg::cast<float>(x)); };
    const auto a = narrow(q), b = narrow(k), c = narrow(v);
    CHECK(wide(tg::tensor<tg::half>(tg::attention(a, b, c))).to_vector() ==
          wide(narrow(tg::tensor<float>(tg::attention(wide(a), wide(b), wide(c))))).to_vector());
    const auto refused = [](const auto& f, const char* text) {
        CHECK_THROWS_WITH_AS(f(), doctest::Contains(text), tg::shape_error);
    };
    refused(
        [&] {
            tg::attention(q, drawn<float>({1, 6, 3, 4}, 2), drawn<float>({1, 6, 3, 4}, 3));
        },
        "the heads of keys must divide those of queries");
    refused([&] { tg::attention(q, drawn<float>({1, 6, 2, 5}, 2), v); }, "features of queries and keys differ");
    refused([&] { tg::attention(q, k, drawn<float>({1, 5, 2, 4}, 3)); }, "values must be");
    refused([&] { tg::attention(q, k, v, drawn<float>({2, 6}, 3)); }, "the mask does not broadcast");
    refused([&] { tg::attention(q, k, v, {.dropout = 1}); }, "dropout must lie in [0, 1)");
    refused([&] { tg::attention(drawn<float>({5, 2, 4}, 1), k, v); }, "queries and keys must be");
}

} // namespace attention_test
