// Quantisation after training. tests/peers/onnx_quantized.py compares with onnxruntime.

#include <tapegraph/io/quantize_onnx.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/transposed_convolution.hpp>
#include <tapegraph/traced.hpp>

#include <support/messages.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace quantize_onnx_test {

namespace tg = tapegraph;
using support::contains;
using support::message_of;

namespace {

using batches = std::vector<std::vector<tg::any_tensor>>;

struct network { // [batch, 6, 6, 3]
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::eval(relu(tg::conv2d(scope / "first", x, {.filters = 16, .kernel_size = 3})));
        h = tg::conv2d_transpose(scope / "up", h, {.filters = 8, .kernel_size = 2, .stride = 2});
        h = tg::dense(scope / "hidden", flatten(h), {.units = 32});
        return tg::dense(scope / "score", tanh(h), {.units = 5, .use_bias = false});
    }
};
using images = tg::spec<float, tg::dyn, 6, 6, 3>;

batches random_images(int count) {
    batches all;
    for (int k = 0; k < count; ++k)
        all.push_back({tg::random::normal<float>(tg::shape{7, 6, 6, 3}, {.seed = static_cast<std::uint64_t>(k + 1)})});
    return all;
}
std::string bytes_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

TEST_CASE("a dense layer on integers: by hand") {
    const support::temporary_folder folder;
    constexpr auto layer = [](auto scope, auto x) { return tg::dense(scope / "score", x, {.units = 2}); };
    auto model = tg::compile<tg::traced>(layer, tg::spec<float, tg::dyn, 3>{});
    const float w[] = {0.5f, -1, 0.25f, 2, -0.125f, 0.75f}, b[] = {0.3f, -0.7f}; // [3, 2]
    std::copy(std::begin(w), std::end(w), static_cast<float*>(model.variables()["score/kernel"].own_data()));
    std::copy(std::begin(b), std::end(b), static_cast<float*>(model.variables()["score/bias"].own_data()));
    const tg::tensor<float> x{{-1, 0, 3}, {0.5f, 2.2f, -0.6f}};
    const auto path = folder.path() / "q.onnx";
    const auto report = tg::io::export_quantized_onnx(model, path, {{x}});
    const tg::tensor<float> got(tg::io::load_onnx(path).predict({x})[0]);
    // From -1 to 3: steps of 4 / 255, 0 is 64 (63.75 rounded).
    const double step = static_cast<double>(4.0f / 255);
    const double scales[] = {static_cast<double>(0.5f / 127), static_cast<double>(2.0f / 127)};
    double worst = 0;
    for (int r = 0; r < 2; ++r)
        for (int c = 0; c < 2; ++c) {
            double sum = std::nearbyint(static_cast<double>(b[c]) / (step * scales[c]));
            for (int k = 0; k < 3; ++k) {
                const double q = std::clamp(std::nearbyint(static_cast<double>(x(r, k)) / step) + 64, 0.0, 255.0) - 64;
                sum += q * std::nearbyint(static_cast<double>(w[2 * k + c]) / scales[c]);
            }
            CHECK(static_cast<double>(got(r, c)) == doctest::Approx(sum * step * scales[c]).epsilon(1e-6));
            worst = std::max(worst, std::fabs(static_cast<double>(got(r, c)) -
                                              static_cast<double>(tg::tensor<float>(model.predict(x))(r, c))));
        }
    REQUIRE(report.layers.size() == 1);
    CHECK(report.layers[0].low == doctest::Approx(-64 * step));
    CHECK(report.layers[0].high == doctest::Approx(191 * step));
    REQUIRE(report.outputs.size() == 1);
    CHECK(report.outputs[0].largest == doctest::Approx(worst).epsilon(1e-4));
    CHECK(report.outputs[0].same_top == 1);
    CHECK(contains(report.text(), "rows have the same top"));
}

