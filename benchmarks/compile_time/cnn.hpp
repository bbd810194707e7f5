#pragma once

#include <tapegraph/tapegraph.hpp>

#include <cstdio>

namespace tg = tapegraph;

// Maps images [batch, 32, 32, 3] to ten classes.
struct cnn {
    constexpr auto operator()(auto scope, auto image) const {
        auto h = tg::conv2d(scope / "conv1", image, {.filters = 32, .kernel_size = {3, 3}});
        h = tg::max_pooling2d(tg::batch_normalization(scope / "norm1", relu(h)), {.pool_size = {2, 2}});
        h = tg::conv2d(scope / "conv2", h, {.filters = 64, .kernel_size = {3, 3}});
        h = tg::max_pooling2d(relu(h), {.pool_size = {2, 2}});
        h = tg::dropout(scope / "drop", tg::flatten(h), {.rate = 0.25});
        return tg::dense(scope / "score", h, {.units = 10});
    }
};

template <class Mode>
int train() {
    auto model = tg::compile<Mode>(cnn{}, tg::spec<float, tg::dyn, 32, 32, 3>{}, tg::sparse_softmax_cross_entropy{},
                                   tg::adam{.learning_rate = 0.001});
    tg::data::dataset images;
    images.add("image", std::vector<float>(64 * 32 * 32 * 3, 0.5f), {32, 32, 3});
    images.add("label", std::vector<std::int32_t>(64));
    const auto history = model.fit(images, {.epochs = 2, .batch_size = 16});
    std::printf("%g\n", history.epochs.back().loss);
    return 0;
}
