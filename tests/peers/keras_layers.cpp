// needs: zlib
// needs: hdf5
// Layers with the weights that Keras wrote: keras_layers FOLDER reads NAME.keras and NAME.weights.h5 of each layer, NAME.in, and writes what
// the layer makes of it, NAME.keras.out and NAME.weights.h5.out. Prints the names.
#include <tapegraph/io/keras.hpp>
#include <tapegraph/nn/layers/activation.hpp>
#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/convolution.hpp>
#include <tapegraph/nn/layers/depthwise_convolution.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/grouped_attention.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/normalization.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/nn/layers/transposed_convolution.hpp>
#include <tapegraph/tapegraph.hpp>
#include <tapegraph/traced.hpp>

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <utility>

namespace tg = tapegraph;

namespace {

std::string folder;

tg::tensor<float> read(const std::string& path, const tg::shape& dims) {
    auto x = tg::tensor<float>::uninitialized(dims);
    std::ifstream(path, std::ios::binary)
        .read(static_cast<char*>(x.write()), static_cast<std::streamsize>(x.size() * 4));
    return x;
}

template <class Spec, class Model>
void layer(const std::string& name, Model model, const tg::shape& dims) {
    for (const std::string& kind : {".keras", ".weights.h5"}) {
        try {
            auto net = tg::compile<tg::traced>(model, Spec{});
            tg::io::load_keras(net, folder + "/" + name + kind);
            const tg::tensor<float> y(net.predict(read(folder + "/" + name + ".in", dims)));
            std::ofstream(folder + "/" + name + kind + ".out", std::ios::binary)
                .write(static_cast<const char*>(y.read()), static_cast<std::streamsize>(y.size() * 4));
            std::printf("%s%s\n", name.c_str(), kind.c_str());
        } catch (const std::exception& failure) {
            std::printf("refused %s%s: %s\n", name.c_str(), kind.c_str(), failure.what());
        }
    }
}

} // namespace

int main(int count, char** arguments) {
    if (count != 2) return 2;
    folder = arguments[1];
    using row = tg::spec<float, tg::dyn, 6>;
    using series = tg::spec<float, tg::dyn, 7, 6>;
    using image = tg::spec<float, tg::dyn, 7, 5, 6>;
    const tg::shape rows{3, 6}, steps{3, 7, 6}, images{2, 7, 5, 6};
    const auto same = tg::padding::same();
    layer<row>(
        "dense", [](auto s, auto x) { return tg::dense(s / "l", x, {.units = 4}); }, rows);
    layer<row>(
        "batch_normalization", [](auto s, auto x) { return tg::batch_normalization(s / "l", x); }, rows);
    layer<row>(
        "layer_normalization", [](auto s, auto x) { return tg::layer_normalization(s / "l", x); }, rows);
    layer<row>(
        "rms_normalization", [](auto s, auto x) { return tg::rms_normalization(s / "l", x); }, rows);
    layer<image>(
        "group_normalization", [](auto s, auto x) { return tg::group_normalization(s / "l", x, {.groups = 3}); },
        images);
    layer<row>(
        "prelu", [](auto s, auto x) { return tg::prelu(s / "l", x); }, rows);
    layer<series>(
        "conv1d",
        [=](auto s, auto x) { return tg::conv1d(s / "l", x, {.filters = 4, .kernel_size = 3, .padding = same}); },
        steps);
    layer<series>(
        "conv1d_transpose",
        [](auto s, auto x) { return tg::conv1d_transpose(s / "l", x, {.filters = 4, .kernel_size = 3}); }, steps);
    layer<series>(
        "depthwise_conv1d",
        [](auto s, auto x) { return tg::depthwise_conv1d(s / "l", x, {.kernel_size = 3, .depth_multiplier = 2}); },
        steps);
    layer<series>(
        "separable_conv1d",
        [](auto s, auto x) { return tg::separable_conv1d(s / "l", x, {.filters = 4, .kernel_size = 3}); }, steps);
    layer<image>(
        "conv2d",
        [=](auto s, auto x) { return tg::conv2d(s / "l", x, {.filters = 4, .kernel_size = 3, .padding = same}); },
        images);
    layer<image>(
        "conv2d_transpose",
        [](auto s, auto x) { return tg::conv2d_transpose(s / "l", x, {.filters = 4, .kernel_size = 3}); }, images);
    layer<image>(
        "depthwise_conv2d",
        [](auto s, auto x) { return tg::depthwise_conv2d(s / "l", x, {.kernel_size = 3, .depth_multiplier = 2}); },
        images);
    layer<image>(
        "separable_conv2d",
        [](auto s, auto x) { return tg::separable_conv2d(s / "l", x, {.filters = 4, .kernel_size = 3}); }, images);
    layer<series>(
        "lstm", [](auto s, auto x) { return tg::lstm(s / "l", x, {.units = 4}); }, steps);
    layer<series>(
        "gru", [](auto s, auto x) { return tg::gru(s / "l", x, {.units = 4}); }, steps);
    layer<series>(
        "gru_before", [](auto s, auto x) { return tg::gru(s / "l", x, {.units = 4, .reset_after = false}); }, steps);
    layer<series>(
        "simple_rnn", [](auto s, auto x) { return tg::simple_rnn(s / "l", x, {.units = 4}); }, steps);
    layer<series>(
        "bidirectional",
        [](auto s, auto x) { return tg::bidirectional(s / "l", x, tg::lstm_layer_options{.units = 4}); }, steps);
    layer<series>(
        "multi_head_attention",
        [](auto s, auto x) { return tg::multi_head_attention(s / "l", x, x, {.num_heads = 2, .key_dim = 3}); }, steps);
    layer<series>(
        "grouped_query_attention",
        [](auto s, auto x) {
            return tg::grouped_query_attention(s / "l", x, x,
                                               {.head_dim = 4, .num_query_heads = 4, .num_key_value_heads = 2});
        },
        steps);
    layer<row>(
        "embedding",
        [](auto s, auto x) {
            return tg::embedding(s / "l", tg::cast<std::int32_t>(x), {.input_dim = 9, .output_dim = 4});
        },
        rows);
}
