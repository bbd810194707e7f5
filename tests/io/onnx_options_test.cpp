#include <tapegraph/io/load_onnx.hpp>
#include <tapegraph/io/onnx.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/transposed_convolution.hpp>
#include <tapegraph/traced.hpp>

#include <support/messages.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace onnx_options_test {

namespace tg = tapegraph;
using support::contains;
using support::message_of;

namespace {

constexpr auto network = [](auto scope, auto x) { // [batch, 6, 6, 3]
    auto h = tg::eval(relu(tg::conv2d(scope / "first", x, {.filters = 16, .kernel_size = 3})));
    h = tg::conv2d_transpose(scope / "up", h, {.filters = 8, .kernel_size = 2, .stride = 2});
    h = tg::dense(scope / "hidden", flatten(h), {.units = 32});
    return tg::dense(scope / "score", tanh(h), {.units = 5, .use_bias = false});
};
using images = tg::spec<float, tg::dyn, 6, 6, 3>;

double distance(const tg::tensor<float>& a, const tg::tensor<float>& b) {
    double worst = 0;
    for (std::int64_t i = 0; i < a.size(); ++i)
        worst = std::max(worst, std::fabs(static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i])));
    return worst;
}

/// What a weight becomes: its output channels are the last axis here, of transposed convolutions the one before.
void round_weights(tg::variable& v) {
    const bool transposed = v.path() == "up/kernel";
    const std::int64_t last = v.shape()[v.shape().rank() - 1].value;
    const std::int64_t channels = transposed ? v.shape()[v.shape().rank() - 2].value : last;
    const auto channel = [&](std::int64_t i) { return transposed ? i / last % channels : i % channels; };
    float* const w = static_cast<float*>(v.own_data());
    std::vector<float> scale(static_cast<std::size_t>(channels), 0.0f);
    for (std::int64_t i = 0; i < v.size(); ++i) {
        float& s = scale[static_cast<std::size_t>(channel(i))];
        s = std::max(s, std::fabs(w[i]) / 127);
    }
    for (std::int64_t i = 0; i < v.size(); ++i)
        if (const float s = scale[static_cast<std::size_t>(channel(i))]; s > 0) w[i] = std::nearbyint(w[i] / s) * s;
}

} // namespace

TEST_CASE("weights of 8 bits: what is read back predicts as the model with rounded weights") {
    const support::temporary_folder folder;
    auto model = tg::compile<tg::traced>(network, images{});
    const auto x = tg::random::normal<float>(tg::shape{3, 6, 6, 3}, {.seed = 5});
    const tg::tensor<float> exact(model.predict(x));
    tg::io::export_onnx(model, folder.path() / "whole.onnx");
    tg::io::export_onnx(model, folder.path() / "small.onnx", {.int8_weights = true});
    const auto whole = std::filesystem::file_size(folder.path() / "whole.onnx");
    const auto small = std::filesystem::file_size(folder.path() / "small.onnx");
    CHECK(5 * small < 2 * whole); // 69,952 bytes of kernels become 17,488 and 244 of scales, beside what stays

    const tg::tensor<float> got(tg::io::load_onnx(folder.path() / "small.onnx").predict({x})[0]);
    const double off = distance(got, exact);
    CHECK(off > 0);
    CHECK(off < 0.05); // 4 layers, each weight within 1/254 of its channel's largest: measured 0.0064
    for (auto& v : model.variables())
        if (v.path().ends_with("kernel")) round_weights(v);
    CHECK(distance(got, tg::tensor<float>(model.predict(x))) <
          1e-5); // sums of up to 800 products of f32, in another order
    // The rounded weights are their own rounding.
    tg::io::export_onnx(model, folder.path() / "again.onnx", {.int8_weights = true});
    const tg::tensor<float> again(tg::io::load_onnx(folder.path() / "again.onnx").predict({x})[0]);
    CHECK(distance(got, again) < 1e-5);
}

TEST_CASE("weights that others read, too, that are empty channels or not finite") {
    const support::temporary_folder folder;
    constexpr auto tied = [](auto scope, auto words) {
        const auto h = tg::embedding(scope / "table", words, {.input_dim = 7, .output_dim = 4});
        return tg::dense(scope / "score", h, {.units = 3, .use_bias = false});
    };
    auto model = tg::compile<tg::traced>(tied, tg::spec<std::int32_t, tg::dyn, 2>{});
    auto& kernel = model.variables()["score/kernel"];
    float* const w = static_cast<float*>(kernel.own_data());
    for (int i = 0; i < 4; ++i) w[3 * i] = 0; // a channel of zeros
    const auto words = tg::tensor<std::int32_t>{{0, 6}, {3, 2}};
    const auto predicted = [&] {
        tg::io::export_onnx(model, folder.path() / "x.onnx", {.int8_weights = true});
        return tg::tensor<float>(tg::io::load_onnx(folder.path() / "x.onnx").predict({words})[0]);
    };
    const auto y = predicted();
    for (int i = 0; i < 4; ++i) CHECK(y.data()[3 * i] == 0);
    CHECK(distance(y, tg::tensor<float>(model.predict(words))) < 0.01);
    w[1] = std::numeric_limits<float>::infinity(); // the kernel stays as it is
    const auto infinite = predicted();
    const tg::tensor<float> expected(model.predict(words));
    for (int i = 0; i < 12; ++i) CHECK((infinite.data()[i] == expected.data()[i] || std::isnan(expected.data()[i])));
}

TEST_CASE("opsets: the newest is read as the first one is, others are refused") {
    const support::temporary_folder folder;
    constexpr auto reductions = [](auto, auto x) { // [batch, 6, 6, 3]
        return tg::concat({tg::eval(mean(x, 2) + max(x, 2)), tg::eval(min(x, 2) * sum(x, 2))}, -1);
    };
    auto model = tg::compile<tg::traced>(reductions, images{});
    const auto x = tg::random::normal<float>(tg::shape{2, 6, 6, 3}, {.seed = 5});
    for (const std::int64_t opset : {17, 18, 21, 26}) {
        CAPTURE(opset);
        tg::io::export_onnx(model, folder.path() / "x.onnx", {.opset = opset});
        const tg::tensor<float> got(tg::io::load_onnx(folder.path() / "x.onnx").predict({x})[0]);
        CHECK(distance(got, tg::tensor<float>(model.predict(x))) < 1e-6);
    }
    for (const std::int64_t opset : {16, 27})
        CHECK(contains(message_of<tg::argument_error>(
                           [&] { tg::io::export_onnx(model, folder.path() / "y.onnx", {.opset = opset}); }),
                       "export_onnx: opset " + std::to_string(opset) + ", those from 17 to 26 are written"));
    CHECK_FALSE(std::filesystem::exists(folder.path() / "y.onnx"));
}

} // namespace onnx_options_test
