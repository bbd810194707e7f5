#include "scan_cells.hpp"

namespace scan_second_test {

/// Second derivatives and forward mode through tg::scan.

using namespace scan_test;

namespace {

constexpr auto lstm_by_scan = [](auto xs, auto w, auto r, auto b, auto h, auto c) {
    const auto [last, sequence] = tg::scan(lstm_cell{}, std::tuple{h, c}, xs, w, r, b);
    return score(sequence, std::get<1>(last));
};
constexpr auto lstm_by_operation = [](auto xs, auto w, auto r, auto b, auto h, auto c) {
    const auto y = tg::lstm_with_state(xs, w, r, b, {.return_sequences = true}, tg::initial_state{h, c});
    return score(y.output, y.cell);
};
template <class F>
constexpr auto second_order = [](auto... x) {
    return tg::gradient([](auto... operands) {
        return std::apply([](auto... g) { return score(g...); }, tg::gradient(F{})(operands...));
    })(x...);
};
template <class F>
constexpr auto along = [](auto xs, auto w, auto r, auto b, auto h, auto c, auto dx, auto dr, auto dc) {
    return tg::jvp([w, b, h](auto xs, auto r, auto c) { return tg::gradient(F{})(xs, w, r, b, h, c); })(xs, r, c, dx,
                                                                                                        dr, dc);
};

using double_sequence = tg::spec<double, tg::dyn, tg::dyn, 3>;
using unit = tg::spec<double, tg::dyn, 2>;

} // namespace

TEST_CASE("scan: second derivatives of an LSTM cell are the LSTM operation's") {
    using scan_type = decltype(lstm_by_scan);
    using operation_type = decltype(lstm_by_operation);
    auto graph = tg::function<tg::graph>(second_order<scan_type>, double_sequence{}, tg::spec<double, 3, 8>{},
                                         tg::spec<double, 2, 8>{}, tg::spec<double, 8>{}, unit{}, unit{});
    for (const std::int64_t time : {1, 2, 7}) {
        CAPTURE(time);
        const auto check = [&](const auto&... x) {
            const auto want = flattened(second_order<operation_type>(x...));
            CHECK(want.size() == 6);
            // Second derivatives reach 1e3; they are compared relative to their size.
            CHECK(distance(flattened(graph(x...)), want) < 1e-10);
            CHECK(distance(flattened(second_order<scan_type>(x...)), want) < 1e-10);
        };
        check(drawn<double>({4, time, 3}, 1), drawn<double>({3, 8}, 2), drawn<double>({2, 8}, 3), drawn<double>({8}, 4),
              drawn<double>({4, 2}, 5), drawn<double>({4, 2}, 6));
    }
}

TEST_CASE("scan: forward mode over the gradient") {
    using scan_type = decltype(lstm_by_scan);
    using operation_type = decltype(lstm_by_operation);
    using sequence = tg::spec<double, 4, 5, 3>; // a direction has the extents of what it is a direction of
    using state = tg::spec<double, 4, 2>;
    auto graph =
        tg::function<tg::graph>(along<scan_type>, sequence{}, tg::spec<double, 3, 8>{}, tg::spec<double, 2, 8>{},
                                tg::spec<double, 8>{}, state{}, state{}, sequence{}, tg::spec<double, 2, 8>{}, state{});
    const auto check = [&](const auto&... x) {
        const auto want = flattened(along<operation_type>(x...));
        CHECK(distance(flattened(graph(x...)), want) < 1e-10);
        CHECK(distance(flattened(along<scan_type>(x...)), want) < 1e-10);
    };
    check(drawn<double>({4, 5, 3}, 1), drawn<double>({3, 8}, 2), drawn<double>({2, 8}, 3), drawn<double>({8}, 4),
          drawn<double>({4, 2}, 5), drawn<double>({4, 2}, 6), drawn<double>({4, 5, 3}, 7), drawn<double>({2, 8}, 8),
          drawn<double>({4, 2}, 9));
}

} // namespace scan_second_test
