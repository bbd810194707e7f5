#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/ops/attention/attention.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

/// Kernels have the same bits on AVX2 and on AVX-512, whose vectors are twice as wide: values and gradients of operations at
/// shapes that neither fills. (Narrower vectors: tests/machines; the order of single sums: tests/cpu/order_of_sums_test.cpp.)

namespace widths_test {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;

namespace {

struct result {
    std::string name;
    std::vector<unsigned char> bytes;
};

template <class T>
class sweep {
public:
    std::vector<result> results;

    tg::tensor<T> normal(std::initializer_list<std::int64_t> extents, std::uint64_t seed) const {
        return tg::random::normal<T>(tg::shape(extents), {.seed = seed});
    }

    /// Keeps the bytes of f(x, w) and of its gradients under random adjoints.
    template <class F>
    void add(const std::string& name, const F& f, tg::tensor<T> x, tg::tensor<T> w) {
        tg::gradient_tape tape;
        tape.watch(x);
        tape.watch(w);
        const auto y = tg::eval(f(x, w));
        const auto adjoint = tg::random::normal<T>(y.shape(), {.seed = 9});
        const auto loss = tg::eval(sum(y * adjoint));
        const auto [dx, dw] = tape.gradient(loss, x, w);
        for (const tg::tensor<T>& each : {tg::tensor<T>(y), dx, dw}) {
            result one{name, std::vector<unsigned char>(static_cast<std::size_t>(each.size()) * sizeof(T))};
            std::memcpy(one.bytes.data(), each.data(), one.bytes.size());
            results.push_back(std::move(one));
        }
    }

    void matrices(std::int64_t a, std::int64_t b) {
        const std::string at = " at " + std::to_string(a) + ", " + std::to_string(b);
        const auto x = normal({a, b}, 1), w = normal({a, b}, 2);
        add(
            "matmul" + at, [](auto x, auto w) { return matmul(x, w); }, x, normal({b, 37}, 3));
        add(
            "sum along 0" + at, [](auto x, auto w) { return sum(x * w, 0); }, x, w);
        add(
            "sum along 1" + at, [](auto x, auto w) { return sum(x * w, 1); }, x, w);
        add(
            "mean" + at, [](auto x, auto w) { return mean(x * w + x); }, x, w);
        add(
            "variance" + at, [](auto x, auto w) { return max(x * w, 1) + variance(x, 1); }, x, w);
        add(
            "softmax" + at, [](auto x, auto w) { return softmax(x * w) + log_softmax(x + w); }, x, w);
        add(
            "logsumexp" + at, [](auto x, auto w) { return logsumexp(x * w, 1); }, x, w);
        add(
            "norm" + at, [](auto x, auto w) { return norm(x - w); }, x, w);
        add(
            "cumulative_sum" + at, [](auto x, auto w) { return tg::cumulative_sum(x * w, 1); }, x, w);
        add(
            "elementwise" + at,
            [](auto x, auto w) { return tanh(x) * exp(w) + x * w - sigmoid(x) / (w * w + 1) + tg::gelu(x); }, x, w);
        add(
            "bias" + at, [](auto x, auto w) { return relu(x + w) * w; }, x, normal({b}, 4));
    }

    void convolutions(std::int64_t in, std::int64_t out) {
        const std::string at = " of " + std::to_string(in) + " to " + std::to_string(out) + " channels";
        const auto x = normal({2, 11, 13, in}, 1), w = normal({3, 3, in, out}, 2);
        const auto same = tg::padding::same();
        add(
            "conv2d" + at, [=](auto x, auto w) { return tg::conv2d(x, w, {.padding = same}); }, x, w);
        add(
            "strided" + at,
            [=](auto x, auto w) {
                return tg::conv2d(x, w, {.stride = {2, 2}, .padding = same});
            },
            x, w);
        add(
            "dilated" + at,
            [=](auto x, auto w) {
                return tg::conv2d(x, w, {.padding = same, .dilation = {2, 2}});
            },
            x, w);
        add(
            "conv1d" + at, [=](auto x, auto w) { return tg::conv1d(x, w, {.padding = same}); }, normal({2, 65, in}, 1),
            normal({5, in, out}, 2));
        add(
            "depthwise" + at, [=](auto x, auto w) { return tg::depthwise_conv2d(x, w, {.padding = same}); }, x,
            normal({3, 3, in, 1}, 2));
    }

    void all() {
        for (const std::int64_t a : {1, 3, 16, 33, 257})
            for (const std::int64_t b : {1, 5, 31, 64, 129}) matrices(a, b);
        for (const std::int64_t in : {1, 3, 5, 8, 9, 17, 32})
            for (const std::int64_t out : {1, 4, 16, 33}) convolutions(in, out);
        for (const std::int64_t units : {1, 5, 8, 20})
            add(
                "lstm of " + std::to_string(units),
                [&](auto x, auto w) {
                    return tg::lstm(x, w, normal({units, 4 * units}, 5), tg::no_bias, {.return_sequences = true});
                },
                normal({5, 7, 6}, 1), normal({6, 4 * units}, 2));
        for (const std::int64_t depth : {1, 8, 24, 40})
            add(
                "attention of " + std::to_string(depth), [](auto x, auto w) { return tg::attention(x, w, w); },
                normal({2, 3, 50, depth}, 1), normal({2, 3, 50, depth}, 2));
    }
};

} // namespace

TEST_CASE_TEMPLATE("operations and their gradients have the same bits on AVX2 and on AVX-512", T, float, double) {
    if (cpu::supported_instruction_set() != cpu::instruction_set::avx512) {
        MESSAGE("this processor has no AVX-512");
        return;
    }
    sweep<T> narrow, wide;
    cpu::set_instruction_set(cpu::instruction_set::avx2);
    narrow.all();
    cpu::set_instruction_set(cpu::instruction_set::avx512);
    wide.all();
    REQUIRE(narrow.results.size() == wide.results.size());
    for (std::size_t i = 0; i < wide.results.size(); ++i) {
        INFO(wide.results[i].name);
        CHECK(narrow.results[i].bytes == wide.results[i].bytes);
    }
}

} // namespace widths_test
