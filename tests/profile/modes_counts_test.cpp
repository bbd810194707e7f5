#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/profile.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace modes_counts_test {

/// A graph does no more than the tape of the same model: no more calls, operations or bytes. Times would depend on the machine,
/// and calls of the same kernels on the same shapes take the same time.

namespace tg = tapegraph;

namespace {

struct perceptron {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::eval(relu(tg::dense(scope / "a", x, {.units = 16})));
        const auto k = tg::eval(relu(tg::dense(scope / "b", h, {.units = 16})));
        return tg::dense(scope / "c", k, {.units = 3});
    }
};
struct normalized {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::layer_normalization(scope / "norm", tg::dense(scope / "a", x, {.units = 16}));
        return tg::dense(scope / "b", gelu(h), {.units = 3});
    }
};
struct images {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::conv2d(scope / "conv", tg::reshape(x, {-1, 6, 6, 1}), {.filters = 8, .kernel_size = {3, 3}});
        const auto k = max_pooling2d(relu(tg::batch_normalization(scope / "norm", h)), {.pool_size = {2, 2}});
        return tg::dense(scope / "score", flatten(k), {.units = 3});
    }
};

struct counts {
    std::size_t calls = 0;
    double flops = 0, bytes = 0;
};
template <class F>
counts counts_of(const F& f) {
    const tg::profile_result r = tg::profile(f, {.steps = 1, .warm_up = 1, .peak_flops = 1e9, .bandwidth = 1e9});
    INFO(r.text({.rows = -1, .in_order = true}));
    counts c;
    for (const auto& each : r.calls) {
        ++c.calls;
        c.flops += each.flops;
        c.bytes += each.bytes;
    }
    CHECK(c.calls > 0);
    CHECK(c.flops > 0);
    return c;
}

template <class Net>
void compare(const char* name) {
    INFO(name);
    const auto x = tg::random::uniform<float>({5, 36}, {.seed = 1});
    const auto of = [&]<class Mode>(std::type_identity<Mode>) {
        auto model = tg::compile<Mode>(Net{}, tg::spec<float, tg::dyn, 36>{}, tg::sparse_softmax_cross_entropy{},
                                       tg::sgd{}, {.seed = 3});
        return counts_of([&] { const tg::tensor<float> y = model.predict(x); });
    };
    const counts graph = of(std::type_identity<tg::graph>{}), tape = of(std::type_identity<tg::eager>{});
    CHECK(graph.calls <= tape.calls);
    CHECK(graph.flops <= tape.flops * (1 + 1e-12)); // sums of the same numbers in another order
    CHECK(graph.bytes <= tape.bytes * (1 + 1e-12));
}

} // namespace

TEST_CASE("a prediction by a graph is no more than by a tape: perceptron") { compare<perceptron>("perceptron"); }
TEST_CASE("a prediction by a graph is no more than by a tape: normalization") { compare<normalized>("normalized"); }
TEST_CASE("a prediction by a graph is no more than by a tape: images") { compare<images>("images"); }

} // namespace modes_counts_test
