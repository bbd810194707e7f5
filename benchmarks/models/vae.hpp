#pragma once

#include <tapegraph/tapegraph.hpp>

namespace models {

/// A variational autoencoder (Kingma and Welling 2014) of images of 784 numbers in [0, 1], with 400
/// hidden units and 20 latent ones: its logits of the images, from images and the noise of the
/// latent units, which is an input. The divergence, per pixel as the cross entropy is, is added to
/// the loss.
struct vae {
    constexpr auto operator()(auto scope, auto image, auto noise) const {
        namespace tg = tapegraph;
        const auto h = tg::eval(relu(tg::dense(scope / "encoder", image, {.units = 400})));
        const auto center = tg::dense(scope / "mean", h, {.units = 20});
        const auto log_variance = tg::dense(scope / "log_variance", h, {.units = 20});
        scope.add_loss(-0.5 / 784 * mean(sum(1 + log_variance - square(center) - exp(log_variance), {-1})));
        const auto code = center + exp(0.5 * log_variance) * noise;
        return tg::dense(scope / "image", relu(tg::dense(scope / "decoder", code, {.units = 400})), {.units = 784});
    }
};

} // namespace models
