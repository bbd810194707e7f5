#include <cuda/whole_programs.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace programmatic_launch_test {

/// Training steps whose kernels begin before their predecessors are done, on a GPU or on the
/// imitated device, where they then see memory as it was before.

namespace tg = tapegraph;

namespace {

struct classifier {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = 7});
        return tg::dense(scope / "classes", tanh(h) - mean(h, 1, {.keepdims = true}), {.units = 3});
    }
};

tg::tensor<float> numbers(const tg::shape& dims) {
    auto x = tg::tensor<float>::uninitialized(dims);
    for (std::int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = static_cast<float>(i * 31 % 29) / 14 - 1;
    return x;
}

/// The losses of six steps: launched, captured and replayed in graph mode.
template <class Mode>
std::vector<float> losses(bool programmatic) {
    tg::cuda::programmatic_launches() = programmatic;
    auto model = tg::compile<Mode>(classifier{}, tg::spec<float, tg::dyn, 5>{}, tg::sigmoid_cross_entropy{},
                                   tg::adam{.learning_rate = 0.05}, {.seed = 3, .device = tg::device::cuda(0)});
    const tg::tensor<float> x = numbers({13, 5}), y = tg::ones<float>({13, 3});
    std::vector<float> all;
    for (int step = 0; step < 6; ++step) all.push_back(static_cast<float>(model.train_on_batch(x, y).loss));
    tg::cuda::programmatic_launches() = true;
    return all;
}

#ifdef TG_SIMT
struct overlapping {
    int before = tg::cuda::driver::imitation::instance().early;
    overlapping() { tg::cuda::driver::imitation::instance().overlapping = true; }
    overlapping(const overlapping&) = delete;
    overlapping& operator=(const overlapping&) = delete;
    ~overlapping() {
        tg::cuda::driver::imitation::instance().overlapping = false;
        CHECK(tg::cuda::driver::imitation::instance().early > before + 12);
    }
};
#else
struct overlapping {
    overlapping() {} // NOLINT: so that an object of it is used
};
#endif

} // namespace

TEST_CASE("programmatic launches: training has the same bits in both modes") {
    const std::vector<float> graph = losses<tg::graph>(false), eager = losses<tg::eager>(false);
    CHECK(graph.front() > graph.back());
    const overlapping now;
    CHECK(losses<tg::graph>(true) == graph);
    CHECK(losses<tg::eager>(true) == eager);
}

} // namespace programmatic_launch_test
