#include "digits.hpp"

#include <tapegraph/data/readers/idx.hpp>
#include <tapegraph/graph/explain.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdio>
#include <iostream>

// The second program of docs/tutorial.md: a model of images, trained, saved, loaded, and looked into.
//   tutorial_compiled_model [FOLDER]
// FOLDER holds MNIST as it is published (train-images-idx3-ubyte.gz and so on); without it digits are drawn.

namespace tg = tapegraph;

struct network {
    constexpr auto operator()(auto scope, auto x) const { // x: [batch, 28, 28, 1]
        auto h = tg::conv2d(scope / "conv" / 0, x, {.filters = 8, .kernel_size = 5, .stride = 2});
        h = tg::conv2d(scope / "conv" / 1, relu(h), {.filters = 16, .kernel_size = 3, .stride = 2});
        h = tg::dropout(scope / "drop", flatten(relu(h)), {.rate = 0.2});
        return tg::dense(scope / "score", h, {.units = 10}); // [batch, 10], a score for each digit
    }
};

template <class Mode>
auto make_model() {
    return tg::compile<Mode>(network{}, tg::spec<float, tg::dyn, 28, 28, 1>{}, tg::sparse_softmax_cross_entropy{},
                             tg::adam{.learning_rate = 5e-3}, {.seed = 1});
}

int main(int argc, char** argv) {
    // The data: columns "image" [28, 28, 1] and "label", one of 0 to 9.
    const auto images = argc > 1 ? tg::data::read_mnist(argv[1]) : tutorial::drawn_digits(2000, 1);
    const auto parts = tg::data::train_validation_split(tg::data::make_dataset(images), 1, 0.2);
    std::printf("%lld images to learn from, %lld to judge by\n", static_cast<long long>(parts.train.size()),
                static_cast<long long>(parts.validation.size()));

    auto model = make_model<tg::graph>();
    std::cout << model.summary();

    const tg::history history =
        model.fit(parts.train, {.epochs = 3, .validation_data = parts.validation, .verbose = false});
    for (const tg::epoch_result& epoch : history.epochs)
        std::printf("loss %.2f, validation %.2f, of which right %.2f\n", epoch.loss, epoch.validation_loss,
                    epoch.validation_accuracy);

    // Weights go into a file that Python reads, and into a model of the other mode.
    model.save("digits.safetensors");
    auto same = make_model<tg::eager>();
    same.load("digits.safetensors");

    const auto few = tg::from_range<float>(std::span(images.images).first(5 * 28 * 28), {5, 28, 28, 1});
    const tg::tensor<float> scores = model.predict(few);
    std::cout << "digits " << argmax(scores, -1) << ", and by the eager model " << argmax(same.predict(few), -1)
              << '\n';

    // Inside: variables by path, and what the compiler made of the training step.
    const auto kernel = model.variables()["conv/0/kernel"].value<float>();
    std::printf("conv/0/kernel: %s, largest weight %.1f\n", to_string(kernel.shape()).c_str(), max(abs(kernel)).item());
    const std::string plan = tg::explain(model);
    std::cout << plan << '\n';
}
