#include "scan_cells.hpp"

namespace scan_constants_test {

/// Forward mode through a scan that starts from constants, and whose cell makes constants.

using namespace scan_test;

namespace {

struct padding_cell {
    constexpr auto operator()(auto h, auto x) const { // [batch], [batch]
        const auto grown = pad(x, {{0, 1}}, {.value = 0.25});
        const auto next = tg::eval(tanh(h + x) + slice(grown, {{1, 2}}));
        return std::pair{next, tg::eval(next * tg::fill<double>(x, {1}, 2))};
    }
};
constexpr auto running = [](auto x) {
    const auto [last, sequence] = tg::scan(padding_cell{}, tg::fill<double>(x, {1}, 0.5), x);
    return std::tuple{last, sequence};
};

} // namespace

TEST_CASE("scan: forward mode, started from constants") {
    const tg::tensor<double> x = reshape(tg::tensor<double>{0.3, -0.2, 0.5}, {1, 3});
    const tg::tensor<double> v = reshape(tg::tensor<double>{1, -2, 3}, {1, 3});
    auto graph = tg::function<tg::graph>(tg::jvp(running), tg::spec<double, 1, 3>{}, tg::spec<double, 1, 3>{});
    for (const auto& found : {flattened(graph(x, v)), flattened(tg::jvp(running)(x, v))}) {
        REQUIRE(found.size() == 4);
        double h = 0.5, t = 0;
        for (int i = 0; i < 3; ++i) {
            const double y = std::tanh(h + x.data()[i]);
            t = (1 - y * y) * (t + v.data()[i]);
            h = y + 0.25;
            CHECK(tg::tensor<double>(found[1]).data()[i] == doctest::Approx(2 * h).epsilon(1e-14));
            CHECK(tg::tensor<double>(found[3]).data()[i] == doctest::Approx(2 * t).epsilon(1e-14));
        }
        CHECK(tg::tensor<double>(found[2]).item() == doctest::Approx(t).epsilon(1e-14));
    }
}

} // namespace scan_constants_test
