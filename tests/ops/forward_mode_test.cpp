#include <support/graph_runner.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace forward_mode_test {

/// jvp of every kind of operation in graph mode: the same bits as in eager mode, where the table has checked it.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

// A function of every kind of operation; names of no mode.
constexpr auto formulas = [](auto x, auto b) { // [n, 4], [4]
    const auto h = tg::eval(tanh(x * b) + 0.5 * exp(-square(x)) / (1 + square(b)));
    return std::tuple{tg::eval(where(h > 0.2, h * h, maximum(h, b))), // a formula with several leaves
                      tg::eval(sqrt(1 + square(x))),                  // with one
                      tg::eval(tg::stop_gradient(x) * x),
                      sum(x * h + b),
                      sum(square(h), 0),
                      max(x - b, 1),
                      min(h, {0, 1}),
                      prod(1.5 + x, 1),
                      variance(h, 0),
                      logsumexp(x, 1),
                      softmax(h)};
};
constexpr auto contractions = [](auto x, auto w, auto b) { // [n, 3, 4], [4, 5], [2, 1, 3, 4]
    return std::tuple{matmul(x, w), matmul(x, x, {.transpose_b = true}), matmul(x, b, {.transpose_a = true}),
                      matmul(w, tanh(x), {.transpose_a = true, .transpose_b = true})};
};
constexpr auto windows = [](auto x, auto w, auto grouped) { // [n, 5, 6, 4], [3, 2, 4, 6], [2, 2, 2, 4]
    const auto y = conv2d(x, w, {.stride = {2, 1}, .padding = tg::padding::same()});
    return std::tuple{conv2d(x, grouped, {.dilation = {1, 2}, .groups = 2}), tg::eval(relu(y)),
                      max_pooling2d(y, {.pool_size = {2, 3}, .stride = {1, 2}}),
                      average_pooling2d(x, {.pool_size = {3, 2}, .padding = tg::padding::same()})};
};
constexpr auto movement = [](auto x, auto y) {                        // [5, 4, 6], [2, 1]
    const auto order = argsort(slice(x, {tg::all, tg::all, {0, 5}})); // rows 0..4
    return std::tuple{reshape(x, {-1, 8, 3}),
                      transpose(x, {1, 0, 2}),
                      broadcast_to(y, {3, 2, 5}),
                      slice(x, {tg::all, {1, 3}, {-1, -7, -2}}),
                      pad(x, {{0, 0}, {1, 2}, {3, 0}}),
                      concat(x, broadcast_to(y, {5, 2, 6}), 1),
                      concat(x, tg::stop_gradient(x), 0), // one part without a tangent
                      cumulative_sum(x, 1, {.reverse = true}),
                      sort(x, {.descending = true}),
                      gather(x, slice(order, {{0, 2}, {0, 1}, {0, 3}})),
                      scatter_add(x, reshape(slice(order, {tg::all, {0, 1}, {0, 1}}), {5}), {6, 4, 6})};
};

} // namespace

#define TG_SAME(text) CHECK_MESSAGE((text).empty(), text)

TEST_CASE("both modes: jvp of formulas and reductions") {
    both_modes run(tg::jvp(formulas), tg::spec<double, tg::dyn, 4>{}, tg::spec<double, 4>{},
                   tg::spec<double, tg::dyn, 4>{}, tg::spec<double, 4>{});
    both_modes narrow(tg::jvp(formulas), tg::spec<float, tg::dyn, 4>{}, tg::spec<float, 4>{},
                      tg::spec<float, tg::dyn, 4>{}, tg::spec<float, 4>{});
    for (std::int64_t n : {7, 1, 400, 12000}) {
        TG_SAME(run.compare(drawn<double>({n, 4}, 1), drawn<double>({4}, 2), drawn<double>({n, 4}, 3),
                            drawn<double>({4}, 4)));
        TG_SAME(narrow.compare(drawn<float>({n, 4}, 1), drawn<float>({4}, 2), drawn<float>({n, 4}, 3),
                               drawn<float>({4}, 4)));
    }
}

TEST_CASE("both modes: jvp of contractions, windows, movement, order") {
    both_modes product(tg::jvp(contractions), tg::spec<double, tg::dyn, 3, 4>{}, tg::spec<double, 4, 5>{},
                       tg::spec<double, 2, 1, 3, 4>{}, tg::spec<double, tg::dyn, 3, 4>{}, tg::spec<double, 4, 5>{},
                       tg::spec<double, 2, 1, 3, 4>{});
    for (std::int64_t n : {5, 1})
        TG_SAME(product.compare(drawn<double>({n, 3, 4}, 1), drawn<double>({4, 5}, 2), drawn<double>({2, 1, 3, 4}, 3),
                                drawn<double>({n, 3, 4}, 4), drawn<double>({4, 5}, 5), drawn<double>({2, 1, 3, 4}, 6)));
    both_modes window(tg::jvp(windows), tg::spec<double, tg::dyn, 5, 6, 4>{}, tg::spec<double, 3, 2, 4, 6>{},
                      tg::spec<double, 2, 2, 2, 4>{}, tg::spec<double, tg::dyn, 5, 6, 4>{},
                      tg::spec<double, 3, 2, 4, 6>{}, tg::spec<double, 2, 2, 2, 4>{});
    TG_SAME(window.compare(drawn<double>({3, 5, 6, 4}, 1), drawn<double>({3, 2, 4, 6}, 2),
                           drawn<double>({2, 2, 2, 4}, 3), drawn<double>({3, 5, 6, 4}, 4),
                           drawn<double>({3, 2, 4, 6}, 5), drawn<double>({2, 2, 2, 4}, 6)));
    both_modes moved(tg::jvp(movement), tg::spec<double, 5, 4, 6>{}, tg::spec<double, 2, 1>{},
                     tg::spec<double, 5, 4, 6>{}, tg::spec<double, 2, 1>{});
    TG_SAME(moved.compare(drawn<double>({5, 4, 6}, 1), drawn<double>({2, 1}, 2), drawn<double>({5, 4, 6}, 3),
                          drawn<double>({2, 1}, 4)));
}

} // namespace forward_mode_test

#undef TG_SAME
