#define TG_SIMT
#define TG_CUDA
#include <simt/instructions.hpp>

#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace epilogue_modes_test {

/// Programs whose products and convolutions end with bias, relu and pooling, on the imitated
/// device: one kernel each, captured, with the bits of eager mode there, which launches them one by
/// one.

namespace tg = tapegraph;
using tg::cuda::driver::imitation;

namespace {

const bool guarded = imitation::instance().guarded = true;

template <class T>
tg::tensor<T> drawn(const tg::shape& dims, std::uint32_t seed) {
    auto t = tg::tensor<T>::uninitialized(dims);
    for (std::int64_t i = 0; i < t.size(); ++i) {
        seed = seed * 1664525u + 1013904223u;
        t.mutable_data()[i] = static_cast<T>(static_cast<float>(static_cast<int>(seed >> 20) - 2048) / 1500);
    }
    return t;
}

constexpr auto network = [](auto x, auto k, auto c, auto w, auto b) { // [n, 7, 8, 5], [3, 3, 5, 6], [6], [36, 4], [4]
    const auto h = tg::eval(max_pooling2d(relu(tg::conv2d(x, k) + c)));
    const auto y = tg::eval(relu(tg::matmul(tg::flatten(h), w) + b));
    return std::tuple{h, y, tg::eval(tg::matmul(y, slice(w, {{0, 4}, {}})) + b)};
};
constexpr auto layer = [](auto x, auto k, auto c) { return tg::eval(relu(tg::conv2d(x, k) + c)); };

template <class T>
bool same_bits(const tg::tensor<T>& a, const tg::tensor<T>& b) {
    const std::vector<T> x = a.to_vector(), y = b.to_vector();
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}

} // namespace

TEST_CASE("epilogues on a device: the bits of eager mode") {
    const tg::device_scope on(tg::device::cuda(0));
    auto graph = tg::function<tg::graph>(network, tg::spec<float, tg::dyn, 7, 8, 5>{}, tg::spec<float, 3, 3, 5, 6>{},
                                         tg::spec<float, 6>{}, tg::spec<float, 36, 4>{}, tg::spec<float, 4>{});
    for (std::int64_t n : {2, 1, 9}) {
        CAPTURE(n);
        const auto x = drawn<float>({n, 7, 8, 5}, 1), k = drawn<float>({3, 3, 5, 6}, 2), c = drawn<float>({6}, 3),
                   w = drawn<float>({36, 4}, 4), b = drawn<float>({4}, 5);
        const auto [h, y, z] = network(x, k, c, w, b);
        for (int run = 0; run < 3; ++run) { // the second is captured, the third replayed
            const auto [gh, gy, gz] = graph(x, k, c, w, b);
            CHECK(same_bits<float>(gh, h));
            CHECK(same_bits<float>(gy, y));
            CHECK(same_bits<float>(gz, z));
        }
    }
    int fused = 0;
    for (int s = 0; s < graph.view().steps.size(); ++s) {
        const auto* const op = graph.view().nodes[graph.view().steps[s].node].op;
        fused += op == &tg::ir::descriptor_of<tg::convolution_bias_pool_op<true>> ||
                 op == &tg::ir::descriptor_of<tg::matmul_bias_op<true>> ||
                 op == &tg::ir::descriptor_of<tg::matmul_bias_op<false>>;
    }
    CHECK(fused == 3);
}

TEST_CASE("epilogues on a device: a convolution of 16-bit elements runs there") {
    using T = tg::bfloat16;
    const auto x = drawn<T>({3, 7, 8, 5}, 1), k = drawn<T>({3, 3, 5, 6}, 2), c = drawn<T>({6}, 3);
    const tg::device_scope on(tg::device::cuda(0));
    auto graph =
        tg::function<tg::graph>(layer, tg::spec<T, tg::dyn, 7, 8, 5>{}, tg::spec<T, 3, 3, 5, 6>{}, tg::spec<T, 6>{});
    const tg::tensor<T> y = layer(x, k, c);
    for (int run = 0; run < 3; ++run) CHECK(same_bits<T>(graph(x, k, c), y));
    for (int s = 0; s < graph.view().steps.size(); ++s)
        CHECK((graph.view().functions[graph.view().steps[s].kernel].on_device.run != nullptr));
}

} // namespace epilogue_modes_test
