#include <cuda/whole_programs.hpp>

#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cluster/sharded.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace zero_redundancy_on_devices_test {

/// Ranks that share an optimizer's state among them, each with its own device: the bits are those
/// of one device that has all of it.

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::batch_normalization(scope / "norm", tg::dense(scope / "hidden", x, {.units = 37}));
        return tg::dense(scope / "out", tanh(h), {.units = 3});
    }
};

template <class Optimizer>
std::string trained(const Optimizer& optimizer, td::exchange* ranks, int device) {
    auto model = tg::compile<tg::graph>(
        network{}, tg::spec<float, tg::dyn, 5>{}, tg::sparse_softmax_cross_entropy{}, optimizer,
        tg::sharded{.shards = 4, .options = {.seed = 4, .device = tg::device::cuda(device)}, .ranks = ranks});
    std::vector<float> inputs;
    std::vector<std::int32_t> labels;
    for (int i = 0; i < 35 * 5; ++i) inputs.push_back(static_cast<float>(i * 31 % 11) / 11 - 0.5f);
    for (int i = 0; i < 35; ++i) labels.push_back(i * 17 % 3);
    tg::data::dataset set;
    set.add("x", inputs, {5}).add("label", labels);
    for (int turn = 0; turn < 2; ++turn) { // whole in between
        model.fit(set, {.epochs = 2, .batch_size = 16, .verbose = 0});
        model.gather_optimizer_state();
        model.variables().set_trainable("hidden/bias", turn == 1);
    }
    std::string bits;
    for (const tg::variable& v : model.variables())
        bits.append(static_cast<const char*>(v.data().read()), v.data().outline_view().bytes());
    return bits;
}

} // namespace

TEST_CASE("slices of an optimizer's state on several devices") {
#ifdef TG_SIMT
    tg::cuda::driver::imitation::instance().devices = 4;
#endif
    int devices = -1; // without the CPU
    for (const auto& each : tg::list_devices()) devices += each.id.name().empty() ? 0 : 1;
    if (devices < 1) return;
    const tg::adam optimizer{.learning_rate = 0.01};
    const std::string expected = trained(optimizer, nullptr, 0);
    for (const int size : {1, 2, 4})
        td::run_ranks(size, [&](td::exchange& ranks) {
            CHECK(trained(tg::zero_redundancy{optimizer}, &ranks, ranks.rank() % devices) == expected);
        });
}

} // namespace zero_redundancy_on_devices_test