TEST_CASE("a network on integers: what is read back is near the model, in all modes the same file") {
    const support::temporary_folder folder;
    auto traced = tg::compile<tg::traced>(network{}, images{});
    auto compiled = tg::compile<tg::graph>(network{}, images{}, tg::sparse_softmax_cross_entropy{}, tg::adam{});
    for (const auto& v : traced.variables())
        std::copy_n(static_cast<const float*>(v.data().read()), v.size(),
                    static_cast<float*>(compiled.variables()[v.path()].own_data()));
    const batches data = random_images(5);
    const auto report = tg::io::export_quantized_onnx(traced, folder.path() / "a.onnx", data);
    tg::io::export_quantized_onnx(compiled, folder.path() / "b.onnx", data);
    CHECK(bytes_of(folder.path() / "a.onnx") == bytes_of(folder.path() / "b.onnx"));
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2); // nothing else is left behind
    CHECK(report.layers.size() == 4);
    CHECK(report.left.empty());
    CHECK(3 * report.bytes < report.float_bytes);
    REQUIRE(report.outputs.size() == 1);
    CHECK(report.outputs[0].largest > 0);
    CHECK(report.outputs[0].signal_to_noise > 25); // steps of 1/255 of each range; measured 35.1
    tg::io::export_quantized_onnx(traced, folder.path() / "new.onnx", data, {.file = {.opset = 26}});
    const auto net = tg::io::load_onnx(folder.path() / "a.onnx"), newer = tg::io::load_onnx(folder.path() / "new.onnx");
    for (const std::int64_t count : {1, 5, 33}) {
        const tg::any_tensor x = tg::random::normal<float>(tg::shape{count, 6, 6, 3}, {.seed = 77});
        const tg::tensor<float> a(net.predict({x})[0]), b(newer.predict({x})[0]);
        CHECK(std::equal(a.data(), a.data() + a.size(), b.data()));
    }
    // 7 bits of weights are coarser; a layer that is left out makes it finer.
    const auto coarse = tg::io::export_quantized_onnx(traced, folder.path() / "c.onnx", data, {.weight_bits = 7});
    CHECK(coarse.outputs[0].signal_to_noise < report.outputs[0].signal_to_noise);
    const auto fine =
        tg::io::export_quantized_onnx(traced, folder.path() / "d.onnx", data, {.leave = {"hidden", "score"}});
    CHECK(fine.layers.size() == 2);
    CHECK(fine.left.size() == 2);
    CHECK(fine.outputs[0].signal_to_noise > report.outputs[0].signal_to_noise);
}

TEST_CASE("percentiles cut off what is far away") {
    const support::temporary_folder folder;
    constexpr auto layer = [](auto scope, auto x) { return tg::dense(scope / "score", x, {.units = 4}); };
    auto model = tg::compile<tg::traced>(layer, tg::spec<float, tg::dyn, 10>{});
    tg::tensor<float> x = tg::random::normal<float>(tg::shape{1000, 10}, {.seed = 4});
    x.mutable_data()[17] = 300;
    const auto range = [&](const tg::io::quantization_options& o) {
        const auto r = tg::io::export_quantized_onnx(model, folder.path() / "x.onnx", {{x}}, o);
        return r.layers[0].high;
    };
    CHECK(range({}) > 290);
    CHECK(range({.ranges = tg::io::calibration::percentile, .percentile = 100}) > 290);
    CHECK(range({.ranges = tg::io::calibration::percentile, .percentile = 99.9}) < 10);
    tg::onnx::activation_range r;
    std::vector<float> numbers;
    for (int i = 0; i < 1000; ++i) numbers.push_back(static_cast<float>(i));
    r.see(numbers.data(), 1000, "x"), r.sort(numbers.data(), 1000), r.keep(90); // 50 on both sides
    CHECK(r.low() == doctest::Approx(49.95).epsilon(0.02));
    CHECK(r.high() == doctest::Approx(949).epsilon(0.002));
    CHECK(tg::onnx::uint8_scale_of(2, 51).scale == 0.2f); // 0 is always inside
    CHECK(tg::onnx::uint8_scale_of(2, 51).zero == 0);
    CHECK(tg::onnx::uint8_scale_of(-51, -2).zero == 255);
}

