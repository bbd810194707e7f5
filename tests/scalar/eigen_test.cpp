#include <tapegraph/real.hpp>
#include <tapegraph/scalar/eigen.hpp>

#include <Eigen/Dense>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>

/// Eigen's matrices, decompositions and expressions of numbers that record, and of jets.

namespace eigen_test {

namespace tg = tapegraph;
using real = tg::real<>;

constexpr double other[3][3] = {{0.4, 0.1, 0.8}, {0.9, 0.3, 0.2}, {0.6, 0.5, 0.7}};

// Products, blocks, a solved system, reductions and functions of elements. Every decomposition asks the same of a number:
// jets take one, in matrices whose size the compiler knows, numbers that record take more, in matrices of any size.
template <class Number, int Size>
Number run(const Number* x) {
    using std::sqrt;
    using matrix = Eigen::Matrix<Number, Size, Size>;
    using vector = Eigen::Matrix<Number, Size, 1>;
    using plain_matrix = Eigen::Matrix<double, Size, Size>;
    const Eigen::Index n = 3;
    const matrix a = Eigen::Map<const matrix>(x, n, n);
    const matrix m = a.transpose() * a + 2.0 * matrix::Identity(n, n);
    const vector b = Eigen::Map<const Eigen::Matrix<Number, Eigen::Dynamic, 1>>(x, 12).tail(n);
    const auto lu = [&] {
        if constexpr (Size == Eigen::Dynamic)
            return m.partialPivLu();
        else
            return m.fullPivLu(); // in no blocks: the least to compile
    }();
    const vector solved = lu.solve(b);
    vector again = solved, third = solved;
    Number trace = 0;
    if constexpr (Size == Eigen::Dynamic) {
        again = m.ldlt().solve(b), third = m.householderQr().solve(b);
        trace = m.inverse().trace();
    } else {
        for (Eigen::Index i = 0; i < n; ++i) trace += vector(lu.solve(vector::Unit(n, i)))(i);
    }
    const plain_matrix plain = Eigen::Map<const plain_matrix>(&other[0][0], n, n).transpose();
    const vector mixed = plain * solved.template cast<Number>().eval() / 3.0;
    Number sum = solved.dot(again) + third.squaredNorm() + lu.determinant() * 0.01 + mixed.norm();
    sum += a.array().square().sin().sum() + a.cwiseAbs().maxCoeff() + trace;
    return sum;
}

// The same in plain numbers, with the inverse by cofactors.
double reference(const std::array<double, 12>& x) {
    const auto a = [&](std::size_t row, std::size_t column) { return x[column % 3 * 3 + row % 3]; };
    const auto m = [&](std::size_t i, std::size_t j) {
        return a(0, i) * a(0, j) + a(1, i) * a(1, j) + a(2, i) * a(2, j) + (i % 3 == j % 3 ? 2 : 0);
    };
    const auto cofactor = [&](std::size_t i, std::size_t j) {
        return m(i + 1, j + 1) * m(i + 2, j + 2) - m(i + 1, j + 2) * m(i + 2, j + 1);
    };
    const double determinant = m(0, 0) * cofactor(0, 0) + m(0, 1) * cofactor(0, 1) + m(0, 2) * cofactor(0, 2);
    std::array<double, 3> solved{};
    double squares = 0, mixed = 0, sines = 0, largest = 0, trace = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) solved[i] += cofactor(i, j) * x[9 + j] / determinant; // it is symmetric
        squares += solved[i] * solved[i];
        trace += cofactor(i, i) / determinant;
    }
    for (std::size_t i = 0; i < 3; ++i) {
        double row = 0;
        for (std::size_t j = 0; j < 3; ++j) row += other[i][j] * solved[j] / 3;
        mixed += row * row;
    }
    for (std::size_t i = 0; i < 9; ++i) sines += std::sin(x[i] * x[i]), largest = std::max(largest, std::abs(x[i]));
    return 2 * squares + determinant * 0.01 + std::sqrt(mixed) + sines + largest + trace;
}

TEST_CASE("Eigen: the gradient through matrices of numbers that record, and of jets") {
    std::array<double, 12> x;
    for (std::size_t i = 0; i < 12; ++i) x[i] = std::sin(1.0 + 2.3 * static_cast<double>(i));
    tg::real_tape<> tape;
    using jet = tg::jet<double, 12>;
    std::array<real, 12> v;
    std::array<jet, 12> j;
    for (std::size_t i = 0; i < 12; ++i) {
        tape.watch(v[i] = x[i]);
        j[i] = jet(x[i], static_cast<int>(i));
    }
    const real y = run<real, Eigen::Dynamic>(v.data());
    const jet forward = run<jet, 3>(j.data());
    CHECK(y.value() == doctest::Approx(reference(x)).epsilon(1e-12));
    CHECK(forward.value == doctest::Approx(y.value()).epsilon(1e-12));
    tape.backward(y);
    for (std::size_t i = 0; i < 12; ++i) {
        std::array<double, 12> up = x, down = x;
        up[i] += 1e-6, down[i] -= 1e-6;
        const double difference = (reference(up) - reference(down)) / 2e-6;
        CHECK(tape.adjoint(v[i]) == doctest::Approx(difference).epsilon(1e-7));
        CHECK(forward.derivative[i] == doctest::Approx(tape.adjoint(v[i])).epsilon(1e-11));
    }
}

TEST_CASE("Eigen: fixed sizes and mixed operands") {
    tg::real_tape<> tape;
    Eigen::Vector<real, 3> v(1.0, 2.0, 3.0);
    for (real& each : v) tape.watch(each);
    const Eigen::Vector3d w(0.5, -1, 2);
    const real y = v.dot(w.cast<real>()) + (2.0 * v).sum() + v.cross(Eigen::Vector<real, 3>(w.cast<real>()))(0);
    tape.backward(y);
    CHECK(tape.adjoint(v(0)) == 2.5);
    CHECK(tape.adjoint(v(1)) == 3);
    CHECK(tape.adjoint(v(2)) == 5);
}

TEST_CASE("Eigen: gradient, jacobian and hvp of functions of column vectors") {
    const auto norm = [](const auto& v) { return v.squaredNorm() * v[0]; };
    const Eigen::Vector3d x(1, 2, 3);
    const Eigen::Vector3d g = tg::gradient(norm)(x);
    CHECK(g.isApprox(Eigen::Vector3d(14 + 2, 4, 6), 1e-15)); // |x|^2 + 2 x0^2, 2 x0 x1, 2 x0 x2
    const auto pair = [](const auto& v) {
        Eigen::Matrix<std::remove_cvref_t<decltype(v[0])>, 2, 1> y;
        y << v[0] * v[1], v[2] * v[2];
        return y;
    };
    const Eigen::VectorXd dynamic = x;
    const auto rows = tg::jacobian(pair)(dynamic);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].isApprox(Eigen::Vector3d(2, 1, 0), 1e-15));
    CHECK(rows[1].isApprox(Eigen::Vector3d(0, 0, 6), 1e-15));
    CHECK(tg::jacobian_reverse(pair)(dynamic)[0].isApprox(rows[0], 1e-15));
    const auto r = tg::hvp(norm)(x, Eigen::Vector3d(1, 0, 0)).product;
    CHECK(r.isApprox(Eigen::Vector3d(6, 4, 6), 1e-14)); // the first column of the Hessian
}

} // namespace eigen_test
