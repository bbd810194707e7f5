#include "../../benchmarks/autodiff/adbench_hand.hpp"
#include "../../benchmarks/autodiff/adbench_problems.hpp"
#include "../../benchmarks/autodiff/lstm_by_hand.hpp"

#include <tapegraph/real.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

/// ADBench's problems against the results that its tests expect (test/cpp/modules/common in its repository), where the
/// data are small enough to be here, and against finite differences.

namespace adbench_test {

namespace tg = tapegraph;
using vector = std::vector<double>;

vector numbers(std::size_t count, double low, double high, std::uint32_t state = 12345) {
    vector x(count);
    for (double& each : x) {
        state = state * 1664525u + 1013904223u;
        each = low + (high - low) * static_cast<double>(state >> 8) / 16777216.0;
    }
    return x;
}

/// Central differences of a scalar function: relative to values of size 1 an error of 1e-10 for the step's square and
/// for rounding.
template <class F>
vector differences(const F& f, vector x) {
    vector g;
    const double h = 1e-5;
    for (double& each : x) {
        const double at = each;
        each = at + h;
        const double above = f(x);
        each = at - h;
        g.push_back((above - f(x)) / (2 * h));
        each = at;
    }
    return g;
}
void check(const vector& got, const vector& want, double tolerance) {
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(std::abs(got[i] - want[i]) <= tolerance * (1 + std::abs(want[i])));
    }
}

TEST_CASE("the mixture of Gaussians of data/gmm/test.txt") {
    const adbench::mixture f{2, 3, 1, 0, {1.175171, 2.029160}};
    const vector x{-0.649014, 1.181166,  -0.758453, // weights
                   0.092339,  0.186260,  0.345561,  0.396767,  0.538817, 0.419195,  0.586443, -0.851887,
                   0.800321,  -1.509405, 0.875874,  -0.242790, 0.166813, -1.965419, -1.270071};
    const auto [value, gradient] = tg::value_and_gradient(f)(x).parts();
    // Its file has six digits, and its test allows 1e-5 for the value and 1e-8 for the gradient.
    CHECK(std::abs(value - 8.07380408004975791) <= 1e-8);
    check(gradient,
          {1.08662855508652456e-01, -7.41270039523898472e-01, 6.32607184015246071e-01, 1.11692576532787013,
           1.63333013551455269e-01, -2.19989824071193142e-02, 2.27778292254236098e-01, 1.20963025612832187,
           -6.06375920733956339e-02, 2.58529994051162237, 1.12632694524213789e-01, 3.85744309849611777e-01,
           7.35180573182305508e-02, 5.41836362715595232, -3.21494409677446469e-01, 1.71892309775004937,
           8.60091090790866875e-01, -9.94640930466322848e-01},
          1e-8);
    const adbench::mixture deeper{3, 2, 0.8, 2, numbers(15, -1, 1)};
    const vector at = numbers(deeper.parameters(), -0.5, 0.5);
    check(tg::gradient(deeper)(at), differences(deeper, at), 1e-7);
}

