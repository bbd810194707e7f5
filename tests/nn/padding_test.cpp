#include <nn/models.hpp>

#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/masking.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/metrics/mean.hpp>

#include <cmath>
#include <limits>

/// What stands in steps that do not count, of inputs, labels and both, decides nothing in training: losses, metrics, weights. Every layer
/// by itself: padding_layers_test.cpp.

namespace padding_test {

using namespace nn_test;

namespace {

const tg::tensor<bool> counts{{true, true, false}, {true, false, false}};

struct sequence_model {
    constexpr auto operator()(auto scope, auto x, auto mask) const {
        const auto h = tg::dense(scope / "in", tg::with_mask(x, mask), {.units = 4});
        auto y = tg::lstm(scope / "lstm", h, tg::lstm_layer_options{.units = 4, .return_sequences = true});
        y = tg::eval(y + tg::multi_head_attention(scope / "look", y, h, {.num_heads = 2, .key_dim = 2}));
        y = tg::batch_normalization(scope / "norm", y);
        return tg::dense(scope / "out", y, {.units = 2});
    }
};
constexpr auto specs =
    tg::inputs{tg::input<"x">(tg::spec<float, tg::dyn, 3, 3>{}), tg::input<"counts">(tg::spec<bool, tg::dyn, 3>{})};

/// The layer of the case that this was found by.
struct masked_lstm {
    constexpr auto operator()(auto scope, auto x, auto mask) const {
        return tg::lstm(scope / "lstm", x, {.units = 2}, tg::step_mask{mask});
    }
};

} // namespace

TEST_CASE_TEMPLATE("padding: training does not depend on its values", Mode, tg::graph, tg::eager) {
    const auto x = noise<float>({2, 3, 3}, 1), z = noise<float>({2, 3, 2}, 2), w = tg::tensor<float>{0.5f, 2};
    const auto run = [&](float in_x, float in_z) {
        auto model =
            tg::compile<Mode>(sequence_model{}, specs, tg::weighted{tg::mean_squared_error{}},
                              tg::sgd{.learning_rate = 0.125}, tg::metrics{tg::root_mean_squared_error{}}, {.seed = 3});
        const tg::tensor<float> inputs = where(expand_dims(counts, -1), x, in_x),
                                labels = where(expand_dims(counts, -1), z, in_z);
        std::vector<tg::any_tensor> all;
        for (int i = 0; i < 2; ++i)
            all.push_back(
                tg::full<float>(tg::shape{}, static_cast<float>(model.train_on_batch(inputs, counts, labels, w).loss)));
        for (const tg::variable& v : model.variables()) all.push_back(v.data()); // of the metric, too
        all.push_back(tg::full<float>(tg::shape{}, static_cast<float>(model.evaluate(inputs, counts, labels, w).loss)));
        return all;
    };
    const auto zeros = run(0, 0);
    for (const auto& each : zeros)
        if (each.type() == tg::dtype::f32)
            for (const float v : tg::tensor<float>(each).to_vector()) CHECK(std::isfinite(v));
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    for (const auto& [in_x, in_z] : {std::pair{nan, 0.0f}, {0.0f, nan}, {nan, nan}, {infinity, -infinity}}) {
        const auto shown_in_x = in_x;
        CAPTURE(shown_in_x);
        const auto shown_in_z = in_z;
        CAPTURE(shown_in_z);
        const auto others = run(in_x, in_z);
        for (std::size_t k = 0; k < zeros.size(); ++k) {
            CAPTURE(k);
            CHECK(same_bits(others[k], zeros[k]));
        }
    }
}

TEST_CASE_TEMPLATE("padding: a recurrent layer's kernel has the gradient that it has beside zeros", Mode, tg::graph,
                   tg::eager) {
    const auto run = [&](float padding) {
        auto model = tg::compile<Mode>(masked_lstm{}, specs, tg::mean_squared_error{}, tg::sgd{.learning_rate = 0.125},
                                       {.seed = 3});
        const tg::tensor<float> x = where(expand_dims(counts, -1), noise<float>({2, 3, 3}, 1), padding);
        model.train_on_batch(x, counts, tg::ones<float>({2, 2}));
        return model.variables()["lstm/kernel"].template value<float>();
    };
    CHECK(same_bits(run(std::numeric_limits<float>::quiet_NaN()), run(0)));
    CHECK(same_bits(run(std::numeric_limits<float>::infinity()), run(0)));
    CHECK(std::isfinite(run(0)(0, 0)));
}

} // namespace padding_test
