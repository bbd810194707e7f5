#include <support/finite_differences.hpp>

#include <tapegraph/nn/constraint.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/losses/all.hpp>
#include <tapegraph/nn/optimizers/applied.hpp>
#include <tapegraph/nn/optimizers/clipping.hpp>
#include <tapegraph/nn/optimizers/lamb.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace scales_test {

/// What divides by a length or bounds one, at sizes whose squares leave the range of the type: functions of numbers times a power of
/// two are those of the numbers, times a power of it, to the bit.

namespace tg = tapegraph;

namespace {

template <class T>
tg::tensor<T> scaled(const tg::tensor<T>& x, int k) {
    return tg::tensor<T>(x * std::ldexp(T(1), k));
}
/// A function f of degree 0 or 1, f(s x) = s^degree f(x), and its gradient, at exponents k.
template <class T>
void check_scales(const char* name, int degree, const tg::tensor<T>& x, const auto& f,
                  const std::vector<int>& exponents) {
    const auto at = [&](int k) {
        tg::tensor<T> moved = scaled(x, k);
        tg::gradient_tape tape;
        tape.watch(moved);
        const tg::tensor<T> y = f(moved);
        const tg::tensor<T> weights =
            tg::tensor<T>(tg::cast<T>(tapegraph::testing::weights_like(tg::tensor<double>(tg::cast<double>(y)), 3)));
        const tg::tensor<T> g(tape.gradient(tg::tensor<T>(sum(y * weights)), moved));
        return std::pair(y, g);
    };
    const auto [value, slope] = at(0);
    for (const int k : exponents) {
        CAPTURE(std::string(name));
        CAPTURE(k);
        const auto [y, g] = at(k);
        CHECK(y.to_vector() == scaled(value, degree * k).to_vector());
        CHECK(g.to_vector() == scaled(slope, (degree - 1) * k).to_vector());
    }
}

template <class T>
tg::tensor<T> rows() {
    return tg::tensor<T>{{3, -4, 1}, {0.5, 0, 2}, {1, 1, -1}, {-7, 2, 5}};
}

} // namespace

TEST_CASE_TEMPLATE("unit vectors, angles and distances at all scales", T, float, double) {
    // Down to lengths that count as another by definition, or up to where the gradient's inverse length is subnormal.
    const auto large =
        std::is_same_v<T, float> ? std::vector<int>{-20, 30, 63, 100, 118} : std::vector<int>{-20, 100, 500, 700, 1010};
    const auto all = std::is_same_v<T, float> ? std::vector<int>{-118, -75, -30, 63, 100}
                                              : std::vector<int>{-1000, -560, -100, 500, 1010};
    const tg::tensor<T> other{{1, 2, 3}, {2, 0.25, 1}, {-1, 1, 4}, {0, 3, 1}};
    check_scales<T>(
        "unit_normalization", 0, rows<T>(), [](const auto& x) { return tg::unit_normalization(x); }, large);
    check_scales<T>(
        "cosine_similarity", 0, rows<T>(), [&](const auto& x) { return tg::cosine_similarity::per_record(x, other); },
        large);
    check_scales<T>(
        "distances", 1, rows<T>(), [](const auto& x) { return tg::detail::distances(x, 0); }, all);
    check_scales<T>(
        "lp_pooling", 1, tg::tensor<T>(reshape(rows<T>(), {1, 4, 3})),
        [](const auto& x) { return tg::lp_pooling1d(x, 2, {.pool_size = 2, .stride = 1}); }, all);
    check_scales<T>(
        "lp_pooling of order 4", 1, tg::tensor<T>(reshape(rows<T>(), {1, 4, 3})),
        [](const auto& x) { return tg::lp_pooling1d(x, 4, {.pool_size = 2, .stride = 1}); }, all);
}

TEST_CASE("unit vectors in half: zeros stay zeros, and squares beyond 65504 do not matter") {
    const auto unit = [](float a, float b) {
        const tg::tensor<tg::half> x(tg::cast<tg::half>(tg::tensor<float>{{a, b}}));
        return tg::tensor<float>(tg::cast<float>(tg::tensor<tg::half>(tg::unit_normalization(x)))).to_vector();
    };
    const auto rounded = [](float x) { return static_cast<float>(tg::half(x)); };
    CHECK(unit(0, 0) == std::vector<float>{0, 0});
    CHECK(unit(300, 400) == std::vector<float>{rounded(0.6f), rounded(0.8f)});
    CHECK(unit(30000, 40000) == std::vector<float>{rounded(0.6f), rounded(0.8f)});
    CHECK(unit(3 * 0x1p-20f, 4 * 0x1p-20f) == std::vector<float>{rounded(0.6f), rounded(0.8f)});
}

TEST_CASE_TEMPLATE("constraints and clipping at the ends of the range", T, float, double) {
    const T huge = std::is_same_v<T, float> ? T(1e30) : T(1e200);
    const tg::tensor<T> w{{3 * huge, 0}, {4 * huge, huge}};
    const tg::tensor<T> bounded = tg::constrained(tg::constraints::max_norm{2}, w);
    CHECK(bounded.to_vector()[0] == doctest::Approx(1.2));
    CHECK(bounded.to_vector()[2] == doctest::Approx(1.6));
    CHECK(tg::tensor<T>(tg::constrained(tg::constraints::unit_norm{}, w)).to_vector()[3] == doctest::Approx(1));

    // A step of sgd with the rate 1 subtracts the gradient as it was clipped.
    const auto step = [](const auto& clipping, T scale) {
        tg::tensor<T> a{T(0), T(0)}, b(T(0));
        tg::applied optimizer(tg::chain{clipping, tg::sgd{.learning_rate = 1}}, a, b);
        optimizer.apply_gradients({tg::tensor<T>{3 * scale, 0}, tg::tensor<T>(4 * scale)});
        return std::pair(-a.to_vector()[0], -b.item());
    };
    for (const T scale : {huge, T(1e10)}) {
        const auto all = step(tg::clip_by_global_norm{.norm = 5}, scale),
                   each = step(tg::clip_by_norm{.norm = 5}, scale);
        CHECK(all.first == doctest::Approx(3));
        CHECK(all.second == doctest::Approx(4));
        CHECK(each.first == doctest::Approx(5));
        CHECK(each.second == doctest::Approx(5));
    }
    const T tiny = 1 / huge; // bounded by what is tiny, too: to half of it
    const auto all = step(tg::clip_by_global_norm{.norm = 2.5 * static_cast<double>(tiny)}, tiny);
    CHECK(all.first == doctest::Approx(1.5 * tiny).epsilon(1e-6));
    CHECK(all.second == doctest::Approx(2 * tiny).epsilon(1e-6));
    const auto kept = step(tg::clip_by_global_norm{.norm = 5.5}, T(1)); // not by n (1 / n), which is not 1
    CHECK(kept.first == 3);
    CHECK(kept.second == 4);
}

} // namespace scales_test
