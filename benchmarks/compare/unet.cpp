#include "trained_model.hpp"

#include "../models/unet.hpp"

/// A U-Net on images of 64 x 64, two classes of pixels, Adam.
int main(int argc, char** argv) {
    using namespace compare;
    return serve(argc, argv, [](const row& r, bool, const std::string& weights) {
        auto classes = noise({r.size, 64, 64, 1}, 1);
        for (std::int64_t i = 0; i < classes.size(); ++i)
            classes.mutable_data()[i] = static_cast<float>(classes.data()[i] > 0);
        return training_of<models::unet, tg::spec<float, tg::dyn, 64, 64, 3>>(r, weights, noise({r.size, 64, 64, 3}, 1),
                                                                              classes, tg::sigmoid_cross_entropy{},
                                                                              tg::adam{.learning_rate = 1e-4});
    });
}
