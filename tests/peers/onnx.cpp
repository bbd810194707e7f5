// needs: proto
#include <tapegraph/io/onnx.hpp>

#include <models/cats_and_dogs.hpp>
#include <models/character_model.hpp>
#include <models/conv1d_large.hpp>
#include <models/conv1d_medium.hpp>
#include <models/conv1d_small.hpp>
#include <models/recurrent_medium.hpp>
#include <models/recurrent_small.hpp>
#include <models/text_classifier.hpp>

#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/depthwise_convolution.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/nn/layers/transposed_convolution.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

// onnx FOLDER [OPSET [int8]]: every model as FOLDER/name.onnx, and what it gives for some inputs. The list goes to stdout:
//     model NAME TRANSPOSES       (at most so many Transpose; -1: not counted)
//     input FILE TYPE DIMS...     (one for each input)
//     output FILE TYPE DIMS...    (ends a case)

namespace {

namespace tg = tapegraph;
std::string folder;
int files = 0;
std::int64_t opset = 17;
bool int8_weights = false;

template <class T>
void put(const char* what, const tg::tensor<T>& x) {
    const std::string name = std::to_string(files++) + ".bin";
    std::ofstream(folder + "/" + name, std::ios::binary)
        .write(static_cast<const char*>(x.read()),
               static_cast<std::streamsize>(static_cast<std::size_t>(x.size()) * sizeof(T)));
    std::printf("%s %s %s", what, name.c_str(), tg::name_of(tg::dtype_of<T>));
    for (int i = 0; i < x.rank(); ++i) std::printf(" %lld", static_cast<long long>(x.shape()[i].value));
    std::printf("\n");
}

/// Numbers between -1 and 1; integers from 0 to `below`, of which every third is 0.
template <class T>
tg::tensor<T> numbers(const tg::shape& dims, int below, unsigned seed) {
    auto x = tg::tensor<T>::uninitialized(dims);
    T* to = static_cast<T*>(x.write());
    for (std::int64_t i = 0; i < x.size(); ++i) {
        seed = seed * 1664525u + 1013904223u;
        if constexpr (std::is_floating_point_v<T>)
            to[i] = static_cast<T>(static_cast<double>(seed >> 8) / 8388608.0 - 1);
        else
            to[i] = (seed >> 10) % 3 == 0 ? T(0) : static_cast<T>((seed >> 12) % static_cast<unsigned>(below));
    }
    return x;
}

/// Moving averages and the like away from 0 and 1.
template <class Model>
void disturb(Model& model) {
    unsigned seed = 7;
    for (auto& v : model.variables()) {
        if (v.type() != tg::dtype::f32 || v.shape().rank() > 1) continue;
        float* to = static_cast<float*>(v.own_data());
        for (std::int64_t i = 0; i < v.size(); ++i) {
            seed = seed * 1664525u + 1013904223u;
            to[i] += 0.2f * static_cast<float>(seed >> 8) / 16777216.0f;
        }
    }
}

template <class Spec, class Model>
void model(const char* name, const Model&, const std::vector<tg::shape>& inputs, int below = 2, int transposes = -1,
           tg::io::onnx_options options = {}) {
    options.opset = opset;
    options.int8_weights = int8_weights;
    using T = typename Spec::element_type;
    auto m = tg::compile<tg::eager>(Model{}, Spec{});
    static_assert(tg::onnx::exportable<decltype(m)>);
    disturb(m);
    tg::io::export_onnx(m, folder + "/" + name + ".onnx", options);
    std::printf("model %s %d\n", name, transposes);
    unsigned seed = 1;
    for (const tg::shape& dims : inputs) {
        const auto x = numbers<T>(dims, below, seed++);
        put("input", x);
        put("output", tg::tensor<float>(m.predict(x)));
    }
}

struct transformer {
    constexpr auto operator()(auto scope, auto words) const {
        auto h = tg::embedding(scope / "embedding", words, {.input_dim = 11, .output_dim = 8});
        const auto a = tg::multi_head_attention(scope / "attention", h, h,
                                                {.num_heads = 2, .key_dim = 4, .use_causal_mask = true});
        h = tg::layer_normalization(scope / "norm", eval(h + a));
        const auto f = tg::dense(scope / "wide", h, {.units = 16});
        h = tg::layer_normalization(scope / "norm2",
                                    eval(h + tg::dense(scope / "narrow", eval(gelu(f)), {.units = 8})));
        return tg::softmax(tg::dense(scope / "next", h, {.units = 11}));
    }
};

struct recurrent_kinds {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::bidirectional(scope / "both", x, tg::gru_layer_options{.units = 5, .return_sequences = true});
        h = tg::gru(scope / "before", h,
                    {.units = 4, .reset_after = false, .return_sequences = true, .go_backwards = true});
        h = tg::simple_rnn(scope / "plain", h, {.units = 6, .return_sequences = true});
        h = tg::lstm(scope / "hard", h,
                     {.units = 3, .recurrent_activation = tg::gate_activation::hard_sigmoid, .return_sequences = true});
        const auto [y, hidden, cell] = tg::lstm_with_state(scope / "state", h, {.units = 3, .return_sequences = true});
        const auto again = tg::lstm(scope / "again", y, {.units = 3}, tg::initial_state{hidden, cell});
        return tg::concat({again, hidden, cell}, -1);
    }
};

