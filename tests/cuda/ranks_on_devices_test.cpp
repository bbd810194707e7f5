#include <cuda/whole_programs.hpp>

#include <tapegraph/distributed/thread_exchange.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/synchronized_normalization.hpp>
#include <tapegraph/nn/metrics/accuracy.hpp>
#include <tapegraph/nn/sharded.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace ranks_on_devices_test {

/// Threads as ranks, each with a device of its own: as many as there are, the bits are those of one.

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

namespace {

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
// Batches of 16, 16 and 3: in the last one some shards, and with them ranks, have no records.
tg::data::dataset texts() {
    std::vector<std::int32_t> words, labels;
    for (int i = 0; i < 35 * 5; ++i) words.push_back(i * 31 % 11);
    for (int i = 0; i < 35; ++i) labels.push_back(i * 17 % 3);
    tg::data::dataset set;
    set.add("words", words, {5}).add("label", labels);
    return set;
}
template <class Mode, bool Together>
std::string trained(td::exchange* ranks, int device) {
    auto model = tg::compile<Mode>(
        words_and_norm<Together>{}, tg::spec<std::int32_t, tg::dyn, 5>{}, tg::sparse_softmax_cross_entropy{},
        tg::adam{.learning_rate = 0.01}, tg::metrics{tg::sparse_categorical_accuracy{}},
        tg::sharded{.shards = 4, .options = {.seed = 4, .device = tg::device::cuda(device)}, .ranks = ranks});
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
    const auto gradients = model.gradients(x, y); // of a batch whose tensors lie on the device
    put(&gradients.loss, sizeof gradients.loss);
    for (const tg::named_gradient& g : gradients) put(g.value.read(), g.value.outline_view().bytes());
    for (const tg::variable& v : model.variables()) put(v.data().read(), v.data().outline_view().bytes());
    return bits;
}

} // namespace

TEST_CASE_TEMPLATE("several devices in one process: the bits of one device, in both modes", Together, std::false_type,
                   std::true_type) { // shards that wait for each other
#ifdef TG_SIMT
    auto& machine = tg::cuda::driver::imitation::instance();
    const struct four_devices {
        int& number;
        ~four_devices() { number = 1; }
    } four{machine.devices = 4};
#endif
    int devices = -1; // without the CPU
    for (const auto& each : tg::list_devices()) devices += each.id.name().empty() ? 0 : 1;
    if (devices < 1) return;
    const auto compare = [&](auto mode) {
        using m = decltype(mode);
        const std::string expected = trained<m, Together::value>(nullptr, 0);
        for (const int size : {1, 2, 4}) {
            CAPTURE(size);
            std::vector<std::string> found(static_cast<std::size_t>(size));
            td::run_ranks(size, [&](td::exchange& ranks) {
                found[static_cast<std::size_t>(ranks.rank())] =
                    trained<m, Together::value>(&ranks, ranks.rank() % devices);
            });
            for (const std::string& each : found) CHECK(each == expected);
        }
        // Ranks may share a device.
        if (devices < 2) return expected;
        std::vector<std::string> shared(2);
        td::run_ranks(2, [&](td::exchange& ranks) {
            shared[static_cast<std::size_t>(ranks.rank())] = trained<m, Together::value>(&ranks, 1);
        });
        CHECK(shared[0] == expected);
        CHECK(shared[1] == expected);
        return expected;
    };
#ifdef TG_SIMT
    const int before = machine.launches;
#endif
    const std::string in_graph = compare(tg::graph{}), in_eager = compare(tg::eager{});
    CHECK(in_graph == in_eager);
#ifdef TG_SIMT
    CHECK(machine.launches > before + 1000); // it was the devices that computed
#endif
}

} // namespace ranks_on_devices_test
