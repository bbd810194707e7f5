#include <tapegraph/cluster/parameter_servers.hpp>
#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cluster/sharded.hpp>

#include <cluster/error_on_ranks.hpp>
#include <nn/models.hpp>

#include <string>

/// Tasks of a cluster in scope.with_device.

namespace job_names_test {

using namespace nn_test;
using distributed_test::error_on_ranks;
using tg::detail::place_name;
namespace td = tg::distributed;

namespace {

enum class where { nowhere, servers, gone, far, worker };

/// small_mlp, its layers in blocks of with_device.
template <where At>
struct placed_mlp {
    static constexpr const char* outer = At == where::gone     ? "/job:gone/task:0"
                                         : At == where::far    ? "/job:ps/task:7"
                                         : At == where::worker ? "/job:worker/task:0"
                                                               : "/job:ps/task:1/cpu:3";
    constexpr auto operator()(auto scope, auto x) const {
        if constexpr (At == where::nowhere) {
            return small_mlp{}(scope, x);
        } else {
            auto h = hidden(scope, x);
            const auto on = scope.with_device("/job:ps/replica:0/task:0/device:GPU:0");
            return tg::dense(scope / "out", tg::dropout(scope / "drop", tanh(h), {.rate = 0.3}), {.units = 3});
        }
    }
    constexpr auto hidden(auto scope, auto x) const {
        const auto on = scope.with_device(outer);
        return tg::dense(scope / "hidden", x, {.units = 9});
    }
};

const tg::adam optimizer{.learning_rate = 0.01};
template <where At, class Mode = tg::graph>
auto made(td::exchange* workers) {
    return tg::compile<Mode>(placed_mlp<At>{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, optimizer,
                             tg::sharded{.shards = 4, .options = {.seed = 4}, .ranks = workers});
}
tg::tensor<float> points(std::int64_t step) { return noise<float>({24, 6}, static_cast<std::uint64_t>(step)); }
tg::tensor<std::int32_t> labels(std::int64_t step) { return classes(24, 3, static_cast<std::uint64_t>(step) + 100); }
const tg::cluster_spec cluster{{"ps", {"one", "one"}}, {"worker", {"two", "two"}}};

} // namespace

TEST_CASE("names of tasks, with and without a device") {
    const auto read = [](std::string_view name) {
        const place_name p = place_name::read(name);
        return p.valid ? std::string(p.task) + " " + std::to_string(p.place) : std::string("none");
    };
    using tg::detail::place;
    CHECK(read("/job:ps/task:0") == "/job:ps/task:0 -1");
    CHECK(read("/job:ps/replica:0/task:12/device:GPU:0") == "/job:ps/replica:0/task:12 -1"); // a device of the server
    CHECK(read("/job:worker/task:1/gpu:2") == "/job:worker/task:1 " + std::to_string(place::first_gpu + 2));
    CHECK(read("/job:chief") == "/job:chief -1");
    CHECK(read("/cpu:1") == " " + std::to_string(place::first_cpu + 1));
    for (const char* bad : {"", "/", "/task:0", "/job:", "/job:ps/task:", "/job:ps/task:x", "/job:ps/task:0/tpu:0",
                            "/job:ps/task:0/", "/job:ps/task:0/cpu:64", "job:ps", "/replica:0/cpu:0"})
        CHECK_MESSAGE(read(bad) == "none", bad);
}

TEST_CASE("variables lie on the servers that with_device names, in both modes; the bits are those of one process") {
    const thread_limit one(1);
    const auto served = [&](auto mode) {
        using m = decltype(mode);
        auto alone = made<where::nowhere, m>(nullptr);
        for (std::int64_t s = 0; s < 5; ++s) alone.train_on_batch(points(s), labels(s));
        td::run_ranks(4, [&](td::exchange& ranks) {
            tg::server server(ranks, cluster);
            auto model = made<where::servers, m>(server.workers());
            tg::parameter_servers of(server, model, optimizer);
            CHECK(of.text() == "hidden/kernel=1;hidden/bias=1;out/kernel=0;out/bias=0;");
            if (server.task().job == "ps") return server.join();
            for (std::int64_t s = 0; s < 5; ++s) of.train_on_batch(points(s), labels(s));
            of.finish();
            for (const tg::variable& v : model.variables())
                if (v.trainable())
                    CHECK(v.value<float>().to_vector() ==
                          alone.variables()[v.path()].template value<float>().to_vector());
        });
        // Without servers everything is here.
        auto local = made<where::servers, m>(nullptr);
        for (std::int64_t s = 0; s < 5; ++s) local.train_on_batch(points(s), labels(s));
        CHECK(first_difference(local, alone) == "");
        CHECK(local.variables()["hidden/bias"].task() == "/job:ps/task:1");
        CHECK(local.variables()["out/kernel"].task() == "/job:ps/replica:0/task:0");
    };
    served(tg::graph{});
    served(tg::eager{});
}

TEST_CASE("a job or a task that the cluster does not have is refused by name, and `placed` comes first") {
    const thread_limit one(1);
    const auto refusal = [](auto model_of, const tg::parameter_options& options = {}) {
        return error_on_ranks(4, [&](td::exchange& ranks) {
            tg::server server(ranks, cluster);
            auto model = model_of(server.workers());
            tg::parameter_servers of(server, model, optimizer, options);
            if (server.task().job == "ps") return server.join();
            of.finish();
        });
    };
    const auto gone = [](auto* w) { return made<where::gone>(w); };
    CHECK(refusal(gone) == "parameter_servers: 'hidden/kernel' is placed on /job:gone/task:0; cluster_spec: no job "
                           "'gone'; there are: ps, worker");
    CHECK(refusal([](auto* w) { return made<where::far>(w); }) ==
          "parameter_servers: 'hidden/kernel' is placed on /job:ps/task:7; cluster_spec: no /job:ps/task:7; job 'ps' "
          "has 2 tasks");
    CHECK(refusal([](auto* w) { return made<where::worker>(w); }) ==
          "parameter_servers: 'hidden/kernel' is placed on /job:worker/task:0; tasks of job 'ps' hold variables");
    CHECK(refusal(gone, {.placed = {{"hidden", "/job:ps/task:0"}}}) == "");
}

} // namespace job_names_test
