#include <models/cats_and_dogs.hpp>
#include <nn/models.hpp>

#include <support/temporary_folder.hpp>

namespace variables_test {

using namespace nn_test;

namespace {

/// A model with parameters: it is given as a constant.
struct tower {
    int layers = 2;
    std::int64_t width = 4;

    constexpr auto operator()(auto scope, auto x) const {
        auto h = eval(x);
        for (int i = 0; i < layers; ++i) h = relu(tg::dense(scope / "block" / i, h, {.units = width}));
        return tg::dense(scope / "out", h, {.units = 1});
    }
};

template <class Mode>
auto make() {
    return tg::compile<Mode>(small_cnn{}, cnn_spec<float>{}, tg::sigmoid_cross_entropy{}, tg::momentum{.learning_rate = 0.05},
                             {.seed = 11});
}
const auto batch = [](std::int64_t size, std::uint64_t seed) {
    return std::pair(noise<float>({size, 26, 26, 3}, seed), coin_flips<float>(size, seed + 1));
};

} // namespace

TEST_CASE("variables are found by path, with shape, value and kind") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>();
        std::vector<std::string> paths;
        for (const tg::variable& v : model.variables())
            if (!v.optimizer_state()) paths.push_back(v.path());
        CHECK(paths == std::vector<std::string>{"conv1/kernel", "conv1/bias", "norm1/gamma", "norm1/beta", "norm1/moving_mean",
                                                "norm1/moving_variance", "conv2/kernel", "conv2/bias", "norm2/gamma",
                                                "norm2/beta", "norm2/moving_mean", "norm2/moving_variance", "conv3/kernel",
                                                "conv3/bias", "score/kernel", "score/bias"});
        auto& kernel = model.variables()["conv2/kernel"];
        CHECK(kernel.shape() == tg::shape{5, 5, 4, 5});
        CHECK(kernel.type() == tg::dtype::f32);
        CHECK(kernel.trainable());
        CHECK(!model.variables()["norm1/moving_mean"].trainable());
        CHECK(support::message_of<tg::argument_error>([&] { model.variables()["conv9/kernel"]; }) ==
              "no variable 'conv9/kernel', there are 'conv1/kernel', 'conv1/bias', 'norm1/gamma', 'norm1/beta', "
              "'norm1/moving_mean', 'norm1/moving_variance', 'conv2/kernel', 'conv2/bias', 'norm2/gamma', 'norm2/beta' and 6 "
              "more");

        // A value is a copy; assign changes what predict computes.
        const auto [x, y] = batch(2, 1);
        const auto before = model.predict(x);
        auto copy = kernel.template value<float>();
        copy.mutable_data()[0] += 1;
        CHECK(same_bits(model.predict(x), before));
        kernel.assign(copy);
        CHECK(!same_bits(model.predict(x), before));
        model.variables()["score/kernel"].assign(tg::zeros<float>({3, 1}));
        model.variables()["score/bias"].assign(tg::tensor<float>{0.75f});
        CHECK(model.predict(x)(1, 0) == 0.75f);

        CHECK(support::contains(support::message_of<tg::shape_error>([&] { kernel.assign(tg::zeros<float>({5, 5, 4})); }),
                                "variable 'conv2/kernel' has shape [5, 5, 4, 5], given [5, 5, 4]"));
        CHECK(support::contains(support::message_of<tg::dtype_error>([&] { kernel.assign(tg::zeros<double>({5, 5, 4, 5})); }),
                                "variable 'conv2/kernel' is f32, given f64"));
        CHECK_THROWS_AS(kernel.template value<double>(), tg::dtype_error);
    });
}

TEST_CASE("who holds a variable's tensor keeps its values when the variable is trained or assigned") {
    each_mode([](auto mode) {
        auto model = tg::compile<decltype(mode)>(small_mlp{}, mlp_spec<float>{}, tg::mean_squared_error{}, tg::sgd{});
        tg::variable& kernel = model.variables()["hidden/kernel"];
        const tg::tensor<float> held(kernel.data());
        const std::vector<float> before = held.to_vector();
        model.train_on_batch(noise<float>({4, 6}, 1), noise<float>({4, 3}, 2));
        CHECK(held.to_vector() == before);
        const tg::tensor<float> trained(kernel.data());
        const std::vector<float> after = trained.to_vector();
        CHECK(after != before);
        kernel.assign(tg::zeros<float>(kernel.shape()));
        CHECK(trained.to_vector() == after);
    });
}