struct masked {
    constexpr auto operator()(auto scope, auto words) const {
        const auto rows = tg::embedding(scope / "embedding", words, {.input_dim = 9, .output_dim = 4});
        const auto mask = tg::embedding_mask(words);
        auto h = tg::bidirectional(scope / "both", rows, tg::lstm_layer_options{.units = 3, .return_sequences = true},
                                   tg::merge_mode::concat, mask);
        h = tg::gru(scope / "gru", h, {.units = 3, .return_sequences = true, .zero_output_for_mask = true}, mask);
        return tg::simple_rnn(scope / "last", h, {.units = 2}, mask);
    }
};

struct images {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::conv2d(scope / "first", x,
                            {.filters = 8, .kernel_size = 3, .stride = 2, .padding = tg::padding::same()});
        const auto skip = tg::conv2d(scope / "skip", h, {.filters = 8, .kernel_size = 1, .use_bias = false});
        h = tg::depthwise_conv2d(scope / "depthwise", h, {.kernel_size = 3, .padding = tg::padding::same()});
        h = tg::batch_normalization(scope / "norm", h, {.center = false, .scale = false});
        h = eval(relu6(h) + skip);
        h = tg::conv2d(scope / "grouped", h, {.filters = 4, .kernel_size = 2, .dilation = 2, .groups = 2});
        h = tg::average_pooling2d(h, {.pool_size = 3, .stride = 2, .padding = tg::padding::same()});
        h = tg::conv2d_transpose(scope / "up", h,
                                 {.filters = 6, .kernel_size = 3, .stride = 2, .padding = tg::padding::same()});
        h = tg::group_normalization(scope / "groups", h, {.groups = 3});
        h = tg::lp_pooling2d(h, 2, {.pool_size = 2});
        const auto flat = tg::dense(scope / "flat", tg::flatten(eval(leaky_relu(h, 0.1))), {.units = 5});
        return tg::concat({flat, tg::global_average_pooling2d(h), tg::global_max_pooling2d(h)}, 1);
    }
};

struct elementwise {
    constexpr auto operator()(auto, auto x) const {
        const auto p = eval(abs(x) + 0.1);
        auto y = eval(exp(x) + log(p) + sqrt(p) + rsqrt(p) + square(x) + sin(x) + cos(x) + tan(x) + tanh(x));
        y = eval(y + asin(x) + acos(x) + atan(x) + sinh(x) + cosh(x) + asinh(x) + acosh(p + 1) + atanh(0.5 * x));
        y = eval(y + sigmoid(x) + softplus(x) + softsign(x) + erf(x) + erfc(x) + gelu(x) + swish(x) + mish(x) + elu(x) +
                 hard_swish(x));
        y = eval(y + floor(3 * x) + ceil(3 * x) + round(3 * x) + trunc(3 * x) + sign(x) + reciprocal(p) + cbrt(x) +
                 expm1(x) + log1p(p));
        y = eval(y + exp2(x) + log2(p) + log10(p) + pow(p, 1.5) + maximum(x, 0.1) + minimum(x, 0.2) +
                 clip(x, -0.5, 0.5));
        y = eval(y + remainder(3 * x, 0.7) + floor_divide(3 * x, 0.7) + hypot(x, p) + where(x > 0.2, x, p) +
                 where(x <= -0.2, p, x));
        y = eval(y + tg::cast<float>(tg::logical_and(x > 0, x != 0.5)) + squared_difference(x, p));
        return eval(y + tg::full_like(x, 0.25));
    }
};

struct movement {
    constexpr auto operator()(auto, auto x) const { // [batch, time, 6]
        const auto turned = tg::transpose(x, {0, 2, 1});
        const auto steps = tg::reverse(x, 1);
        auto h = tg::concat({x, steps, tg::transpose(turned, {0, 2, 1})}, -1); // 18
        h = tg::pad(h, {{0, 0}, {1, 2}, {0, 1}});                              // time + 3, 19
        h = tg::slice(h, {tg::all, {1}, {0, 18, 2}});
        const auto s = tg::cumulative_sum(h, 1);
        const auto m = tg::mean(h, {1}), v = tg::max(h, 1), w = tg::sum(h, {1}), u = tg::min(h, 1);
        const auto n = tg::log_softmax(s, 1);
        return tg::concat({m, v, w, u, tg::sum(n, {1})}, 1);
    }
};

