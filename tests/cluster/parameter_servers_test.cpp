#include <tapegraph/cluster/parameter_servers.hpp>
#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/nn/layers/embedding.hpp>

#include <nn/models.hpp>

#include <atomic>
#include <cstring>
#include <string>

/// Parameter servers, synchronous and not, between threads.

namespace parameter_servers_test {

using namespace nn_test;
using std::int64_t;
namespace td = tg::distributed;

namespace {

const tg::adam optimizer{.learning_rate = 0.01};

// With moving averages, which steps assign.
struct network {
    constexpr auto operator()(auto scope, auto x) const {
        auto h =
            tg::batch_normalization(scope / "norm", tg::dense(scope / "hidden", x, {.units = 7}), {.momentum = 0.9});
        return tg::dense(scope / "out", tanh(h), {.units = 3});
    }
};

auto sharded_model(td::exchange* workers, int shards = 8) {
    return tg::compile<tg::graph>(network{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, optimizer,
                                  tg::sharded{.shards = shards, .options = {.seed = 4}, .ranks = workers});
}
auto single_model() {
    return tg::compile<tg::eager>(network{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, optimizer,
                                  tg::compile_options{.seed = 4});
}
tg::tensor<float> points(int64_t step) { return noise<float>({24, 6}, static_cast<std::uint64_t>(step)); }
tg::tensor<std::int32_t> labels(int64_t step) { return classes(24, 3, static_cast<std::uint64_t>(step) + 100); }

tg::cluster_spec cluster(int servers, int workers) {
    return tg::cluster_spec{{"ps", std::vector<std::string>(static_cast<std::size_t>(servers), "one")},
                            {"worker", std::vector<std::string>(static_cast<std::size_t>(workers), "two")}};
}
/// f(exchange) on so many ranks; what the first error says.
template <class F>
std::string refusal(int size, const F& f) {
    try {
        td::run_ranks(size, f);
    } catch (const tg::error& e) {
        return e.what();
    }
    return "";
}

} // namespace

TEST_CASE("synchronous servers: the bits of one process with the same shards, for any number of servers and workers") {
    const thread_limit one(1);
    constexpr int64_t steps = 12;
    auto alone = sharded_model(nullptr);
    std::vector<double> losses;
    for (int64_t s = 0; s < steps; ++s) losses.push_back(alone.train_on_batch(points(s), labels(s)).loss);
    for (const auto& [servers, workers] : {std::pair{1, 1}, {1, 2}, {2, 4}, {3, 2}, {5, 1}}) {
        const auto shown_servers = servers;
        CAPTURE(shown_servers);
        const auto shown_workers = workers;
        CAPTURE(shown_workers);
        td::run_ranks(servers + workers, [&, server_count = servers, worker_count = workers](td::exchange& ranks) {
            tg::server server(ranks, cluster(server_count, worker_count));
            auto model = sharded_model(server.workers());
            tg::parameter_servers of(server, model, optimizer);
            if (server.task().job == "ps") {
                server.join();
            } else {
                for (int64_t s = 0; s < steps; ++s)
                    CHECK(of.train_on_batch(points(s), labels(s)).loss == losses[static_cast<std::size_t>(s)]);
                of.finish();
                CHECK(first_difference(model, alone) == ""); // moving averages and the optimizer's state, too
            }
            CHECK(model.step() == steps);
        });
    }
}

namespace {
/// Words whose rows alone have gradients.
struct of_words {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::embedding(scope / "words", x, {.input_dim = 19, .output_dim = 4, .sparse = true});
        return tg::dense(scope / "out", tg::dropout(scope / "drop", tg::flatten(h), {.rate = 0.2}), {.units = 3});
    }
};
template <class Mode>
auto model_of_words(td::exchange* workers) {
    return tg::compile<Mode>(of_words{}, tg::spec<std::int32_t, tg::dyn, 2>{}, tg::sparse_softmax_cross_entropy{},
                             optimizer, tg::sharded{.shards = 4, .options = {.seed = 4}, .ranks = workers});
}
/// Some twice, none of them all.
tg::tensor<std::int32_t> words(int64_t step) {
    return reshape(classes(12, 19, static_cast<std::uint64_t>(step)), {6, 2});
}
tg::tensor<std::int32_t> kinds(int64_t step) { return classes(6, 3, static_cast<std::uint64_t>(step) + 50); }
} // namespace

TEST_CASE_TEMPLATE("rows of sparse gradients are pushed as rows: the bits of one process, and the others stay", Mode,
                   tg::graph, tg::eager) {
    const thread_limit one(1);
    auto alone = model_of_words<Mode>(nullptr);
    for (int64_t s = 0; s < 6; ++s) alone.train_on_batch(words(s), kinds(s));
    const auto gradients = alone.gradients(words(1), kinds(1));
    const tg::named_gradient& table = gradients.named("words/embeddings");
    REQUIRE(table.by_rows());
    CHECK(!gradients.named("out/kernel").by_rows());
    const tg::tensor<std::int64_t> which(table.indices);
    CHECK(which.size() < 12);
    for (int64_t i = 0; i < which.size(); ++i)
        for (int64_t k = 0; k < 4; ++k)
            CHECK(tg::tensor<float>(table.rows)(i, k) == tg::tensor<float>(table.value)(which(i), k));
    for (const auto& [servers, workers] : {std::pair{1, 1}, {2, 2}}) {
        const auto shown_servers = servers;
        CAPTURE(shown_servers);
        td::run_ranks(servers + workers, [&, server_count = servers, worker_count = workers](td::exchange& ranks) {
            tg::server server(ranks, cluster(server_count, worker_count));
            auto model = model_of_words<Mode>(server.workers());
            tg::parameter_servers of(server, model, optimizer);
            if (server.task().job == "ps") return server.join();
            for (int64_t s = 0; s < 6; ++s) of.train_on_batch(words(s), kinds(s));
            of.finish();
            CHECK(first_difference(model, alone) == "");
        });
    }
}

TEST_CASE("asynchronous servers: every worker's steps count, all end with the same weights, and the loss falls") {
    const thread_limit one(1);
    for (const int64_t staleness : {int64_t{-1}, int64_t{0}, int64_t{2}}) {
        CAPTURE(staleness);
        std::vector<std::string> last(5);
        std::atomic<int64_t> made[3]{};
        std::atomic<int64_t> furthest{0};
        td::run_ranks(5, [&](td::exchange& ranks) {
            tg::server server(ranks, cluster(2, 3));
            auto model = single_model();
            tg::parameter_servers of(server, model, optimizer, {.synchronous = false, .max_staleness = staleness});
            if (server.task().job == "ps") {
                server.join();
                CHECK(model.step() == 40 + 25 + 10);
            } else {
                const int own = server.workers()->rank();
                double first = 0, loss = 0;
                const int64_t steps = own == 0 ? 40 : own == 1 ? 25 : 10;
                for (int64_t s = 0; s < steps; ++s) {
                    of.pull();
                    // Ahead of the slowest worker that is still there. The count may lag behind, never run ahead.
                    int64_t slowest = steps;
                    for (int w = 0; w < 3; ++w)
                        if (made[w] < (w == 0 ? 40 : w == 1 ? 25 : 10)) slowest = std::min(slowest, made[w].load() + 1);
                    if (s - slowest > furthest) furthest = s - slowest;
                    const auto g = model.gradients(points(s % 3), labels(s % 3));
                    (s == 0 ? first : loss) = g.loss;
                    ++made[own];
                    of.push(g);
                }
                of.finish();
                CHECK(loss < first);
            }
            std::string& bytes = last[static_cast<std::size_t>(ranks.rank())];
            for (const tg::variable& v : model.variables())
                if (!v.metric_state() && server.task().job != "ps")
                    bytes.append(static_cast<const char*>(v.data().read()), v.data().outline_view().bytes());
        });
        CHECK(last[2] == last[3]);
        CHECK(last[2] == last[4]);
        if (staleness >= 0) CHECK(furthest <= staleness);
    }
}

namespace {
template <class Model>
void copy_variables(Model& to, const Model& from) {
    for (tg::variable& v : to.variables()) {
        const tg::any_tensor& data = from.variables()[v.path()].data();
        std::memcpy(v.own_data(), data.read(), data.outline_view().bytes());
    }
}
} // namespace

TEST_CASE("synchronous servers begin with the weights, state and step of their models") {
    const thread_limit one(1);
    auto alone = sharded_model(nullptr);
    for (int64_t s = 0; s < 9; ++s) alone.train_on_batch(points(s), labels(s));
    const auto run = [&](int servers, int workers, int64_t first, int64_t last, auto& kept) {
        td::run_ranks(servers + workers, [&](td::exchange& ranks) {
            tg::server server(ranks, cluster(servers, workers));
            auto model = sharded_model(server.workers());
            if (first > 0) {
                copy_variables(model, kept);
                model.set_step(first);
            }
            tg::parameter_servers of(server, model, optimizer);
            if (server.task().job == "ps") return server.join();
            for (int64_t s = first; s < last; ++s) of.train_on_batch(points(s), labels(s));
            of.pull();
            of.pull_state();
            td::barrier(*server.workers(), "compare");
            if (first == 0 && server.workers()->rank() == 0) {
                copy_variables(kept, model);
                kept.set_step(last);
            }
            if (first > 0) CHECK(first_difference(model, alone) == "");
            of.finish();
            if (first > 0) CHECK(first_difference(model, alone) == "");
        });
    };
    auto kept = sharded_model(nullptr);
    run(2, 2, 0, 4, kept);
    CHECK(first_difference(kept, alone) != "");
    run(1, 4, 4, 9, kept);
}

TEST_CASE("asynchronous servers: moving averages take each worker's change") {
    // One step of each of two workers on the same first weights: the changes of both count.
    const thread_limit one(1);
    auto first = single_model(), second = single_model();
    const std::vector<float> begun = first.variables()["norm/moving_mean"].value<float>().to_vector();
    first.train_on_batch(points(0), labels(0));
    second.train_on_batch(points(1), labels(1));
    const auto a = first.variables()["norm/moving_mean"].value<float>().to_vector(),
               b = second.variables()["norm/moving_mean"].value<float>().to_vector();
    td::run_ranks(3, [&](td::exchange& ranks) {
        tg::server server(ranks, cluster(1, 2));
        auto model = single_model();
        tg::parameter_servers of(server, model, optimizer, {.synchronous = false});
        if (server.task().job == "ps") return server.join();
        const int own = server.workers()->rank();
        of.pull();
        td::barrier(*server.workers(), "both have pulled");
        of.push(model.gradients(points(own), labels(own)));
        of.finish();
        const auto found = model.variables()["norm/moving_mean"].value<float>().to_vector();
        for (std::size_t i = 0; i < a.size(); ++i)
            CHECK(found[i] == doctest::Approx(a[i] + b[i] - begun[i]).epsilon(1e-5));
    });
}

TEST_CASE("who holds what, and what is refused") {
    const thread_limit one(1);
    std::string text;
    td::run_ranks(3, [&](td::exchange& ranks) {
        tg::server server(ranks, cluster(2, 1));
        auto model = single_model();
        tg::parameter_servers of(server, model, optimizer, {.placed = {{"out", "/job:ps/task:1"}}});
        if (server.task().job == "ps")
            server.join(); // its worker does nothing, and leaves when it ends
        else
            text = of.text();
    });
    CHECK(text == "hidden/kernel=0;hidden/bias=1;norm/gamma=1;norm/beta=1;norm/moving_mean=0;norm/moving_variance=1;"
                  "out/kernel=1;out/bias=1;");
    const auto refusal_of = [](const tg::parameter_options& options) {
        return refusal(3, [&](td::exchange& ranks) {
            tg::server server(ranks, cluster(2, 1));
            auto model = single_model();
            tg::parameter_servers of(server, model, optimizer, options);
        });
    };
    CHECK(refusal_of({.placed = {{"gone", "/job:ps/task:1"}}}) == "parameter_servers: no variable matches 'gone'");
    CHECK(refusal_of({.placed = {{"out", "/job:worker/task:0"}}}) ==
          "parameter_servers: 'out/kernel' is placed on /job:worker/task:0; tasks of job 'ps' hold variables");
    CHECK(
        refusal_of({.placed = {{"out", "/job:ps/task:2"}}}) ==
        "parameter_servers: 'out/kernel' is placed on /job:ps/task:2; cluster_spec: no /job:ps/task:2; job 'ps' has 2 "
        "tasks");
    CHECK(refusal(3,
                  [](td::exchange& ranks) {
                      tg::server server(ranks, cluster(1, 2));
                      auto model = single_model();
                      tg::parameter_servers of(server, model, optimizer);
                  }) == "parameter_servers: synchronous steps of 2 workers need a model compiled with "
                        "tg::sharded{.ranks = server.workers()}");
    CHECK(refusal(2, [](td::exchange& ranks) {
              tg::server server(ranks, tg::cluster_spec{{"worker", {"one", "one"}}});
              auto model = single_model();
              tg::parameter_servers of(server, model, optimizer);
          }) == "parameter_servers: the cluster has no job 'ps'");
    CHECK(refusal(2, [](td::exchange& ranks) { tg::server(ranks, cluster(1, 1)).join(); }).find("server.join: /job:") ==
          0);
}

TEST_CASE("a worker that is silent is named by its server") {
    const thread_limit one(1);
    CHECK(refusal(2, [](td::exchange& ranks) {
              tg::server server(ranks, cluster(1, 1));
              auto model = single_model();
              tg::parameter_servers of(server, model, optimizer);
              ranks.set_deadline(server.task().job == "ps" ? 0.2 : 20);
              if (server.task().job == "ps") {
                  server.join();
              } else {
                  of.train_on_batch(points(0), labels(0));
                  std::this_thread::sleep_for(std::chrono::seconds(2));
              }
          }).find("exchange: rank 0 waited 0.2 s for rank 1 in step 1, parameter server, what a worker wants") == 0);
}

} // namespace parameter_servers_test
