#include <tapegraph/number_program.hpp>
#include <tapegraph/scalar/sparse/eigen.hpp>

#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

/// Sparse derivatives in Eigen's matrices and solvers.

namespace sparse_eigen_test {

namespace tg = tapegraph;

TEST_CASE("sparse derivatives: Newton's method with Eigen's sparse solver") {
    const std::size_t n = 200;
    const auto f = [](const auto& x) {
        auto sum = std::remove_cvref_t<decltype(x[0])>(0);
        for (std::size_t i = 0; i + 1 < x.size(); ++i) {
            const auto step = x[i + 1] - x[i];
            sum += step * step + 0.1 * x[i] * x[i] * x[i] * x[i] - x[i];
        }
        return sum + x[x.size() - 1] * x[x.size() - 1];
    };
    std::vector<double> x(n, 1.0);
    const auto program = tg::record(f, x), gradient = program.gradient();
    const auto hessian = tg::sparse_hessian(program);
    for (int iteration = 0; iteration < 30; ++iteration) {
        const auto h = hessian(x);
        const Eigen::SparseMatrix<double> matrix = tg::eigen_view(h);
        REQUIRE(matrix.nonZeros() == static_cast<Eigen::Index>(3 * n - 2));
        const std::vector<double> g = gradient(x);
        const Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> solver(matrix);
        const Eigen::VectorXd step =
            solver.solve(Eigen::Map<const Eigen::VectorXd>(g.data(), static_cast<Eigen::Index>(n)));
        for (std::size_t i = 0; i < n; ++i) x[i] -= step(static_cast<Eigen::Index>(i));
    }
    for (double each : gradient(x)) CHECK(std::fabs(each) < 1e-12); // quadratic convergence to a few roundings
    const auto h = hessian(x);
    const Eigen::MatrixXd dense = tg::eigen_view(h);
    const std::vector<double> expected = h.dense();
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
            CHECK(dense(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) == expected[i * n + j]);
}

} // namespace sparse_eigen_test
