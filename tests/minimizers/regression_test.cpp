#include <tapegraph/minimize.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

/// Nonlinear regression with certified results: Statistical Reference Datasets of the National Institute of Standards
/// and Technology (NIST StRD), 11 digits of each parameter and of the sum of squares.

namespace regression_test {

namespace tg = tapegraph;
using vector = std::vector<double>;

struct data_set {
    vector x, y, certified;
    double sum_of_squares;
};

// Residuals in double cancel by what the data have in common: of 11 digits, 7 remain in parameters and 9 in the sum of
// squares.
template <class Model>
void fit(const std::string& name, const data_set& data, const Model& model, const std::vector<vector>& starts,
         const tg::minimization_options& options = {.gradient_tolerance = 0}) {
    const auto residuals = [&](const auto& b) {
        std::vector<std::remove_cvref_t<decltype(b[0])>> r;
        for (std::size_t i = 0; i < data.x.size(); ++i) r.push_back(model(data.x[i], b) - data.y[i]);
        return r;
    };
    for (const vector& start : starts) {
        const auto r = tg::minimize(residuals, start, tg::levenberg_marquardt{}, options);
        CAPTURE(name);
        CAPTURE(start[0]);
        CAPTURE(r.message());
        CHECK(r.converged());
        CHECK(2 * r.value == doctest::Approx(data.sum_of_squares).epsilon(1e-9));
        for (std::size_t i = 0; i < start.size(); ++i)
            CHECK(r.x[i] == doctest::Approx(data.certified[i]).epsilon(1e-7));
    }
}

TEST_CASE("levenberg_marquardt: Misra1a and BoxBOD from both of NIST's starts") {
    const auto model = [](double x, const auto& b) { return b[0] * (1 - exp(-b[1] * x)); };
    fit("Misra1a",
        {{77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0},
         {10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78},
         {2.3894212918e2, 5.5015643181e-4},
         1.2455138894e-1},
        model, {{500, 0.0001}, {250, 0.0005}});
    const data_set box{
        {1, 2, 3, 5, 7, 10}, {109, 149, 149, 191, 213, 224}, {2.1380940889e2, 5.4723748542e-1}, 1.1680088766e3};
    fit("BoxBOD", box, model, {{100, 0.75}});
    // From the first start a bound must keep b[1] from where exp(-b[1] x) is 0 for all x.
    fit("BoxBOD", box, model, {{1, 1}}, {.gradient_tolerance = 0, .upper = {1000, 1}});
}

TEST_CASE("levenberg_marquardt: Thurber") {
    fit("Thurber",
        {{-3.067, -2.981, -2.921, -2.912, -2.840, -2.797, -2.702, -2.699, -2.633, -2.481, -2.363, -2.322, -1.501,
          -1.460, -1.274, -1.212, -1.100, -1.046, -0.915, -0.714, -0.566, -0.545, -0.400, -0.309, -0.109, -0.103,
          0.010,  0.119,  0.377,  0.790,  0.963,  1.006,  1.115,  1.572,  1.841,  2.047,  2.200},
         {80.574,   84.248,   87.264,   87.195,   89.076,   89.608,   89.868,   90.101,   92.405,   95.854,
          100.696,  101.060,  401.672,  390.724,  567.534,  635.316,  733.054,  759.087,  894.206,  990.785,
          1090.109, 1080.914, 1122.643, 1178.351, 1260.531, 1273.514, 1288.339, 1327.543, 1353.863, 1414.509,
          1425.208, 1421.384, 1442.962, 1464.350, 1468.705, 1447.894, 1457.628},
         {1.2881396800e3, 1.4910792535e3, 5.8323836877e2, 7.5416644291e1, 9.6629502864e-1, 3.9797285797e-1,
          4.9727297349e-2},
         5.6427082397e3},
        [](double x, const auto& b) {
            return (b[0] + x * (b[1] + x * (b[2] + x * b[3]))) / (1 + x * (b[4] + x * (b[5] + x * b[6])));
        },
        {{1000, 1000, 400, 40, 0.7, 0.3, 0.03}, {1300, 1500, 500, 75, 1, 0.4, 0.05}});
}

TEST_CASE("levenberg_marquardt: MGH09, the function of Kowalik and Osborne, and MGH10, that of Meyer") {
    fit("MGH09",
        {{4, 2, 1, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625},
         {0.1957, 0.1947, 0.1735, 0.1600, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246},
         {1.9280693458e-1, 1.9128232873e-1, 1.2305650693e-1, 1.3606233068e-1},
         3.0750560385e-4},
        [](double x, const auto& b) { return b[0] * (x * x + x * b[1]) / (x * x + x * b[2] + b[3]); },
        {{25, 39, 41.5, 39}, {0.25, 0.39, 0.415, 0.39}});
    data_set meyer{
        {},
        {34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872},
        {5.6096364710e-3, 6.1813463463e3, 3.4522363462e2},
        8.7945855171e1};
    for (int i = 1; i <= 16; ++i) meyer.x.push_back(45 + 5 * i);
    fit("MGH10", meyer, [](double x, const auto& b) { return b[0] * exp(b[1] / (x + b[2])); }, {{0.02, 4000, 250}});
}

TEST_CASE("levenberg_marquardt: Lanczos3, a sum of exponential functions") {
    data_set lanczos{{},
                     {2.5134, 2.0443, 1.6684, 1.3664, 1.1232, 0.9269, 0.7679, 0.6389, 0.5338, 0.4479, 0.3776, 0.3197,
                      0.2720, 0.2325, 0.1997, 0.1723, 0.1493, 0.1301, 0.1138, 0.1000, 0.0883, 0.0783, 0.0698, 0.0624},
                     {8.6816414977e-2, 9.5498101505e-1, 8.4400777463e-1, 2.9515951832, 1.5825685901, 4.9863565084},
                     1.6117193594e-8};
    for (int i = 0; i < 24; ++i) lanczos.x.push_back(0.05 * i);
    fit("Lanczos3", lanczos,
        [](double x, const auto& b) { return b[0] * exp(-b[1] * x) + b[2] * exp(-b[3] * x) + b[4] * exp(-b[5] * x); },
        {{1.2, 0.3, 5.6, 5.5, 6.5, 7.6}, {0.5, 0.7, 3.6, 4.2, 4, 6.3}});
}

TEST_CASE("least squares: a linear problem against the normal equations in closed form") {
    // y = a + b t at t = 0, ..., 4: b = sum (t - 2) y / 10, a = mean(y) - 2 b
    const vector y{1.5, 2.25, 2.75, 4.5, 4};
    const auto residuals = [&](const auto& p) {
        std::vector<std::remove_cvref_t<decltype(p[0])>> r;
        for (std::size_t i = 0; i < y.size(); ++i) r.push_back(p[0] + p[1] * static_cast<double>(i) - y[i]);
        return r;
    };
    const double b = (-2 * 1.5 - 2.25 + 4.5 + 2 * 4) / 10, a = 15.0 / 5 - 2 * b;
    const auto newton = tg::minimize(residuals, vector{10, -10}, tg::gauss_newton{});
    CHECK(newton.x[0] == doctest::Approx(a).epsilon(1e-13));
    CHECK(newton.x[1] == doctest::Approx(b).epsilon(1e-13));
    CHECK(newton.iterations <= 2);
    const auto damped = tg::minimize(residuals, vector{10, -10}, tg::levenberg_marquardt{});
    CHECK(damped.x[0] == doctest::Approx(a).epsilon(1e-8));
    CHECK(damped.x[1] == doctest::Approx(b).epsilon(1e-8));
}

TEST_CASE(
    "least squares: columns that depend on each other, numbers that nothing depends on, fewer residuals than numbers") {
    const auto same = [](const auto& x) {
        return std::vector<std::remove_cvref_t<decltype(x[0])>>{x[0] + x[1] - 3, 2 * (x[0] + x[1]) - 6,
                                                                x[0] + x[1] - 6};
    };
    const auto ignoring = [](const auto& x) {
        return std::vector<std::remove_cvref_t<decltype(x[0])>>{x[0] * x[0] - 4, x[0] - 2};
    };
    const auto few = [](const auto& x) {
        return std::vector<std::remove_cvref_t<decltype(x[0])>>{x[0] * x[1] + x[2] - 3};
    };
    const auto check = [&](const auto& method) {
        const auto a = tg::minimize(same, vector{1, 1}, method);
        CHECK(a.converged());
        CHECK(a.x[0] + a.x[1] == doctest::Approx(3.5).epsilon(1e-8)); // (3 + 4 * 3 + 6) / 6
        const auto b = tg::minimize(ignoring, vector{5, 7}, method);
        CHECK(b.converged());
        CHECK(b.x[0] == doctest::Approx(2).epsilon(1e-8));
        CHECK(b.x[1] == 7);
        const auto c = tg::minimize(few, vector{1, 2, 5}, method);
        CHECK(c.converged());
        CHECK(c.x[0] * c.x[1] + c.x[2] == doctest::Approx(3).epsilon(1e-8));
    };
    check(tg::gauss_newton{});
    check(tg::levenberg_marquardt{});
}

} // namespace regression_test
