#include <support/graph_runner.hpp>

#include <tapegraph/eager/random.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace random_streams_test {

/// Random operations: the same bits in both modes, call after call, and what numbers a seed stands for.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr auto laws = [](auto x) {
    const auto u = tg::random::uniform_like(x, {-2, 3});
    const auto n = tg::random::normal(x, {3, 5}, {1, 2});
    const auto t = tg::random::truncated_normal_like(x);
    const auto e = tg::random::exponential_like(x, 0.5);
    const auto b = tg::random::bernoulli_like(x, 0.25);
    const auto i = tg::random::integers(x, {7}, -3, 4);
    const auto p = tg::random::permutation(x, shape_of(x)[0]);
    const auto s = tg::random::shuffle(x);
    const auto c = tg::random::categorical(x);
    const auto d = dropout(x, 0.3);
    return std::tuple{u, n, t, e, b, i, p, s, c, d};
};
// One draw per statement: C++ does not specify which operand of + is evaluated first, and a trace and a run may differ.
constexpr auto noisy = [](auto x) {
    const auto kept = dropout(tanh(x), 0.5);
    const auto noise = tg::random::normal_like(x);
    return sum(square(kept + noise * x));
};

} // namespace

TEST_CASE("both modes: random operations, over several calls") {
    both_modes wide(laws, tg::spec<double, tg::dyn, 4>{});
    both_modes narrow(laws, tg::spec<float, tg::dyn, 4>{});
    std::vector<tg::any_tensor> before;
    for (std::int64_t n : {5, 5, 1, 9001}) {
        const std::string a = wide.compare(drawn<double>({n, 4}, 1)), b = narrow.compare(drawn<float>({n, 4}, 1));
        CHECK_MESSAGE(a.empty(), n << ": " << a);
        CHECK_MESSAGE(b.empty(), n << ": " << b);
        if (!before.empty()) CHECK_FALSE(difference(before, wide.results()).empty()); // a call is a step
        before = wide.results();
    }
}

TEST_CASE("both modes: derivatives of what is drawn once") {
    both_modes modes(tg::value_and_gradient(noisy), tg::spec<double, tg::dyn, 3>{});
    for (int call = 0; call < 3; ++call) {
        const std::string text = modes.compare(drawn<double>({11, 3}, 1));
        CHECK_MESSAGE(text.empty(), text);
    }
}

TEST_CASE("seeds: set_seed starts functions and free draws anew") {
    const auto f = [](auto x) { return tg::random::normal_like(x); };
    auto graph = tg::function<tg::graph>(f, tg::spec<double, 8>{});
    auto eager = tg::function<tg::eager>(f, tg::spec<double, 8>{});
    const tg::tensor<double> x = tg::zeros<double>({8});
    const auto draw = [&] { return tg::random::normal_like(x).to_vector(); };

    tg::random::set_seed(5);
    const auto first = graph(x).to_vector(), second = graph(x).to_vector(), free = draw(), after = draw();
    CHECK(eager(x).to_vector() == first);
    CHECK(eager(x).to_vector() == second);
    CHECK(first != second);
    CHECK(free != after);
    CHECK(free != first); // free draws and calls do not share numbers

    tg::random::set_seed(6);
    CHECK(graph(x).to_vector() != first);
    CHECK(draw() != free);

    tg::random::set_seed(5);
    CHECK(graph(x).to_vector() == first);
    CHECK(draw() == free);
    CHECK(draw() == after);

    graph.set_seed(6), eager.set_seed(6);
    CHECK(graph(x).to_vector() != first);
    graph.set_seed(5);
    CHECK(graph(x).to_vector() == first);
    tg::random::set_seed(9); // a seed of its own is not touched
    CHECK(graph(x).to_vector() == second);
    tg::random::set_seed(0);
}

TEST_CASE("seeds: a call leaves the free stream where it was, also when it throws") {
    const tg::tensor<double> x = tg::zeros<double>({4});
    auto inner = tg::function<tg::eager>([](auto v) { return tg::random::normal_like(v); }, tg::spec<double, 4>{});
    auto thrower = tg::function<tg::eager>(
        [](auto v) { return tg::random::normal_like(v) + gather(v, tg::cast<std::int32_t>(v + 4)); },
        tg::spec<double, 4>{});
    tg::random::set_seed(1);
    const auto a = tg::random::normal_like(x).to_vector(), b = tg::random::normal_like(x).to_vector();
    tg::random::set_seed(1);
    CHECK(tg::random::normal_like(x).to_vector() == a);
    inner(x);
    CHECK_THROWS_AS(thrower(x), tg::range_error);
    CHECK(tg::random::normal_like(x).to_vector() == b);
    tg::random::set_seed(0);
}

} // namespace random_streams_test