TEST_CASE("the bundle adjustment of data/ba/test.txt") {
    const vector x{1.797201,   0.590697, -0.635786, 90.859550, 29.361415, 28.777534, 211.628116, -0.284531,
                   -14.762924, 0.058931, 0.069976,  4.173048,  5.586898,  1.403869,  0.417022};
    const double feature[2]{-525.672849, 161.811929};
    const auto f = [&](const auto& v) {
        const auto e = adbench::reprojection_error(v.data(), feature);
        return std::remove_cvref_t<decltype(v)>{e[0], e[1]};
    };
    using jet = tg::jet<double, 16>;
    std::vector<jet> seeded(x.begin(), x.end());
    for (std::size_t k = 0; k < x.size(); ++k) seeded[k].derivative[k] = 1;
    const auto errors = f(seeded);
    CHECK(std::abs(errors[0].value - -2.69048849235189402e-01) <= 1e-6); // its tests' tolerance, and the file's digits
    CHECK(std::abs(errors[1].value - 2.59944792677901881e-01) <= 1e-6);
    CHECK(std::abs(1 - x[14] * x[14] - 8.26092651515999976e-01) <= 1e-12);
    const vector expected{2.28877202208246757e+02,  6.34574811495545418e+02,  -7.82222866259340549e+02,
                          2.42892615607159668e+00,  -1.17828079628011313e+01, 2.54169312487743460e+00,
                          -1.03657084958518086e+00, 4.17022000000000004e-01,  0.,
                          -3.50739521096005205e+02, -9.12107773668008576e+02, -2.42892615607159668e+00,
                          1.17828079628011313e+01};
    check({errors[0].derivative, errors[0].derivative + 13}, expected, 1e-8);
    const auto by_tape = tg::jacobian_reverse(f)(x), forward = tg::jacobian_forward(f)(x);
    for (std::size_t i = 0; i < 2; ++i) {
        check(by_tape[i], {errors[i].derivative, errors[i].derivative + 15}, 1e-13);
        check(forward[i], {errors[i].derivative, errors[i].derivative + 15}, 1e-13);
        check(by_tape[i], differences([&](const vector& v) { return f(v)[i]; }, x), 1e-5); // slopes reach 1000
    }
    // No rotation: the derivative by it is that of its linear part.
    vector still = x;
    still[0] = still[1] = still[2] = 0;
    const auto first = tg::gradient([&](const auto& v) { return f(v)[0]; })(still);
    check(first, differences([&](const vector& v) { return f(v)[0]; }, still), 1e-5);
}

TEST_CASE("hand tracking") {
    adbench::hand h{adbench::made_hand_model(), {}, numbers(60, -3, 3)};
    for (std::size_t i = 0; i < 20; ++i) h.correspondences.push_back(i * 37 % h.model.vertices.size());
    const vector theta = numbers(adbench::hand::angles, -0.5, 0.5), u = numbers(40, 0, 0.5);
    const auto rows = tg::jacobian_forward(h)(theta), by_tape = tg::jacobian_reverse(h)(theta);
    REQUIRE(rows.size() == 60);
    vector all = theta;
    all.insert(all.end(), u.begin(), u.end());
    const auto within = [&](const auto& x) {
        using numbers_type = std::remove_cvref_t<decltype(x)>;
        return h(numbers_type(x.begin(), x.begin() + 26), numbers_type(x.begin() + 26, x.end()));
    };
    const auto of_both = tg::jacobian_forward(within)(all);
    for (std::size_t i = 0; i < rows.size(); i += 7) {
        CAPTURE(i);
        check(by_tape[i], rows[i], 1e-13);
        check(rows[i], differences([&](const vector& x) { return h(x)[i]; }, theta), 1e-8);
        check(of_both[i], differences([&](const vector& x) { return within(x)[i]; }, all), 1e-8);
    }
    // At rest, all vertices are where the model has them; moved, all move alike.
    vector rest(26, 0.0);
    const vector at_rest = h(rest);
    rest[4] = 2;
    const vector moved = h(rest);
    for (std::size_t i = 0; i < 20; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
            const double place = h.points[i * 3 + j] - h.model.vertices[h.correspondences[i]].position[j];
            CHECK(at_rest[i * 3 + j] == doctest::Approx(place).epsilon(1e-12));
            CHECK(moved[i * 3 + j] == doctest::Approx(at_rest[i * 3 + j] - (j == 1 ? 2 : 0)).epsilon(1e-12));
        }
}

TEST_CASE("the LSTM") {
    const adbench::lstm f{2, 7, 3, numbers(12, -1, 1), numbers(24, 0, 1)};
    const vector x = numbers(f.parameters(), -0.5, 0.5);
    const vector g = tg::gradient(f)(x);
    check(g, differences(f, x), 1e-9);
    const vector w(x.begin(), x.begin() + 24), v(x.begin() + 24, x.begin() + 48), e(x.begin() + 48, x.end());
    vector dw(24), dv(24), de(9);
    const double value = by_hand::lstm(2, 7, 3)(w, v, e, f.state, f.sequence, dw, dv, de);
    CHECK(f(x) == doctest::Approx(value).epsilon(1e-14));
    dw.insert(dw.end(), dv.begin(), dv.end());
    dw.insert(dw.end(), de.begin(), de.end());
    check(g, dw, 1e-13);
}

} // namespace adbench_test
