#include <tapegraph/real.hpp>
#include <tapegraph/scalar/eigen.hpp>

#include <Eigen/Dense>
#include <doctest/doctest.h>

#include <cmath>
#include <type_traits>

/// Eigen's matrices, decompositions and expressions of numbers that record, and of jets.

namespace eigen_test {

namespace tg = tapegraph;
using real = tg::real<>;

template <class Number>
using matrix = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic>;
template <class Number>
using vector = Eigen::Matrix<Number, Eigen::Dynamic, 1>;

// Products, blocks, a solved system, reductions and functions of elements.
template <class Number>
Number run(const vector<Number>& x) {
    using std::sqrt;
    const Eigen::Index n = 3;
    matrix<Number> a = Eigen::Map<const matrix<Number>>(x.data(), n, n);
    const matrix<Number> m = a.transpose() * a + 2.0 * matrix<Number>::Identity(n, n);
    const vector<Number> b = x.tail(n);
    const vector<Number> solved = m.partialPivLu().solve(b), again = m.ldlt().solve(b),
                         third = m.householderQr().solve(b);
    const matrix<double> plain = matrix<double>::Random(n, n).cwiseAbs();
    const vector<Number> mixed = plain * solved.template cast<Number>().eval() / 3.0;
    Number sum = solved.dot(again) + third.squaredNorm() + m.determinant() * 0.01 + mixed.norm();
    sum += a.array().square().sin().sum() + a.cwiseAbs().maxCoeff() + m.inverse().trace();
    return sum;
}

vector<double> start() {
    vector<double> x(12);
    for (Eigen::Index i = 0; i < 12; ++i) x(i) = std::sin(1.0 + 2.3 * static_cast<double>(i));
    return x;
}

TEST_CASE("Eigen: the gradient through matrices of numbers that record, and of jets") {
    const vector<double> x = start();
    std::srand(1); // of Eigen's Random
    const double value = run<double>(x);
    tg::real_tape<> tape;
    vector<real> v = x.cast<real>();
    for (real& each : v) tape.watch(each);
    std::srand(1);
    const real y = run<real>(v);
    CHECK(y.value() == doctest::Approx(value).epsilon(1e-12));
    tape.backward(y);
    using jet = tg::jet<double, 12>;
    vector<jet> j(12);
    for (int i = 0; i < 12; ++i) j(i) = jet(x(i), i);
    std::srand(1);
    const jet forward = run<jet>(j);
    for (Eigen::Index i = 0; i < 12; ++i) {
        vector<double> up = x, down = x;
        up(i) += 1e-6, down(i) -= 1e-6;
        std::srand(1);
        const double high = run<double>(up);
        std::srand(1);
        const double difference = (high - run<double>(down)) / 2e-6;
        CHECK(tape.adjoint(v(i)) == doctest::Approx(difference).epsilon(1e-7));
        CHECK(forward.derivative[i] == doctest::Approx(tape.adjoint(v(i))).epsilon(1e-11));
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
    const vector<double> dynamic = x;
    const auto rows = tg::jacobian(pair)(dynamic);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].isApprox(Eigen::Vector3d(2, 1, 0), 1e-15));
    CHECK(rows[1].isApprox(Eigen::Vector3d(0, 0, 6), 1e-15));
    CHECK(tg::jacobian_reverse(pair)(dynamic)[0].isApprox(rows[0], 1e-15));
    const auto r = tg::hvp(norm)(x, Eigen::Vector3d(1, 0, 0)).product;
    CHECK(r.isApprox(Eigen::Vector3d(6, 4, 6), 1e-14)); // the first column of the Hessian
}

} // namespace eigen_test
