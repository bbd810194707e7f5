#include <nn/every_masked_layer.hpp>
#include <nn/models.hpp>

#include <tapegraph/compile/instance.hpp>

#include <cmath>
#include <limits>

/// What stands in steps that do not count decides nothing: outputs where they count and gradients of all variables are the same bits
/// with zeros, NaN and infinities there, of every layer that takes a mask.

namespace padding_layers_test {

using namespace nn_test;

namespace {

const tg::tensor<bool> counts{
    {true, true, true, false, false}, {true, false, true, true, true}, {true, false, false, false, false}};

template <class Layer>
struct model_of {
    // A trainable shift is added to x in front of the layer; its gradient is what flows back to the steps.
    constexpr auto operator()(auto scope, auto x, auto mask) const {
        const auto shift = scope.variable_like(x, "shift", {4}, {.initializer = tg::init::zeros{}});
        const auto y = Layer{}(scope, tg::eval(x + shift), mask);
        if constexpr (tg::detail::is_masked<std::remove_cvref_t<decltype(y)>>)
            return tg::eval(y.counted(y.value));
        else
            return tg::eval(y);
    }
};
constexpr auto specs =
    tg::inputs{tg::input<"x">(tg::spec<double, 3, 5, 4>{}), tg::input<"counts">(tg::spec<bool, 3, 5>{})};

} // namespace

TEST_CASE("padding: outputs and gradients of every layer with a mask do not depend on its values") {
    every_masked_layer::for_every_masked_layer([]<class Layer>(std::string_view name, const Layer&) {
        INFO(std::string(name));
        const auto given = noise<double>({3, 5, 4}, 3);
        const auto run = [&](double padding) {
            auto net = tg::instance(model_of<Layer>{}, specs, {.seed = 5});
            const tg::tensor<double> x = where(expand_dims(counts, -1), given, padding);
            tg::gradient_tape tape;
            const auto y = net.in_training(x, counts);
            const auto loss = sum(y * noise<double>(tg::shape(y.shape()), 7)) + net.added_losses();
            auto all = net.gradients(tape, tg::eval(loss));
            all.push_back(y.detach());
            return all;
        };
        const auto zeros = run(0);
        for (const tg::any_tensor& each : zeros)
            for (const double v : tg::tensor<double>(each).to_vector()) CHECK(std::isfinite(v));
        for (const double padding : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                     -std::numeric_limits<double>::infinity(), 1e300}) {
            CAPTURE(padding);
            const auto others = run(padding);
            REQUIRE(others.size() == zeros.size());
            for (std::size_t k = 0; k < zeros.size(); ++k) {
                CAPTURE(k);
                CHECK(same_bits(tg::tensor<double>(others[k]), tg::tensor<double>(zeros[k])));
            }
        }
    });
}

} // namespace padding_layers_test
