#include "trained_model.hpp"

#include "../models/vae.hpp"

/// A variational autoencoder of images of 784 numbers, Adam.
int main(int argc, char** argv) {
    using namespace compare;
    using inputs = decltype(tg::inputs{tg::input<"image">(tg::spec<float, tg::dyn, 784>{}),
                                       tg::input<"noise">(tg::spec<float, tg::dyn, 20>{})});
    return serve(argc, argv, [](const row& r, bool, const std::string& weights) {
        auto image = noise({r.size, 784}, 0.5f);
        for (std::int64_t i = 0; i < image.size(); ++i) image.mutable_data()[i] += 0.5f;
        return training_of<models::vae, inputs>(r, weights, std::tuple(image, noise({r.size, 20}, 1)), image,
                                                tg::sigmoid_cross_entropy{}, tg::adam{.learning_rate = 1e-4});
    });
}
