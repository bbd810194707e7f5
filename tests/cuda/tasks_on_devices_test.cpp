#include <cuda/whole_programs.hpp>

#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cluster/server.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/metrics/accuracy.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace tasks_on_devices_test {

/// Parts of a model on GPUs of several tasks, which are threads here: the bits are those of one
/// process with the same GPUs.

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "score", middle(scope, first(scope, x)), {.units = 3});
    }
    constexpr auto first(auto scope, auto x) const {
        const auto on = scope.with_device("/job:worker/task:1/gpu:1");
        return tg::flatten(tg::embedding(scope / "words", x, {.input_dim = 11, .output_dim = 4, .sparse = true}));
    }
    constexpr auto middle(auto scope, auto h) const {
        const auto on = scope.with_device("/job:worker/task:0/gpu:0");
        return tg::dropout(scope / "drop", tg::batch_normalization(scope / "norm", h), {.rate = 0.2});
    }
};

tg::data::dataset texts() {
    std::vector<std::int32_t> words, labels;
    for (int i = 0; i < 35 * 5; ++i) words.push_back(i * 31 % 11);
    for (int i = 0; i < 35; ++i) labels.push_back(i * 17 % 3);
    tg::data::dataset set;
    set.add("words", words, {5}).add("label", labels);
    return set;
}
std::string trained(tg::task_group* tasks) {
    auto model = tg::compile<tg::graph>(network{}, tg::spec<std::int32_t, tg::dyn, 5>{},
                                        tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.01},
                                        tg::metrics{tg::sparse_categorical_accuracy{}}, {.seed = 4, .tasks = tasks});
    const tg::history h = model.fit(texts(), {.epochs = 3, .batch_size = 16, .verbose = 0});
    std::string bits;
    const auto put = [&](const void* data, std::size_t bytes) { bits.append(static_cast<const char*>(data), bytes); };
    for (const tg::epoch_result& e : h.epochs) {
        put(&e.loss, sizeof e.loss);
        put(&e.metrics[0].value, sizeof(double));
    }
    const auto scores = model.predict(tg::from_range<std::int32_t>(std::vector<std::int32_t>{1, 2, 3, 4, 5}, {1, 5}));
    put(scores.data(), scores.view().bytes());
    model.gather_variables();
    for (const tg::variable& v : model.variables()) put(v.data().read(), v.data().outline_view().bytes());
    return bits;
}

} // namespace

TEST_CASE("parts of a model on GPUs of several tasks") {
#ifdef TG_SIMT
    auto& machine = tg::cuda::driver::imitation::instance();
    const struct two_devices {
        int& number;
        ~two_devices() { number = 1; }
    } two{machine.devices = 2};
    const int before = machine.launches;
#endif
    const std::string expected = trained(nullptr); // "/job:worker/task:1/gpu:1" is this process's second GPU then
    const tg::cluster_spec cluster{{"worker", {"one", "two"}}};
    std::vector<std::string> found(2);
    td::run_ranks(2, [&](td::exchange& ranks) {
        tg::server server(ranks, cluster);
        found[static_cast<std::size_t>(ranks.rank())] = trained(server.tasks());
    });
    for (const std::string& each : found) CHECK(each == expected);
#ifdef TG_SIMT
    CHECK(machine.launches > before + 100); // the devices did the computation
#endif
}

} // namespace tasks_on_devices_test
