#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cluster/server.hpp>
#include <tapegraph/cluster/sharded.hpp>

#include <nn/models.hpp>
#include <support/captured_stderr.hpp>

#include <stdexcept>
#include <string>

/// What a model over several tasks refuses, and says.

namespace tasks_refusals_test {

using namespace nn_test;
namespace td = tg::distributed;

namespace {
/// small_mlp, whose hidden layer is on a task.
template <int Which>
struct on_task {
    static constexpr const char* name = Which == 0   ? "/job:worker/task:1"
                                        : Which == 1 ? "/job:worker/task:2"
                                        : Which == 2 ? "/job:gone"
                                                     : "/job:evaluator";
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "out", tanh(hidden(scope, x)), {.units = 3});
    }
    constexpr auto hidden(auto scope, auto x) const {
        const auto on = scope.with_device(name);
        return tg::dense(scope / "hidden", x, {.units = 4});
    }
};
template <int Which>
auto made_on(tg::task_group* with, std::uint64_t seed = 0) {
    return tg::compile<tg::graph>(on_task<Which>{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, tg::adam{},
                                  {.seed = seed, .tasks = with});
}
const tg::cluster_spec two{{"worker", {"one", "two"}}, {"evaluator", {"three"}}};

/// What f(server) throws on both workers.
template <class F>
std::string refusal(const F& f) {
    std::string text;
    td::run_ranks(two.size(), [&](td::exchange& ranks) {
        tg::server server(ranks, two);
        std::string own;
        try {
            if (server.tasks() != nullptr) f(server);
        } catch (const tg::error& e) {
            own = e.what();
        }
        if (ranks.rank() == 0) text = own;
        td::barrier(ranks);
        if (server.tasks() != nullptr) CHECK(own == text);
    });
    return text;
}
template <int Which>
std::string refusal_of_name() {
    return refusal([](tg::server& server) {
        auto model = made_on<Which>(server.tasks());
        model.train_on_batch(noise<float>({3, 6}, 1), classes(3, 3, 2));
    });
}
} // namespace

TEST_CASE("what tasks do not agree on, and names that are none of theirs, are errors on every task") {
    const thread_limit one(1);
    CHECK(refusal_of_name<0>() == "");
    CHECK(refusal_of_name<1>() == "cluster_spec: no /job:worker/task:2; job 'worker' has 2 tasks");
    CHECK(refusal_of_name<2>() == "cluster_spec: no job 'gone'; there are: worker, evaluator");
    CHECK(refusal_of_name<3>() == "tasks: /job:evaluator/task:0 computes no part of a model");
    CHECK_NOTHROW(
        made_on<2>(nullptr).train_on_batch(noise<float>({3, 6}, 1), classes(3, 3, 2))); // without `.tasks` all is here

    const auto differing = [&](std::uint64_t batch, std::uint64_t seed) {
        return refusal([&](tg::server& server) {
            const bool other = server.task().task == 1;
            auto model = made_on<0>(server.tasks(), other ? seed : 0);
            model.train_on_batch(noise<float>({3, 6}, other ? batch : 0), classes(3, 3, 2));
        });
    };
    CHECK(differing(0, 0) == "");
    CHECK(differing(1, 0).starts_with("ranks do not agree: rank 1 has inputs "));
    CHECK(differing(0, 1).starts_with("ranks do not agree: rank 1 has seed "));
    CHECK(refusal([](tg::server& server) {
              static_cast<void>(tg::compile<tg::graph>(small_mlp{}, mlp_spec<float>{},
                                                       tg::sparse_softmax_cross_entropy{}, tg::adam{},
                                                       tg::sharded{.shards = 2, .options = {.tasks = server.tasks()}}));
          }) == "shards: a step is cut by records; `.tasks`, which compute parts of a model, cannot cut it, too");
    CHECK(refusal([](tg::server& server) { // every task sees all of a batch
              tg::data::dataset set;
              set.add("x", noise<float>({8, 6}, 1).to_vector(), {6}).add("label", classes(8, 3, 2).to_vector());
              auto model = made_on<0>(server.tasks());
              model.fit(set.shard(0, 2), {.epochs = 1, .batch_size = 4, .verbose = 0});
          })
              .find("this model is rank 0 of 1") != std::string::npos);
}

TEST_CASE("a task that fails ends the others, and the placement log names what comes from another task") {
    const thread_limit one(1);
    std::string text;
    CHECK_THROWS_AS(td::run_ranks(two.size(),
                                  [&](td::exchange& ranks) {
                                      tg::server server(ranks, two);
                                      if (server.tasks() == nullptr) return;
                                      auto model = made_on<0>(server.tasks());
                                      try {
                                          for (int step = 0; step < 3; ++step) {
                                              if (server.task().task == 1 && step == 1)
                                                  throw std::runtime_error("gone");
                                              model.train_on_batch(noise<float>({3, 6}, 1), classes(3, 3, 2));
                                          }
                                      } catch (const tg::exchange_error& e) {
                                          text = e.what();
                                          throw;
                                      }
                                  }),
                    std::runtime_error);
    CHECK(text != "");
    tg::log_placement(true);
    const std::string log = test::captured_stderr([&] { CHECK(refusal_of_name<0>() == ""); });
    tg::log_placement(false);
    CHECK(log.find("tapegraph: copy f32[3, 4] from /job:worker/task:1\n") != log.npos);
}

} // namespace tasks_refusals_test
