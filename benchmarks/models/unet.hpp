#pragma once

#include <tapegraph/nn/layers/transposed_convolution.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdint>

namespace models {

/// A U-Net (Ronneberger et al. 2015) of three levels with 32, 64 and 128 filters: maps images
/// [batch, height, width, 3], of extents that are multiples of four, to a logit for each pixel.
struct unet {
    constexpr auto operator()(auto scope, auto image) const {
        namespace tg = tapegraph;
        const auto twice = [](const auto& at, const auto& x, std::int64_t filters) {
            auto h = tg::eval(x);
            for (int i = 0; i < 2; ++i)
                h = relu(tg::conv2d(at / i, h, {.filters = filters, .padding = tg::padding::same()}));
            return h;
        };
        const auto raised = [](const auto& at, const auto& x, std::int64_t filters) {
            return tg::conv2d_transpose(at, x, {.filters = filters, .kernel_size = 2, .stride = 2});
        };
        const auto fine = twice(scope / "down" / 0, image, 32);
        const auto middle = twice(scope / "down" / 1, tg::max_pooling2d(fine, {.pool_size = 2}), 64);
        const auto coarse = twice(scope / "bottom", tg::max_pooling2d(middle, {.pool_size = 2}), 128);
        const auto of_middle = twice(scope / "up" / 1, tg::concat(middle, raised(scope / "raise" / 1, coarse, 64)), 64);
        const auto of_fine = twice(scope / "up" / 0, tg::concat(fine, raised(scope / "raise" / 0, of_middle, 32)), 32);
        return tg::conv2d(scope / "score", of_fine, {.filters = 1, .kernel_size = 1});
    }
};

} // namespace models
