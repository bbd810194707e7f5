#pragma once

#include <tapegraph/tapegraph.hpp>

#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/synchronized_normalization.hpp>
#include <tapegraph/nn/metrics/accuracy.hpp>

#include <string>
#include <vector>

/// Trains a model whose shards are computed on devices. Include it after the header that selects
/// where kernels run: cuda/whole_programs.hpp, or TG_SIMT.

namespace shards_on_devices {

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

/// Sparse rows, moving averages, random numbers.
template <bool Together>
struct words_and_norm {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::flatten(tg::embedding(scope / "words", x, {.input_dim = 11, .output_dim = 4, .sparse = true}));
        const auto normalized = [&] {
            if constexpr (Together)
                return tg::batch_normalization(scope / "norm", h, {}, tg::synchronized);
            else
                return tg::batch_normalization(scope / "norm", h);
        };
        h = tg::dropout(scope / "drop", normalized(), {.rate = 0.2});
        return tg::dense(scope / "score", h, {.units = 3});
    }
};
/// Batches of 16, 16 and 3: in the last one some shards, and with them ranks, have no records.
inline tg::data::dataset texts() {
    std::vector<std::int32_t> words, labels;
    for (int i = 0; i < 35 * 5; ++i) words.push_back(i * 31 % 11);
    for (int i = 0; i < 35; ++i) labels.push_back(i * 17 % 3);
    tg::data::dataset set;
    set.add("words", words, {5}).add("label", labels);
    return set;
}
/// The bits of everything that training a model in shards gives.
template <class Mode, bool Together>
std::string trained(tg::sharded how, int device = 0) {
    how.options = {.seed = 4, .device = tg::device::cuda(device)};
    auto model = tg::compile<Mode>(words_and_norm<Together>{}, tg::spec<std::int32_t, tg::dyn, 5>{},
                                   tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.01},
                                   tg::metrics{tg::sparse_categorical_accuracy{}}, how);
    const tg::history h = model.fit(texts(), {.epochs = 4, .batch_size = 16, .verbose = 0});
    std::string bits;
    const auto put = [&](const void* data, std::size_t bytes) { bits.append(static_cast<const char*>(data), bytes); };
    for (const tg::epoch_result& e : h.epochs) {
        put(&e.loss, sizeof e.loss);
        put(&e.metrics[0].value, sizeof(double));
    }
    const auto x = tg::from_range<std::int32_t>(
        std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {4, 5});
    const auto y = tg::from_range<std::int32_t>(std::vector<std::int32_t>{0, 1, 2, 0}, {4});
    const auto gradients = model.gradients(x, y); // of a batch whose tensors are on the device
    put(&gradients.loss, sizeof gradients.loss);
    for (const tg::named_gradient& g : gradients) put(g.value.read(), g.value.outline_view().bytes());
    for (const tg::variable& v : model.variables()) put(v.data().read(), v.data().outline_view().bytes());
    return bits;
}

} // namespace shards_on_devices
