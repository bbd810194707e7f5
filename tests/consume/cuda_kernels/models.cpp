#include <tapegraph/nn.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>

#include <cstdio>

/// Something of each part of the component: what the linker does not find there, it says.

namespace tg = tapegraph;

namespace {

struct classifier {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::max_pooling2d(
            relu(tg::conv2d(scope / "convolution", x, {.filters = 4, .kernel_size = {3, 3}})), {.pool_size = {2, 2}});
        return tg::dense(scope / "score", tg::flatten(tg::dropout(scope / "dropout", h, {.rate = 0.1})), {.units = 3});
    }
};
struct reader {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "score", tg::lstm(scope / "lstm", x, {.units = 5}), {.units = 3});
    }
};

template <class Mode, class Model, class Input>
bool trains(const Model& net, const Input& input, const tg::tensor<float>& x) {
    auto model = tg::compile<Mode>(net, input, tg::sparse_softmax_cross_entropy{}, tg::adam{},
                                   {.device = tg::available_or_cpu(tg::device::cuda(0))});
    const tg::tensor<std::int32_t> y{0, 1};
    const double first = model.train_on_batch(x, y).loss;
    double last = first;
    for (int step = 0; step < 20; ++step) last = model.train_on_batch(x, y).loss;
    return last < first;
}

} // namespace

int run_on_device(); // ../cuda/on_device.cpp

int main() {
    if (run_on_device() != 0) return 1;
    const auto images = tg::random::uniform<float>({2, 6, 6, 1}, {.seed = 1});
    const auto series = tg::random::uniform<float>({2, 4, 3}, {.seed = 2});
    const bool learned = trains<tg::graph>(classifier{}, tg::spec<float, tg::dyn, 6, 6, 1>{}, images) &&
                         trains<tg::eager>(reader{}, tg::spec<float, tg::dyn, 4, 3>{}, series);
    const tg::tensor<float> sorted = tg::sort(tg::cumulative_sum(tg::reshape(images, {72}), 0), 0);
    const tg::tensor<float> ends = tg::gather(sorted, tg::tensor<std::int32_t>{71, 0}, 0);
    const tg::tensor<float> most = tg::max(ends);
    std::printf("%s, sum %g\n", learned ? "learned" : "not learned", static_cast<double>(most.item()));
    return learned && most.item() > 0 ? 0 : 1;
}
