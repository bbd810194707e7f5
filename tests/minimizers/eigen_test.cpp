#include <tapegraph/minimize.hpp>
#include <tapegraph/ode.hpp>
#include <tapegraph/scalar/eigen.hpp>

#include <doctest/doctest.h>

#include <Eigen/Dense>

#include <cmath>
#include <span>
#include <type_traits>

/// Starts, residuals and states that are column vectors of Eigen's.

namespace eigen_test {

namespace tg = tapegraph;

TEST_CASE("minimize: vectors of Eigen, of fixed and of dynamic length") {
    Eigen::Matrix3d a;
    a << 4, 1, 0, 1, 3, -1, 0, -1, 5;
    const Eigen::Vector3d b(1, -2, 3), solution = a.ldlt().solve(b);
    const auto quadratic = [&](const auto& x) {
        std::remove_cvref_t<decltype(x[0])> sum = 0;
        for (int i = 0; i < 3; ++i) {
            for (int k = 0; k < 3; ++k) sum += 0.5 * a(i, k) * x[i] * x[k];
            sum -= b[i] * x[i];
        }
        return sum;
    };
    const auto fixed = tg::minimize(quadratic, Eigen::Vector3d(9, 9, 9));
    static_assert(std::is_same_v<decltype(fixed.x), Eigen::Vector3d>);
    CHECK(fixed.x.isApprox(solution, 1e-7));
    const Eigen::VectorXd start = Eigen::VectorXd::Constant(3, 9);
    const auto dynamic = tg::minimize(quadratic, start, tg::newton_cg{});
    CHECK(dynamic.x.isApprox(solution, 1e-7));

    const auto residuals = [&](const auto& x) {
        using number = std::remove_cvref_t<decltype(x[0])>;
        return Eigen::Matrix<number, 3, 1>(a.template cast<number>() * x - b.template cast<number>());
    };
    CHECK(tg::minimize(residuals, Eigen::Vector3d(9, 9, 9), tg::gauss_newton{}).x.isApprox(solution, 1e-12));
    CHECK(tg::minimize(residuals, start, tg::levenberg_marquardt{}).x.isApprox(solution, 1e-7));
    const auto by_hand = [&](const Eigen::Vector3d& x, std::span<double> g) {
        Eigen::Map<Eigen::Vector3d>(g.data()) = a * x - b;
        return 0.5 * x.dot(a * x) - b.dot(x);
    };
    CHECK(tg::minimize(by_hand, Eigen::Vector3d(9, 9, 9)).x.isApprox(solution, 1e-7));
}

TEST_CASE("ode: states that are vectors of Eigen, plain, recording and jets") {
    const auto turn = [](double, const auto& y) {
        auto d = y;
        d[0] = y[1];
        d[1] = -y[0];
        return d;
    };
    const tg::ode::dormand_prince method{.relative_tolerance = 1e-10, .absolute_tolerance = 1e-10};
    const Eigen::Vector2d end = tg::ode::integrate(turn, Eigen::Vector2d(1, 0), 0, 2, method);
    CHECK(end.isApprox(Eigen::Vector2d(std::cos(2), -std::sin(2)), 1e-8));
    const Eigen::VectorXd middle = tg::ode::solve(turn, Eigen::VectorXd(Eigen::Vector2d(1, 0)), 0, 2, method)(1);
    CHECK(middle.isApprox(Eigen::Vector2d(std::cos(1), -std::sin(1)), 1e-8));
    tg::real_tape<> tape;
    Eigen::Matrix<tg::real<>, 2, 1> y(1.0, 0.0);
    for (auto& each : y) tape.watch(each);
    const auto last = tg::ode::integrate(turn, y, 0, 2, method);
    CHECK(tape.gradient(last[0], y[1]) == doctest::Approx(std::sin(2)).epsilon(1e-8));
    using jet = tg::jet<double, 1>;
    const Eigen::Matrix<jet, 2, 1> moving(jet(1, 0), jet(0.0));
    CHECK(tg::ode::integrate(turn, moving, 0, 2, method)[0].derivative[0] ==
          doctest::Approx(std::cos(2)).epsilon(1e-8));
}

} // namespace eigen_test