TEST_CASE("frozen variables stay as they are, in both modes alike") {
    const auto freeze = [](auto& model, bool frozen) {
        for (const char* path : {"conv1/kernel", "conv1/bias", "norm2/gamma"})
            model.variables()[path].set_trainable(!frozen);
    };
    auto g = make<tg::graph>();
    auto e = make<tg::eager>();
    const std::int64_t all = g.trainable_parameter_count();
    train_alike(g, e, {4, 4}, batch);
    const auto kernel = g.variables()["conv1/kernel"].value<float>(), velocity = g.variables()["conv1/kernel/momentum"].value<float>();
    const auto free = g.variables()["conv2/kernel"].value<float>();
    const auto mean = g.variables()["norm2/moving_mean"].value<float>();
    freeze(g, true);
    freeze(e, true);
    CHECK(g.trainable_parameter_count() == all - (3 * 3 * 3 * 4 + 4 + 5));
    CHECK(support::contains(g.summary(), "not trainable:  " + std::to_string(18 + 3 * 3 * 3 * 4 + 4 + 5)));
    train_alike(g, e, {4, 3, 4}, batch);
    CHECK(same_bits(g.variables()["conv1/kernel"].data(), kernel));
    CHECK(same_bits(g.variables()["conv1/kernel/momentum"].data(), velocity));
    CHECK(!same_bits(g.variables()["conv2/kernel"].data(), free));
    CHECK(!same_bits(g.variables()["norm2/moving_mean"].data(), mean)); // statistics are not trained, so not frozen
    freeze(g, false);
    freeze(e, false);
    train_alike(g, e, {4}, batch);
    CHECK(!same_bits(g.variables()["conv1/kernel"].data(), kernel));
    CHECK(g.trainable_parameter_count() == all);

    CHECK(support::contains(
        support::message_of<tg::argument_error>([&] { g.variables()["norm1/moving_mean"].set_trainable(true); }),
        "variable 'norm1/moving_mean' was made not trainable and cannot become it"));
    g.variables()["norm1/moving_mean"].set_trainable(false); // it is
}

TEST_CASE("the layer table of the cats-and-dogs CNN") {
    const auto model = tg::compile<tg::eager>(models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{});
    CHECK(model.summary() ==
          "layer (type)                 output shape        parameters\n"
          "-----------------------------------------------------------\n"
          "conv1 (conv2d)               [?, 48, 48, 150]         4,200\n"
          "relu                         [?, 48, 48, 150]             0\n"
          "norm1 (batch_normalization)  [?, 48, 48, 150]           600\n"
          "max_pooling2d                [?, 24, 24, 150]             0\n"
          "conv2 (conv2d)               [?, 20, 20, 300]     1,125,300\n"
          "relu                         [?, 20, 20, 300]             0\n"
          "norm2 (batch_normalization)  [?, 20, 20, 300]         1,200\n"
          "max_pooling2d                [?, 10, 10, 300]             0\n"
          "drop2 (dropout)              [?, 10, 10, 300]             0\n"
          "conv3 (conv2d)               [?, 8, 8, 200]         540,200\n"
          "relu                         [?, 8, 8, 200]               0\n"
          "max_pooling2d                [?, 4, 4, 200]               0\n"
          "flatten                      [?, 3200]                    0\n"
          "drop3 (dropout)              [?, 3200]                    0\n"
          "score (dense)                [?, 1]                   3,201\n"
          "-----------------------------------------------------------\n"
          "parameters:     1,674,701\n"
          "trainable:      1,673,801\n"
          "not trainable:  900\n");
    CHECK(model.parameter_count() == 1674701);
}

TEST_CASE("numbers are grouped by thousands") {
    CHECK(tg::model_summary::grouped(0) == "0");
    CHECK(tg::model_summary::grouped(999) == "999");
    CHECK(tg::model_summary::grouped(1000) == "1,000");
    CHECK(tg::model_summary::grouped(1234567890) == "1,234,567,890");
}

TEST_CASE("a model with parameters is given as a constant") {
    each_mode([](auto mode) {
        using Mode = decltype(mode);
        auto deep = tg::compile<Mode, tower{.layers = 3, .width = 5}>(tg::spec<float, tg::dyn, 6>{}, tg::mean_squared_error{},
                                                                      tg::sgd{});
        CHECK(deep.parameter_count() == 6 * 5 + 5 + 2 * (5 * 5 + 5) + 5 + 1);
        CHECK(deep.variables()["block/2/kernel"].shape() == tg::shape{5, 5});
        const auto x = noise<float>({3, 6}, 1);
        const auto y = noise<float>({3, 1}, 2);
        const double first = deep.train_on_batch(x, y).loss;
        CHECK(deep.train_on_batch(x, y).loss < first);
        const auto predictor = tg::compile<Mode, tower{}>(tg::spec<float, tg::dyn, 6>{});
        CHECK(predictor.parameter_count() == 6 * 4 + 4 + 4 * 4 + 4 + 4 + 1);
        CHECK(predictor.predict(x).shape() == tg::shape{3, 1});
    });
}

} // namespace variables_test