/// Values added where indices point, and means of spread windows.
struct scattered {
    constexpr auto operator()(auto, auto x) const { // [batch, 12, 6]
        const auto rows =
            tg::cast<std::int32_t>(abs(tg::slice(x, {{0, 1}, tg::all, {0, 1}})) * 4); // [1, 12, 1], 0 to 3
        const auto at = eval(tg::reshape(rows, {3, 4}));
        const auto s = tg::transpose(tg::reshape(tg::slice(x, {{0, 1}}), {3, 4, 6}), {2, 0, 1}); // [6, 3, 4]
        const auto a = tg::scatter_add(s, at, {6, 5}, 1);                                        // [6, 5]
        const auto b =
            tg::scatter_add(tg::reshape(tg::slice(x, {{0, 1}}), {12, 6}), tg::reshape(rows, {12}), {4, 6}, 0);
        const auto c =
            tg::scatter_nd(tg::reshape(tg::slice(x, {{0, 1}}), {6, 12}), tg::reshape(rows, {6, 2}), {5, 4, 12});
        const auto d = tg::put_along(tg::reshape(tg::slice(x, {{0, 1}, tg::all, {0, 1}}), {3, 4}), at, {3, 5}, 1);
        const auto e = tg::average_pooling1d(x, {.pool_size = 3, .dilation = 2});
        const auto f =
            tg::average_pooling1d(x, {.pool_size = 3, .stride = 2, .padding = tg::padding::same(), .dilation = 2});
        const auto nodes = tg::reshape(tg::slice(x, {{0, 1}}), {12, 6});
        const auto ends = tg::reshape(rows, {12}), starts = tg::reverse(ends);
        const auto g = tg::gather_scatter_add(nodes, starts, ends, {4, 6});
        const auto h = tg::gather_scatter_add(tg::transpose(nodes), at, at, tg::exp(tg::cast<float>(at)), {6, 5}, 1);
        const auto sums =
            tg::sum(a * a) + tg::sum(b * b) + tg::sum(c * c) + tg::sum(d * d) + tg::sum(g * g) + tg::sum(h * h);
        return tg::concat({eval(tg::flatten(e) + sums), tg::flatten(f)}, 1);
    }
};

} // namespace

int main(int count, char** arguments) {
    folder = arguments[1];
    if (count > 2) opset = std::atoll(arguments[2]);
    int8_weights = count > 3;
    using series30 = tg::spec<float, tg::dyn, tg::dim<"time">, 30>;
    using words = tg::spec<std::int32_t, tg::dyn, tg::dim<"time">>;
    model<tg::spec<float, tg::dyn, 50, 50, 3>>("cats_and_dogs", models::cats_and_dogs{},
                                               {{1, 50, 50, 3}, {3, 50, 50, 3}}, 2, 2);
    model<series30>("conv1d_small", models::conv1d_small{}, {{1, 140, 30}, {3, 97, 30}}, 2, 2);
    model<series30>("conv1d_medium", models::conv1d_medium{}, {{1, 150, 30}, {3, 131, 30}}, 2, 2);
    model<tg::spec<float, tg::dyn, 40, 16>>("recurrent_small", models::recurrent_small{}, {{1, 40, 16}, {3, 40, 16}}, 2,
                                            2);
    model<tg::spec<float, tg::dyn, 40, 16>>("recurrent_medium", models::recurrent_medium<12>{},
                                            {{1, 40, 16}, {3, 40, 16}}, 2, 2);
    model<words>("character_model", models::character_model<31>{}, {{1, 12}, {3, 7}}, 31, 2);
    model<words>("text_classifier", models::text_classifier<50>{}, {{1, 12}, {3, 7}}, 50, 2);
    model<series30>("conv1d_large", models::conv1d_large{}, {{1, 2600, 30}, {2, 2401, 30}}, 2, 2);
    model<words>("transformer", transformer{}, {{1, 6}, {3, 9}}, 11);
    model<tg::spec<float, tg::dyn, tg::dim<"time">, 4>>("recurrent_kinds", recurrent_kinds{}, {{1, 6, 4}, {3, 9, 4}},
                                                        2);
    model<words>("masked", masked{}, {{1, 6}, {4, 9}}, 9);
    model<tg::spec<float, tg::dyn, 17, 15, 3>>("images", images{}, {{1, 17, 15, 3}, {3, 17, 15, 3}});
    model<tg::spec<float, tg::dyn, 7>>("elementwise", elementwise{}, {{1, 7}, {3, 7}});
    model<tg::spec<float, tg::dyn, tg::dim<"time">, 6>>("movement", movement{}, {{1, 6, 6}, {3, 9, 6}}, 2);
    model<tg::spec<float, tg::dyn, 12, 6>>("scattered", scattered{}, {{1, 12, 6}, {3, 12, 6}});
}
