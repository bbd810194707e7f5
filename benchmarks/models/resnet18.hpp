#pragma once

#include <tapegraph/tapegraph.hpp>

#include <cstdint>

namespace models {

/// ResNet-18 (He et al. 2016) in its form for small images [batch, 32, 32, 3]: no pooling after the
/// entry, four stages of two blocks, to ten logits. 11,173,962 trainable parameters.
struct resnet18 {
    constexpr auto operator()(auto scope, auto image) const {
        namespace tg = tapegraph;
        const auto convolved = [](const auto& at, const auto& x, std::int64_t filters, std::int64_t taps,
                                  std::int64_t stride) {
            const std::int64_t edge = taps / 2;
            const auto y = tg::conv2d(at / "conv", x,
                                      {.filters = filters,
                                       .kernel_size = taps,
                                       .stride = stride,
                                       .padding = tg::padding::amounts(edge, edge, edge, edge),
                                       .use_bias = false});
            return tg::batch_normalization(at / "norm", y);
        };
        auto h = tg::eval(relu(convolved(scope / "entry", image, 64, 3, 1)));
        for (int i = 0; i < 8; ++i) {
            const auto block = scope / "block" / i;
            const std::int64_t filters = std::int64_t{64} << i / 2, stride = i % 2 == 0 && i > 0 ? 2 : 1;
            const auto inner = relu(convolved(block / 0, h, filters, 3, stride));
            const auto outer = convolved(block / 1, inner, filters, 3, 1);
            h = relu(outer + (stride == 1 ? h : convolved(block / "shortcut", h, filters, 1, stride)));
        }
        return tg::dense(scope / "score", mean(h, {1, 2}), {.units = 10});
    }
};

} // namespace models
