#pragma once

#include <tapegraph/nn/layers/depthwise_convolution.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdint>

namespace models {

/// MobileNetV2 (Sandler et al. 2018) of width 1 for small images [batch, 32, 32, 3]: the entry and
/// the second stage keep the extents. To ten logits.
struct mobilenet_v2 {
    struct stage {
        std::int64_t expansion, filters, blocks, stride;
    };
    static constexpr stage stages[7] = {{1, 16, 1, 1}, {6, 24, 2, 1},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                        {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

    constexpr auto operator()(auto scope, auto image) const {
        namespace tg = tapegraph;
        const auto convolved = [](const auto& at, const auto& x, std::int64_t filters, std::int64_t taps) {
            const auto y = tg::conv2d(
                at / "conv", x,
                {.filters = filters, .kernel_size = taps, .padding = tg::padding::same(), .use_bias = false});
            return tg::batch_normalization(at / "norm", y);
        };
        auto h = tg::eval(relu6(convolved(scope / "entry", image, 32, 3)));
        std::int64_t number = 0, channels = 32;
        for (const stage& s : stages)
            for (std::int64_t i = 0; i < s.blocks; ++i, ++number) {
                const auto block = scope / "block" / number;
                const std::int64_t stride = i == 0 ? s.stride : 1;
                auto wide = h;
                if (s.expansion > 1) wide = relu6(convolved(block / "expand", h, s.expansion * channels, 1));
                const auto spread = tg::depthwise_conv2d(
                    block / "depthwise" / "conv", wide,
                    {.stride = stride, .padding = tg::padding::amounts(1, 1, 1, 1), .use_bias = false});
                const auto seen = relu6(tg::batch_normalization(block / "depthwise" / "norm", spread));
                const auto narrow = convolved(block / "project", seen, s.filters, 1);
                if (stride == 1 && channels == s.filters)
                    h = h + narrow;
                else
                    h = narrow;
                channels = s.filters;
            }
        h = relu6(convolved(scope / "exit", h, 1280, 1));
        return tg::dense(scope / "score", mean(h, {1, 2}), {.units = 10});
    }
};

} // namespace models
