#include <support/run_time_graph.hpp>
#include <traced/words.hpp>

#include <tapegraph/compile/function.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace function_words_test {

/// Functions: the graph that is made at run time is the compiler's, so tests may look at the one for the other. Of every kind of
/// operation, differentiated once and twice, in both directions and example by example. No kernel is compiled.

namespace tg = tapegraph;

namespace {

template <class F, class... Specs>
std::string difference_of(const F& f, Specs...) {
    using trace = tg::detail::function_trace<F, Specs...>;
    using reduced = tg::ir::compile_stage<
        tg::ir::detail::reduced<tg::ir::compile_stage<tg::ir::detail::simplified<tg::ir::traced_stage<trace>>>>>;
    using scheduled =
        tg::ir::compile_stage<tg::ir::detail::scheduled<tg::ir::compile_stage<tg::ir::detail::fused<reduced>>>>;
    const tg::testing::run_time_graph made([&](tg::ir::trace& t) {
        const std::tuple nodes{trace::template input<Specs>(t)...};
        const auto results = std::apply([&](const auto&... x) { return f(x...); }, nodes);
        tg::detail::returned<std::remove_cvref_t<decltype(results)>>::record(t, results);
    });
    CHECK(made.view().steps.size() > 3);
    return words_test::difference(tg::ir::stage_view<scheduled>(), made.view());
}

/// A number of several results: one adjoint each. They come in braces, for the order of a call's arguments is the compiler's.
constexpr auto total = [](const auto& parts) {
    return std::apply(
        [](auto first, auto... rest) {
            auto all = tg::eval(sum(square(first)));
            ((all = tg::eval(all * 0.5 + sum(square(rest)))), ...);
            return all;
        },
        parts);
};

constexpr auto formulas = [](auto x, auto w, auto b) { // [n, 6], [6, 5], [5]
    const auto h = tg::eval(tanh(matmul(x, w) + b));
    const auto p = softmax(h), q = log_softmax(h * b);
    const auto kept = dropout(relu(h), 0.5);
    return total(std::tuple{tg::eval(where(h > 0.2, h * h, maximum(h, b))), tg::eval(gelu(h) * exp(-square(b))),
                            tg::eval(p - q), kept, variance(h, 0), max(h, 1), prod(h + 2, 1), cumulative_sum(x, 1)});
};
constexpr auto moved = [](auto x, auto y) { // [n, 4, 6], [2, 1]
    const auto [a, b] = tg::split<2>(x, 1);
    const auto order = argsort(slice(x, {tg::all, tg::all, {0, 4}}));
    const auto first = take(order, 0), swapped = transpose(x, {1, 0, 2});
    return total(std::tuple{swapped, reshape(x, {-1, 8, 3}), broadcast_to(y, {3, 2, 5}), tg::eval(a * b),
                            tg::concat({x, a, x}, 1), slice(x, {tg::all, {1, 3}, {-1, -7, -2}}),
                            pad(x, {{0, 0}, {1, 2}, {3, 0}}), roll(x, 2, 2), gather(swapped, first), sort(x)});
};
constexpr auto windows = [](auto x, auto w, auto b) { // [n, 6, 6, 2], [3, 3, 2, 4], [4]
    const auto y = tg::eval(relu(conv2d(x, w, {.padding = tg::padding::same()}) + b));
    return total(std::tuple{max_pooling2d(y),
                            average_pooling2d(x, {.pool_size = {3, 2}, .padding = tg::padding::same()}),
                            conv2d(relu(x), w, {.stride = {2, 1}})});
};
constexpr auto twice = [](auto x, auto w) {
    const auto [value, gradient] = tg::value_and_gradient([](auto a, auto u) {
        const auto products = sum(tanh(matmul(a, u)));
        const auto p = softmax(a);
        return tg::eval(products + sum(p * a));
    })(x, w);
    const auto& [by_x, by_w] = gradient;
    return total(std::tuple{by_x, by_w, value});
};

} // namespace

TEST_CASE("run-time graphs: functions and their gradients, word for word") {
    using matrix = tg::spec<float, tg::dyn, 6>;
    CHECK(difference_of(tg::value_and_gradient(formulas), matrix{}, tg::spec<float, 6, 5>{}, tg::spec<float, 5>{}) ==
          "");
    CHECK(difference_of(tg::value_and_gradient(moved), tg::spec<double, tg::dyn, 4, 6>{}, tg::spec<double, 2, 1>{}) ==
          "");
    CHECK(difference_of(tg::value_and_gradient(windows), tg::spec<tg::half, tg::dyn, 6, 6, 2>{},
                        tg::spec<tg::half, 3, 3, 2, 4>{}, tg::spec<tg::half, 4>{}) == "");
}

TEST_CASE("run-time graphs: derivatives of derivatives, tangents and vmap, word for word") {
    using matrix = tg::spec<double, tg::dyn, 6>;
    using weights = tg::spec<double, 6, 5>;
    CHECK(difference_of(tg::value_and_gradient(twice), matrix{}, weights{}) == "");
    CHECK(difference_of(tg::jvp(twice), matrix{}, weights{}, matrix{}, weights{}) == "");
    CHECK(difference_of(tg::vmap<0, tg::unbatched>(tg::gradient(twice)), tg::spec<double, tg::dyn, 3, 6>{},
                        weights{}) == "");
}

} // namespace function_words_test