TEST_CASE(
    "ranges of the least divergence: by hand, as onnxruntime's, and better than extremes where some numbers are far") {
    // Two steps of two bins; what lies behind the four is counted in the last of them.
    const std::vector<std::int64_t> counts{4, 4, 3, 1, 0, 1};
    const auto part = [](double p, double q) { return p / 13 * std::log(p / 13 / (q / 12)); };
    CHECK(tg::onnx::divergence(counts, 4, 2) == doctest::Approx(2 * part(4, 4) + part(3, 2) + part(2, 2)));
    CHECK(tg::onnx::divergence({3, 0, 1, 5, 2, 2}, 6, 6) == 0); // each bin is a step
    CHECK(tg::onnx::least_divergence({3, 0, 1, 5, 2, 2}, 6) == 6);

    // Limits of onnxruntime 1.32's HistogramCollector for the same numbers, 2048 bins and 128 steps over both sides,
    // are 9.31, 9.17 and 8.69; ours counts absolute values.
    constexpr int n = 100000;
    const auto limit = [&](const auto& quantile) {
        std::vector<double> x;
        for (int i = 0; i < n; ++i) x.push_back(std::fabs(quantile((i + 0.5) / n)));
        const double most = *std::max_element(x.begin(), x.end());
        std::vector<std::int64_t> bins(1024);
        for (const double v : x) ++bins[static_cast<std::size_t>(std::min(1023.0, v / most * 1024))];
        return tg::onnx::least_divergence(bins, 64) * most / 1024;
    };
    CHECK(limit([](double u) { return -std::log(1 - u); }) == doctest::Approx(9.31).epsilon(0.02));
    CHECK(limit([](double u) { return std::log(u / (1 - u)); }) == doctest::Approx(9.17).epsilon(0.15));
    CHECK(limit([](double u) { return u < 0.5 ? std::log(2 * u) : -std::log(2 - 2 * u); }) ==
          doctest::Approx(8.69).epsilon(0.15));

    // Zeros, of which relu makes many, do not count.
    const auto cut = [](std::vector<float> x) {
        tg::onnx::activation_range r;
        const auto count = static_cast<std::int64_t>(x.size());
        r.see(x.data(), count, "x"), r.sort_absolute(x.data(), count), r.keep_information();
        return r;
    };
    const tg::tensor<float> normal = tg::random::normal<float>(tg::shape{20000}, {.seed = 3});
    std::vector<float> positive, with_zeros;
    for (int i = 0; i < 20000; ++i) {
        with_zeros.push_back(std::max(normal.data()[i], 0.0f));
        if (normal.data()[i] > 0) positive.push_back(normal.data()[i]);
    }
    CHECK(cut(with_zeros).high() == cut(positive).high());
    CHECK(cut(with_zeros).low() == 0);

    // A layer with one number in 10,000 far away: more steps for the others.
    const support::temporary_folder folder;
    constexpr auto layer = [](auto scope, auto x) { return tg::dense(scope / "score", x, {.units = 4}); };
    auto model = tg::compile<tg::traced>(layer, tg::spec<float, tg::dyn, 10>{});
    tg::tensor<float> data = tg::random::normal<float>(tg::shape{1000, 10}, {.seed = 4});
    data.mutable_data()[17] = 300;
    const tg::any_tensor others = tg::random::normal<float>(tg::shape{500, 10}, {.seed = 5});
    const tg::tensor<float> exact(model.predict(tg::tensor<float>(others)));
    const auto error = [&](tg::io::calibration by) {
        const auto path = folder.path() / "x.onnx";
        const auto r = tg::io::export_quantized_onnx(model, path, {{data}}, {.ranges = by});
        CHECK((r.layers[0].high < 25) == (by == tg::io::calibration::entropy));
        const tg::tensor<float> y(tg::io::load_onnx(path).predict({others})[0]);
        double sum = 0;
        for (std::int64_t i = 0; i < y.size(); ++i)
            sum += std::pow(static_cast<double>(y.data()[i]) - static_cast<double>(exact.data()[i]), 2);
        return sum;
    };
    CHECK(error(tg::io::calibration::entropy) * 100 < error(tg::io::calibration::minmax));
}

TEST_CASE("what cannot be quantised is named") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "x.onnx";
    auto model = tg::compile<tg::traced>(network{}, images{});
    const auto why = [&](const batches& data, const tg::io::quantization_options& o = {}) {
        return message_of<tg::argument_error>([&] { tg::io::export_quantized_onnx(model, path, data, o); });
    };
    CHECK(contains(why({}), "quantization: no batches to calibrate by"));
    CHECK(contains(why({{tg::zeros<float>(2, 6, 6, 3)}}), "' is 0 in all 216 elements"));
    tg::tensor<float> x = tg::ones<float>(2, 6, 6, 3);
    x.mutable_data()[5] = std::numeric_limits<float>::quiet_NaN();
    CHECK(contains(why({{x}}), "' is NaN on the calibration data"));
    x.mutable_data()[5] = -std::numeric_limits<float>::infinity();
    CHECK(contains(why({{x}}), "' is -inf on the"));
    CHECK(contains(why(random_images(1), {.leave = {"third"}}), "no layer of the model is 'third'; it has first/Conv"));
    CHECK(contains(why(random_images(1), {.leave = {"first", "up", "hidden", "score"}}),
                   "the model has no layer to quantise (first/Conv: left out by the options"));
    CHECK(contains(why(random_images(1), {.weight_bits = 4}), "weight_bits = 4, it is 7 or 8"));
    CHECK(contains(why(random_images(1), {.ranges = tg::io::calibration::percentile, .percentile = 0}),
                   "percentile = 0"));
    constexpr auto recurrent = [](auto scope, auto series) { return tg::lstm(scope / "lstm", series, {.units = 3}); };
    auto other = tg::compile<tg::traced>(recurrent, tg::spec<float, tg::dyn, 5, 2>{});
    CHECK(contains(message_of<tg::argument_error>(
                       [&] { tg::io::export_quantized_onnx(other, path, {{tg::ones<float>(2, 5, 2)}}); }),
                   "LSTM: a recurrent layer"));
    CHECK_FALSE(std::filesystem::exists(path));
    CHECK(std::filesystem::is_empty(folder.path()));
}

} // namespace quantize_onnx_test
