#include <tapegraph/number_program.hpp>
#include <tapegraph/real.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

/// Sparse Jacobians and Hessians with the dense ones.

namespace sparse_test {

namespace tg = tapegraph;
using vector = std::vector<double>;

// A function of random sums of products: every element of `terms` is a product of functions of these numbers.
struct random_function {
    std::vector<std::vector<std::vector<std::size_t>>> terms; // of each result
    template <class X>
    auto operator()(const X& x) const {
        using std::sin, std::exp;
        using number = std::remove_cvref_t<decltype(x[0])>;
        std::vector<number> results;
        for (const auto& result : terms) {
            number sum = 0;
            for (const auto& factors : result) {
                number product = 1;
                for (std::size_t k = 0; k < factors.size(); ++k) {
                    const number& f = x[factors[k]];
                    product *= k % 3 == 0 ? number(sin(f)) : k % 3 == 1 ? number(exp(0.5 * f)) : f;
                }
                sum += product;
            }
            results.push_back(sum);
        }
        return results;
    }
};
struct random_sum {
    random_function f;
    template <class X>
    auto operator()(const X& x) const {
        return f(x)[0];
    }
};
random_function function(std::mt19937& random, std::size_t inputs, std::size_t results, std::size_t terms) {
    random_function f;
    for (std::size_t i = 0; i < results; ++i) {
        auto& sum = f.terms.emplace_back();
        for (std::size_t t = random() % (terms + 1); t > 0; --t) {
            auto& product = sum.emplace_back();
            for (std::size_t k = 1 + random() % 3; k > 0; --k) product.push_back(random() % inputs);
        }
    }
    return f;
}

TEST_CASE("sparse_jacobian: random functions, with the dense Jacobian") {
    std::mt19937 random(11);
    for (int round = 0; round < 20; ++round) {
        const std::size_t n = 1 + random() % 90, m = 1 + random() % 40; // more than 64 inputs, too
        const random_function f = function(random, n, m, 3);
        vector x(n), other(n);
        for (double& each : x) each = std::uniform_real_distribution<>(-1, 1)(random);
        for (double& each : other) each = std::uniform_real_distribution<>(-1, 1)(random);
        const auto plan = tg::sparse_jacobian(tg::record(f, x));
        for (const vector& at : {x, other}) {
            const auto expected = tg::jacobian(f)(at);
            const auto sparse = plan(at);
            const vector dense = sparse.dense();
            for (std::size_t i = 0; i < m; ++i)
                for (std::size_t j = 0; j < n; ++j)
                    CHECK(dense[i * n + j] == doctest::Approx(expected[i][j]).epsilon(1e-12));
            CHECK(tg::sparse_jacobian(f, at).values == sparse.values);
        }
        // The pattern is exactly which numbers are in a result.
        for (std::size_t i = 0; i < m; ++i) {
            std::set<std::int32_t> used;
            for (const auto& factors : f.terms[i])
                for (std::size_t k : factors) used.insert(static_cast<std::int32_t>(k));
            const auto& p = plan.pattern();
            CHECK(std::set<std::int32_t>(p.columns.begin() + p.starts[i], p.columns.begin() + p.starts[i + 1]) == used);
        }
    }
}

TEST_CASE("sparse_jacobian: full rows and columns together, with the dense Jacobian") {
    const auto arrow = [](const auto& v) {
        using std::sin;
        using number = std::remove_cvref_t<decltype(v[0])>;
        std::vector<number> y;
        number all = 0;
        for (const auto& each : v) all += each * each * v[0];
        y.push_back(all);
        for (std::size_t i = 1; i < v.size(); ++i) y.push_back(v[0] * sin(v[i]) + v[i]);
        return y;
    };
    std::mt19937 random(17);
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{67}, std::size_t{131}}) {
        vector x(n);
        for (double& each : x) each = std::uniform_real_distribution<>(-1, 1)(random);
        const auto plan = tg::sparse_jacobian(tg::record(arrow, x));
        CHECK(plan.directions() == static_cast<std::int32_t>(std::min<std::size_t>(n, 3)));
        const auto expected = tg::jacobian(arrow)(x);
        const vector dense = plan(x).dense();
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j)
                CHECK(dense[i * n + j] == doctest::Approx(expected[i][j]).epsilon(1e-12)); // sums of up to 131 products
    }
    // Random functions with results of all inputs, and inputs of all results
    for (int round = 0; round < 20; ++round) {
        const std::size_t n = 1 + random() % 40, m = 1 + random() % 40;
        random_function f = function(random, n, m, 2);
        for (std::size_t i = 0; i < m; ++i) f.terms[i].push_back({0, i % n});
        for (std::size_t j = 0; j < n; ++j) f.terms[m / 2].push_back({j, 0, n / 2});
        vector x(n);
        for (double& each : x) each = std::uniform_real_distribution<>(-1, 1)(random);
        const auto expected = tg::jacobian(f)(x);
        const vector dense = tg::sparse_jacobian(f, x).dense();
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j < n; ++j)
                CHECK(dense[i * n + j] == doctest::Approx(expected[i][j]).epsilon(1e-12));
    }
}

