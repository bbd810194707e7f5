#include <tapegraph/nn/constraint.hpp>
#include <tapegraph/nn/layers/activation.hpp>
#include <tapegraph/nn/layers/depthwise_convolution.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/grouped_attention.hpp>
#include <tapegraph/nn/layers/resizing.hpp>
#include <tapegraph/nn/layers/transposed_convolution.hpp>
#include <tapegraph/nn/regularizer.hpp>

#include <nn/layer_bench.hpp>
#include <support/stored_numbers.hpp>

namespace stored_layers_test {

/// Layers, regularizers and constraints as Keras 3.15.1 computes them in double (backend jax). Stored are sums, weighted by
/// `numbers` of support/stored_numbers.hpp, of the value y and of the gradients of that sum by the operands and the
/// variables:
///
///     def digest(a, seed): return (np.asarray(a) * numbers(*a.shape, seed=seed)).sum()
///     for k, w in enumerate(layer.trainable_variables): w.assign(numbers(*w.shape, seed=k + 2))
///     def f(xs, ws): return digest(layer.stateless_call(ws, [], *xs)[0], 9)
///     value, (gx, gw) = jax.value_and_grad(f, (0, 1))(xs, ws)
///     [value] + [digest(g, 8) for g in gx + gw]
///
/// Operands are numbers(..., seed=1, scale=2), where there is a kink at zero plus 0.05.

using namespace nn_test;
using stored_numbers::numbers;

namespace {

double digest(const tg::tensor<double>& a, std::int64_t seed) {
    const auto w = numbers(a.shape(), seed);
    double total = 0;
    for (std::int64_t i = 0; i < a.size(); ++i) total += a.data()[i] * w.data()[i];
    return total;
}

/// Twelve digits are stored, of sums of a few hundred numbers below ten.
bool agree(double got, double wanted, double tolerance) {
    return std::abs(got - wanted) <= tolerance * (1 + std::abs(wanted));
}

/// `paths`: the variables in Keras's order; f(scope, operands...) is the layer.
template <class F, class... X>
void check(const char* name, const std::vector<std::string>& paths, const std::vector<double>& wanted, const F& f,
           X... x) {
    CAPTURE(std::string(name));
    layer_bench b;
    f(b.scope() / "l", x...);
    REQUIRE(static_cast<std::size_t>(b.variables.size()) == paths.size());
    for (std::size_t k = 0; k < paths.size(); ++k) {
        tg::variable& v = b.variables["l/" + paths[k]];
        v.assign(numbers(v.shape(), static_cast<std::int64_t>(k) + 2));
    }
    tg::gradient_tape tape;
    (tape.watch(x), ...);
    const tg::tensor<double> y = f(b.scope() / "l", x...);
    const tg::tensor<double> loss = sum(y * numbers(y.shape(), 9));
    std::vector<tg::any_tensor> sources{x...};
    for (const std::string& path : paths)
        for (const auto& used : b.context.used)
            if (used.target->path() == "l/" + path) sources.push_back(used.handle);
    const auto gradients = tape.gradient(loss, sources);
    REQUIRE(gradients.size() + 1 == wanted.size());
    // Keras casts to single precision within attention and normalizations.
    const bool single = sizeof...(X) == 2 || std::string_view(name).find("Norm") != std::string_view::npos;
    const double tolerance = single ? 1e-6 : 1e-11;
    CAPTURE(digest(y, 9) - wanted[0]);
    CHECK(agree(digest(y, 9), wanted[0], tolerance));
    for (std::size_t k = 0; k < gradients.size(); ++k) {
        CAPTURE(k);
        const double got = digest(tg::tensor<double>(gradients[k]), 8);
        CAPTURE(got - wanted[k + 1]);
        CHECK(agree(got, wanted[k + 1], tolerance));
    }
}

} // namespace

TEST_CASE("stored: convolutions of the core set") {
    const auto image = numbers({2, 5, 6, 4}, 1, 2), line = numbers({2, 6, 4}, 1, 2);
    check(
        "DepthwiseConv2D((3, 2), 2, 'same', depth_multiplier=2)", {"kernel", "bias"},
        {-7.04958677686, -0.571750563486, 2.31855747558, -2.20661157025},
        [](auto s, auto x) {
            return tg::depthwise_conv2d(
                s, x, {.kernel_size = {3, 2}, .stride = 2, .padding = tg::padding::same(), .depth_multiplier = 2});
        },
        image);
    check(
        "DepthwiseConv1D(3, dilation_rate=2, depth_multiplier=3)", {"kernel", "bias"},
        {-0.94966190834, 2.64913598798, 5.19759579264, -1.40495867769},
        [](auto s, auto x) { return tg::depthwise_conv1d(s, x, {.dilation = 2, .depth_multiplier = 3}); }, line);
    check(
        "SeparableConv2D(3, (2, 3), padding='same', depth_multiplier=2)",
        {"depthwise_kernel", "pointwise_kernel", "bias"},
        {54.4529745236, -2.43023017553, 37.3262755276, -13.1691824329, -0.0330578512397},
        [](auto s, auto x) {
            return tg::separable_conv2d(
                s, x, {.filters = 3, .kernel_size = {2, 3}, .padding = tg::padding::same(), .depth_multiplier = 2});
        },
        image);
    check(
        "SeparableConv1D(5, 2, strides=2)", {"depthwise_kernel", "pointwise_kernel", "bias"},
        {9.98114882863, -1.87787719418, 5.17532955399, -5.02971108531, -5.38842975207},
        [](auto s, auto x) { return tg::separable_conv1d(s, x, {.filters = 5, .kernel_size = 2, .stride = 2}); }, line);
    check(
        "Conv2DTranspose(3, 3, (2, 1), 'same', output_padding=(1, 0))", {"kernel", "bias"},
        {-30.9113448535, -5.32832456799, -6.40120210368, 1.5041322314},
        [](auto s, auto x) {
            return tg::conv2d_transpose(
                s, x, {.filters = 3, .stride = {2, 1}, .padding = tg::padding::same(), .output_padding = {1, 0}});
        },
        image);
    check(
        "Conv2DTranspose(2, 3, strides=2)", {"kernel", "bias"},
        {92.3929376409, 19.9008264463, 153.501126972, 0.0413223140496},
        [](auto s, auto x) { return tg::conv2d_transpose(s, x, {.filters = 2, .stride = 2}); }, image);
    check(
        "Conv1DTranspose(3, 4, strides=2, padding='same')", {"kernel", "bias"},
        {7.1705484598, 1.33884297521, 2.88805409467, -0.429752066116},
        [](auto s, auto x) {
            return tg::conv1d_transpose(s, x,
                                        {.filters = 3, .kernel_size = 4, .stride = 2, .padding = tg::padding::same()});
        },
        line);
}

TEST_CASE("stored: activations and normalizations") {
    const auto image = numbers({2, 5, 6, 4}, 1, 2), line = numbers({2, 6, 4}, 1, 2);
    const tg::tensor<double> without_zeros = image + 0.05, line_without = line + 0.05; // prelu has a kink there
    check(
        "PReLU(shared_axes=[1, 2])", {"alpha"}, {39.3138241923, -28.516904583, 1.42625845229},
        [](auto s, auto x) {
            return tg::prelu(s, x, {.shared_axes = {1, 2}});
        },
        without_zeros);
    check(
        "PReLU()", {"alpha"}, {2.42678437265, -5.18858001503, -2.74466566491},
        [](auto s, auto x) { return tg::prelu(s, x); }, line_without);
    check(
        "GroupNormalization(2)", {"gamma", "beta"}, {7.31186634912, -9.10701140874, 2.90337779305, -0.487603621049},
        [](auto s, auto x) { return tg::group_normalization(s, x, {.groups = 2}); }, image);
    check(
        "GroupNormalization(-1, scale=False)", {"beta"}, {1.54118194092, -5.49424325133, -1.5454546755},
        [](auto s, auto x) { return tg::group_normalization(s, x, {.groups = -1, .scale = false}); }, line);
    check(
        "RMSNormalization()", {"scale"}, {4.58849445121, -2.02010547133, 4.00085883791},
        [](auto s, auto x) { return tg::rms_normalization(s, x); }, line);
    check(
        "UnitNormalization()", {}, {1.0773317236, -3.3134328588},
        [](auto, auto x) { return tg::unit_normalization(x); }, line);
    check(
        "UnitNormalization(axis=[1, 2])", {}, {0.526352207503, -1.38478558054},
        [](auto, auto x) {
            return tg::unit_normalization(x, {1, 2});
        },
        line);
}

TEST_CASE("stored: layers that change extents") {
    const auto image = numbers({2, 5, 6, 4}, 1, 2), line = numbers({2, 6, 4}, 1, 2);
    check(
        "UpSampling2D((2, 3))", {}, {-35.1404958678, 8.97520661157},
        [](auto, auto x) {
            return tg::up_sampling2d(x, {.size = {2, 3}});
        },
        image);
    check(
        "UpSampling2D((2, 3), interpolation='bilinear')", {}, {19.4063360882, -2.4173553719},
        [](auto, auto x) {
            return tg::up_sampling2d(x, {.size = {2, 3}, .interpolation = tg::interpolation::bilinear});
        },
        image);
    check(
        "UpSampling1D(3)", {}, {-6.4132231405, 0.727272727273},
        [](auto, auto x) { return tg::up_sampling1d(x, {.size = 3}); }, line);
    check(
        "Cropping2D(((1, 0), (2, 1)))", {}, {-3.37190082645, 3.76033057851},
        [](auto, auto x) {
            return tg::cropping2d(x, {.height = {1, 0}, .width = {2, 1}});
        },
        image);
    check(
        "Cropping1D((1, 2))", {}, {0.545454545455, 2.85950413223},
        [](auto, auto x) {
            return tg::cropping1d(x, {1, 2});
        },
        line);
    check(
        "ZeroPadding2D(((1, 0), (2, 1)))", {}, {7.19008264463, -2.12396694215},
        [](auto, auto x) {
            return tg::zero_padding2d(x, {.height = {1, 0}, .width = {2, 1}});
        },
        image);
    check(
        "ZeroPadding1D((1, 2))", {}, {-11.2396694215, 4.54545454545},
        [](auto, auto x) {
            return tg::zero_padding1d(x, {1, 2});
        },
        line);
    check(
        "RepeatVector(3)", {}, {-1.06611570248, -2.66115702479}, [](auto, auto x) { return tg::repeat_vector(x, 3); },
        numbers({2, 4}, 1));
}

TEST_CASE("stored: GroupedQueryAttention(2, 4, 2)(query, value, use_causal_mask=True)") {
    std::vector<std::string> paths;
    for (const char* part : {"query", "key", "value", "attention_output"})
        for (const char* name : {"/kernel", "/bias"}) paths.push_back(std::string(part) + name);
    check(
        "", paths,
        {-3.78983711353, -0.928420573758, -4.46568888734, -1.47598469731, -0.576537606391, 1.27917066671,
         -5.7011758062e-08, -0.676855520953, -3.23666396195, -7.56669661766, -5.38842975207},
        [](auto s, auto query, auto value) {
            return tg::grouped_query_attention(
                s, query, value,
                {.head_dim = 2, .num_query_heads = 4, .num_key_value_heads = 2, .use_causal_mask = true});
        },
        numbers({2, 3, 5}, 1), numbers({2, 6, 4}, 10));
}

TEST_CASE("stored: regularizers, and their gradients") {
    const tg::tensor<double> w = numbers({4, 3}, 1, 2) + 0.05; // no zeros, where |w| has a kink
    const auto same = [&](const tg::regularizer& r, double value, double slope) {
        auto x = w;
        tg::gradient_tape tape;
        tape.watch(x);
        const tg::tensor<double> y = tg::regularization(r, x);
        CHECK(agree(y.item(), value, 1e-11));
        const double got = digest(tg::tensor<double>(tape.gradient(y, x)), 8);
        CAPTURE(got - slope);
        CHECK(agree(got, slope, 1e-11));
    };
    same(tg::regularizers::l1{0.3}, 3.63, -0.272727272727);
    same(tg::regularizers::l2{0.2}, 3.366, -1.29454545455);
    same(tg::regularizers::l1_l2{0.3, 0.2}, 6.996, -1.56727272727);
    same(tg::regularizers::orthogonal{0.5}, 0.265155674783, -0.0423304354312);
    same(tg::regularizers::orthogonal{0.5, true}, 0.204925937886, -0.0696112699199);
    CHECK(tg::tensor<double>(tg::regularization(tg::regularizer{}, w)).item() == 0);
}

TEST_CASE("stored: constraints") {
    const auto w = numbers({4, 3}, 1, 2), kernel = numbers({2, 3, 4, 2}, 2);
    const auto same = [](const tg::constraint& c, const tg::tensor<double>& x, double wanted) {
        CHECK(agree(digest(tg::constrained(c, x), 9), wanted, 1e-11));
    };
    same(tg::constraints::max_norm{1.5}, w, 1.48803265921);
    same(tg::constraints::max_norm{.axis = {0, 1, 2}}, kernel, -4.21050072722);
    same(tg::constraints::non_negative{}, w, 2.42975206612);
    same(tg::constraints::unit_norm{1}, w, 0.552322635605);
    same(tg::constraints::unit_norm{-1}, w, 0.552322635605);
    same(tg::constraints::min_max_norm{0.5, 1.5, 0.3, 0}, w, 1.59186427377);
    same(tg::constraints::min_max_norm{.min_value = 2.5, .max_value = 3, .axis = {0, 1}}, kernel, -10.764259085);
}

} // namespace stored_layers_test
