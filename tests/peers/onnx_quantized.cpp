// needs: proto
#include <tapegraph/io/quantize_onnx.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/transposed_convolution.hpp>
#include <tapegraph/traced.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

// onnx_quantized FOLDER OPSET: models as FOLDER/name.onnx on integers of 8 bits. A line for each: its name, how many layers are quantised, and the
// extents of one batch; name.x, name.y and name.exact have this batch, what load_onnx makes of the file, and what the model makes of it.

namespace {

namespace tg = tapegraph;
std::string folder;
std::int64_t opset = 17;

void put(const std::string& name, const tg::any_tensor& t) {
    std::ofstream(folder + "/" + name, std::ios::binary)
        .write(static_cast<const char*>(t.read()), static_cast<std::streamsize>(t.size() * 4));
}

template <class Spec, class Network>
void model(const std::string& name, const Network& network, const tg::shape& batch,
           tg::io::quantization_options options = {}) {
    auto model = tg::compile<tg::traced>(network, Spec{});
    std::vector<std::vector<tg::any_tensor>> data;
    for (std::uint64_t k = 1; k < 5; ++k) data.push_back({tg::random::normal<float>(batch, {.seed = k})});
    options.file.opset = opset;
    const auto report = tg::io::export_quantized_onnx(model, folder + "/" + name + ".onnx", data, options);
    const tg::any_tensor x = tg::random::normal<float>(batch, {.seed = 9});
    put(name + ".x", x);
    put(name + ".y", tg::io::load_onnx(folder + "/" + name + ".onnx").predict({x})[0]);
    put(name + ".exact", model.predict(tg::tensor<float>(x)));
    std::printf("%s %zu", name.c_str(), report.layers.size());
    for (int i = 0; i < batch.rank(); ++i) std::printf(" %lld", static_cast<long long>(batch[i].value));
    std::printf("\n");
    std::fputs(report.text().c_str(), stderr);
}

} // namespace

int main(int, char** arguments) {
    folder = arguments[1];
    opset = std::atoll(arguments[2]);
    using images = tg::spec<float, tg::dyn, 16, 16, 3>;
    const tg::shape batch{8, 16, 16, 3};
    model<tg::spec<float, tg::dyn, 20>>(
        "one_layer", [](auto scope, auto x) { return tg::dense(scope / "score", x, {.units = 7}); }, {32, 20});
    model<images>(
        "one_convolution",
        [](auto scope, auto x) { return tg::conv2d(scope / "c", x, {.filters = 5, .kernel_size = 3}); }, batch);
    model<tg::spec<float, tg::dyn, 20>>(
        "perceptron",
        [](auto scope, auto x) {
            const auto h = tg::eval(relu(tg::dense(scope / "a", x, {.units = 64})));
            return tg::dense(scope / "b", tg::eval(tanh(tg::dense(scope / "c", h, {.units = 32}))), {.units = 7});
        },
        {32, 20});
    const auto network = [](auto scope, auto x) {
        auto h = tg::eval(
            relu(tg::conv2d(scope / "a", x, {.filters = 16, .kernel_size = 3, .padding = tg::padding::same()})));
        h = tg::max_pooling2d(h, {.pool_size = 2});
        const auto side = tg::conv2d(scope / "b", h, {.filters = 16, .kernel_size = 3, .padding = tg::padding::same()});
        h = tg::eval(relu(side + h));
        h = tg::conv2d_transpose(scope / "up", h, {.filters = 8, .kernel_size = 2, .stride = 2});
        return tg::dense(scope / "score", flatten(tg::eval(tanh(h))), {.units = 10});
    };
    model<images>("network", network, batch);
    model<images>("network_by_percentiles", network, batch,
                  {.ranges = tg::io::calibration::percentile, .percentile = 99.9});
    model<images>("network_by_entropy", network, batch, {.ranges = tg::io::calibration::entropy});
    model<images>("network_of_7_bits", network, batch, {.leave = {"a"}, .weight_bits = 7});
    model<tg::spec<float, tg::dyn, 30, 4>>("series",
                                           [](auto scope, auto x) {
                                               auto h = tg::eval(
                                                   relu(tg::conv1d(scope / "a", x, {.filters = 12, .kernel_size = 5})));
                                               h = tg::lstm(scope / "lstm", h, {.units = 8});
                                               return tg::dense(scope / "score", h, {.units = 3});
                                           },
                                           {8, 30, 4});
}
