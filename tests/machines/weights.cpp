#include <tapegraph/tapegraph.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

/// Trains a CNN for some steps in either mode and prints what its variables and losses are made of: machines.py compares these
/// lines between processors. The pictures are whole numbers, so that no library function makes them.

namespace tg = tapegraph;

struct small_cnn {
    constexpr auto operator()(auto scope, auto image) const {
        auto h = tg::conv2d(scope / "first", image, {.filters = 5, .kernel_size = {3, 3}});
        h = tg::max_pooling2d(tg::batch_normalization(scope / "norm", relu(h)), {.pool_size = {2, 2}});
        h = tg::conv2d(scope / "second", h, {.filters = 21, .kernel_size = {3, 3}});
        h = tg::dropout(scope / "drop", tg::flatten(tanh(h)), {.rate = 0.25});
        return tg::dense(scope / "score", h, {.units = 3});
    }
};

/// FNV-1a of bits in an order that does not depend on that of bytes in memory.
struct bit_hash {
    std::uint64_t value = 0xcbf29ce484222325u;

    template <class Bits>
    void add(Bits bits) {
        for (std::size_t i = 0; i < sizeof bits; ++i)
            value = (value ^ (static_cast<std::uint64_t>(bits) >> 8 * i & 0xFF)) * 0x100000001b3u;
    }
    template <class Bits>
    void add_all(const void* data, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            Bits bits;
            std::memcpy(&bits, static_cast<const char*>(data) + static_cast<std::size_t>(i) * sizeof bits, sizeof bits);
            add(bits);
        }
    }
};

template <class Mode>
void train(const char* mode) {
    auto model = tg::compile<Mode>(small_cnn{}, tg::spec<float, tg::dyn, 12, 11, 2>{},
                                   tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.01}, {.seed = 3});
    bit_hash losses, variables;
    std::uint32_t state = 1;
    for (const int size : {7, 16, 1, 33, 16}) {
        std::vector<float> pictures(static_cast<std::size_t>(size) * 12 * 11 * 2);
        for (float& x : pictures) {
            state = state * 1664525u + 1013904223u;
            x = static_cast<float>(static_cast<int>(state >> 24) - 128) / 64;
        }
        std::vector<std::int32_t> labels;
        for (int i = 0; i < size; ++i) labels.push_back(static_cast<std::int32_t>(i * 7 % 3));
        const double loss = model
                                .train_on_batch(tg::from_range<float>(pictures, {size, 12, 11, 2}),
                                                tg::from_range<std::int32_t>(labels, {size}))
                                .loss;
        losses.add_all<std::uint64_t>(&loss, 1);
        std::printf("%s: loss %.17g\n", mode, loss);
    }
    for (int i = 0; i < model.variables().size(); ++i) {
        const tg::any_tensor& value = model.variables().at(i).data();
        if (tg::size_of(value.type()) == 4)
            variables.add_all<std::uint32_t>(value.read(), value.shape().elements());
        else
            variables.add_all<std::uint64_t>(value.read(), value.shape().elements());
    }
    std::printf("%s: losses %016llx, variables %016llx\n", mode, static_cast<unsigned long long>(losses.value),
                static_cast<unsigned long long>(variables.value));
}

int main() {
    train<tg::graph>("graph");
    train<tg::eager>("eager");
}
