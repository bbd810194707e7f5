#include "../../benchmarks/autodiff/adbench_hand.hpp"
#include "../../benchmarks/autodiff/adbench_problems.hpp"

#include <support/temporary_folder.hpp>

#include <tapegraph/real.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <vector>

/// ADBench's hand and LSTM on its own data, where TAPEGRAPH_DATA has `adbench`, the folder `data` of
/// https://github.com/microsoft/ADBench, against the results that its tests expect (test/cpp/modules/common,
/// HandTests.cpp and LstmTests.cpp).

namespace adbench_data_test {

namespace tg = tapegraph;
using vector = std::vector<double>;

vector numbers_in(std::ifstream& file, std::size_t count) {
    vector x(count);
    for (double& each : x) file >> each;
    REQUIRE(file.good());
    return x;
}
// Their tests compare differences, not ratios.
void check(const vector& got, const vector& want, double tolerance) {
    REQUIRE(got.size() >= want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
        CAPTURE(i);
        CHECK(std::abs(got[i] - want[i]) <= tolerance);
    }
}
vector column(const std::vector<vector>& rows, std::size_t j) {
    vector x;
    for (const vector& row : rows) x.push_back(row[j]);
    return x;
}

struct hand_instance {
    adbench::hand problem;
    vector theta, u;
};
hand_instance read_hand(const std::string& folder, const char* name, bool within_triangles) {
    hand_instance h{{adbench::read_hand_model(folder), {}, {}}, {}, {}};
    std::ifstream file(folder + "/" + name);
    std::size_t points = 0, angles = 0;
    file >> points >> angles;
    REQUIRE(angles == adbench::hand::angles);
    for (std::size_t i = 0; i < points; ++i) {
        std::size_t place = 0;
        file >> place;
        h.problem.correspondences.push_back(place);
        const vector point = numbers_in(file, 3);
        h.problem.points.insert(h.problem.points.end(), point.begin(), point.end());
    }
    if (within_triangles) h.u = numbers_in(file, 2 * points);
    h.theta = numbers_in(file, angles);
    return h;
}

TEST_CASE("the hand of data/hand/test.txt") {
    const auto folder = support::real_data("adbench");
    if (folder.empty()) return;
    const hand_instance h = read_hand((folder / "hand").string(), "test.txt", false);
    check(h.problem(h.theta),
          {1.65193147941611551e-01, -1.74542769272742593e-01, 1.54751161622253441e-01, -1.25651749731793605e-01,
           -4.25102935355075040e-02, -1.30665781132340175e-01},
          1e-8);
    const auto rows = tg::jacobian_forward(h.problem)(h.theta), by_tape = tg::jacobian_reverse(h.problem)(h.theta);
    for (const auto& jacobian : {rows, by_tape}) {
        check(column(jacobian, 0),
              {-1.95512959341282745e-02, -6.81027576369377941e-03, -4.09359630708754085e-02, -7.10032003143440671e-02,
               -2.81346929141111299e-02, -2.54484136783155838e-02},
              1e-6);
        check(column(jacobian, 2),
              {-1.08140043450366714e-02, -6.54731655106268462e-02, 2.95529253068245066e-03, -6.33408854067304267e-02,
               -8.98189200086859235e-02, 2.07440902671436785e-02},
              1e-6);
        check(column(jacobian, 3), {-1, 0, 0, -1, 0, 0}, 1e-12);
        check(column(jacobian, 18),
              {0, 0, 0, -3.45326893768281365e-02, 2.42024596962444292e-02, -3.10675692993888850e-03}, 1e-6);
        check(column(jacobian, 22),
              {-2.21537299179855318e-02, 1.42669175415592216e-02, -3.12350905279757118e-02, 0, 0, 0}, 1e-6);
        check(column(jacobian, 25),
              {-2.24887887916698764e-03, 3.09895230315512067e-03, -3.09211880497457705e-04, 0, 0, 0}, 1e-6);
    }
}

TEST_CASE("the hand of data/hand/hand_complicated.txt, with points within triangles") {
    const auto folder = support::real_data("adbench");
    if (folder.empty()) return;
    const hand_instance h = read_hand((folder / "hand").string(), "hand_complicated.txt", true);
    check(h.problem(h.theta, h.u),
          {0.15618766169646370, -0.14930052600332222, 0.17223808982645483, -0.098877045184959655, -0.016123803546210125,
           -0.19758676846557965},
          1e-10);
    const auto [by_theta, by_u] = [&] {
        std::vector<vector> of_angles, of_u;
        for (const auto& [angles, u] : tg::jacobian_forward(h.problem)(h.theta, h.u))
            of_angles.push_back(angles), of_u.push_back(u);
        return std::pair{of_angles, of_u};
    }();
    // Their first two columns have each point's derivatives by its own u, in six digits.
    const vector first{0.00319995, -0.00583664, 0.0052654, 0.00609513, -0.0130273, -0.0197055};
    const vector second{0.00594121, -0.0225087, -0.000798031, 0.0047234, 0.00573649, 0.00852371};
    for (std::size_t i = 0; i < 6; ++i) {
        CHECK(std::abs(by_u[i][2 * (i / 3)] - first[i]) <= 1e-6);
        CHECK(std::abs(by_u[i][2 * (i / 3) + 1] - second[i]) <= 1e-6);
    }
    check(column(by_theta, 0), {-0.031678, -0.0117603, -0.0400357, -0.0221424, -0.00903799, 0.0016302}, 1e-6);
    check(column(by_theta, 2), {-0.0343752, -0.0793824, 0.0108996, -0.0870476, -0.0437082, 0.0294403}, 1e-6);
    check(column(by_theta, 22), {-0.002673, 0.00251903, -0.00165742, 0, 0, 0}, 1e-6);
}

TEST_CASE("the LSTM of data/lstm/lstm_l2_c1024.txt") {
    const auto folder = support::real_data("adbench");
    if (folder.empty()) return;
    std::ifstream file(folder / "lstm" / "lstm_l2_c1024.txt");
    std::size_t layers = 0, steps = 0, width = 0;
    file >> layers >> steps >> width;
    const std::size_t rows = 4 * width;
    vector w, v; // in the file each layer's w is followed by its v
    for (std::size_t l = 0; l < layers; ++l)
        for (vector* const part : {&w, &v}) {
            const vector read = numbers_in(file, rows);
            part->insert(part->end(), read.begin(), read.end());
        }
    vector x = w;
    x.insert(x.end(), v.begin(), v.end());
    const vector extra = numbers_in(file, 3 * width);
    x.insert(x.end(), extra.begin(), extra.end());
    const vector state = numbers_in(file, 2 * layers * width);
    const adbench::lstm f{layers, steps - 1, width, state, numbers_in(file, steps * width)};
    const auto [value, gradient] = tg::value_and_gradient(f)(x).parts();
    CHECK(std::abs(value - 0.66666518) <= 1e-8);
    check(gradient,
          {3.14387024996101187e-06, 0, 0, 0, 0, 0, 0, -3.67840807336070475e-05, -1.54848612683180522e-04,
           5.48717267869773910e-06, -4.04527413533285253e-06, -8.77353908686236070e-07, -1.81973718092835457e-06,
           -6.61404620766666418e-07, 1.25432314145999742e-04},
          1e-8);
    check(vector(gradient.begin() + static_cast<std::ptrdiff_t>(2 * layers * rows), gradient.end()),
          {8.95056656284422921e-06, 0, 0, 0, 0, 0, 0, -1.73683965955792591e-04, -3.21979564391077671e-04}, 1e-8);
    check(vector(gradient.end() - 3, gradient.end()),
          {-1.79316285235904226e-02, -7.73167106472800580e-03, -2.00225690895980656e-02}, 1e-8);
}

} // namespace adbench_data_test