TEST_CASE("sparse_hessian: random functions, with the dense Hessian, by both colourings") {
    std::mt19937 random(13);
    for (int round = 0; round < 20; ++round) {
        const std::size_t n = 1 + random() % 30;
        random_sum f{function(random, n, 1, n)};
        vector x(n), other(n);
        for (double& each : x) each = std::uniform_real_distribution<>(-1, 1)(random);
        for (double& each : other) each = std::uniform_real_distribution<>(-1, 1)(random);
        const auto program = tg::record(f, x);
        const auto star = tg::sparse_hessian(program),
                   acyclic = tg::sparse_hessian(program, tg::hessian_colouring::acyclic);
        CHECK(star.pattern() == acyclic.pattern());
        for (const vector& at : {x, other}) {
            const auto expected = tg::hessian(f)(at);
            const vector direct = star(at).dense(), by_differences = acyclic(at).dense();
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t j = 0; j < n; ++j) {
                    CHECK(direct[i * n + j] == doctest::Approx(expected[i][j]).epsilon(1e-11));
                    // Differences of up to n numbers of about 1.
                    CHECK(by_differences[i * n + j] == doctest::Approx(expected[i][j]).epsilon(1e-10));
                }
        }
    }
}

TEST_CASE("sparse_hessian: arrowhead, banded, blocks, linear and empty rows") {
    const std::size_t n = 17;
    vector x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = 0.3 + 0.05 * static_cast<double>(i);
    const auto check = [&](const char* name, const auto& f, std::int32_t star, std::int32_t acyclic,
                           std::size_t nonzeros) {
        INFO(std::string(name));
        const auto program = tg::record(f, x);
        const auto direct = tg::sparse_hessian(program),
                   trees = tg::sparse_hessian(program, tg::hessian_colouring::acyclic);
        CHECK(direct.directions() == star);
        CHECK(trees.directions() == acyclic);
        CHECK(direct.pattern().nonzeros() == nonzeros);
        const auto expected = tg::hessian(f)(x);
        const vector a = direct(x).dense(), b = trees(x).dense();
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) {
                CHECK(a[i * n + j] == doctest::Approx(expected[i][j]).epsilon(1e-12));
                CHECK(b[i * n + j] == doctest::Approx(expected[i][j]).epsilon(1e-10));
            }
        CHECK(tg::sparse_hessian(f, x).values == direct(x).values);
    };
    check(
        "arrowhead",
        [](const auto& v) {
            auto sum = std::remove_cvref_t<decltype(v[0])>(0);
            for (std::size_t i = 1; i < v.size(); ++i) sum += v[0] * v[i] * v[i];
            return sum + v[0] * v[0];
        },
        2, 2, 3 * n - 2);
    check(
        "tridiagonal",
        [](const auto& v) {
            using std::sin;
            auto sum = std::remove_cvref_t<decltype(v[0])>(0);
            for (std::size_t i = 1; i < v.size(); ++i) sum += sin(v[i - 1] * v[i]);
            return sum;
        },
        3, 2, 3 * n - 2);
    check(
        "linear and absent", [](const auto& v) { return 3 * v[0] + v[1] * v[1] * v[2] - v[5] + v[3] * 2; }, 2, 2,
        3); // (1,1), (1,2), (2,1)
    check(
        "linear", [](const auto& v) { return 3 * v[0] - v[5]; }, 0, 0, 0);
    check(
        "full",
        [](const auto& v) {
            auto sum = std::remove_cvref_t<decltype(v[0])>(0);
            for (const auto& each : v) sum += each;
            return sum * sum * sum;
        },
        static_cast<std::int32_t>(n), static_cast<std::int32_t>(n), n * n);
}

TEST_CASE("sparse_jacobian: rows and columns that are full or empty; coordinates") {
    const auto f = [](const auto& v) {
        using number = std::remove_cvref_t<decltype(v[0])>;
        number sum = 0;
        for (const auto& each : v) sum += each * each;
        return std::vector<number>{sum, number(2), v[1] * v[3], number(0), v[2]};
    };
    const vector x{1, 2, 3, 4, 5};
    const auto plan = tg::sparse_jacobian(tg::record(f, x));
    CHECK(plan.directions() == 2); // by rows: the full one, and both others together
    const auto j = plan(x);
    CHECK(j.rows() == 5);
    CHECK(j.columns() == 5);
    CHECK(j.row_indices() == std::vector<std::int32_t>{0, 0, 0, 0, 0, 2, 2, 4});
    CHECK(j.pattern.columns == std::vector<std::int32_t>{0, 1, 2, 3, 4, 1, 3, 2});
    CHECK(j.values == vector{2, 4, 6, 8, 10, 4, 2, 1});
    const auto tall = [](const auto& v) { return std::vector{v[0] * v[0], v[0] * v[1], v[0] + v[2], v[0] * 2}; };
    const auto t = tg::sparse_jacobian(tg::record(tall, vector{1, 2, 3}));
    CHECK(t.directions() == 2); // by columns: the first, and both others together
    CHECK(t(vector{1, 2, 3}).dense() == vector{2, 0, 0, 2, 1, 0, 1, 0, 1, 2, 0, 0});
    // Many inputs at once.
    const vector xs{1, 2, 3, 4, 5, 5, 4, 3, 2, 1};
    vector values(2 * j.values.size());
    plan.program().run_batch(2, xs, values);
    CHECK(values == vector{2, 4, 6, 8, 10, 4, 2, 1, 10, 8, 6, 4, 2, 2, 4, 1});
}

} // namespace sparse_test
