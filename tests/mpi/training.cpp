// Trains a model with MPI processes: mpirun -n 4 training FOLDER [KILL]. Continues from the newest checkpoint in FOLDER, of which
// each process writes a part, and prints a hash of the weights, which tests/mpi/kill.sh compares. With KILL, rank 1 kills itself
// after that step. mpirun -n 3 training tasks: the layers are on tasks of a cluster, and the hash is that of -n 1.

#include <tapegraph/mpi.hpp>

#include <tapegraph/nn.hpp>

#include <tapegraph/distributed.hpp>
#include <tapegraph/io/callbacks/checkpoints.hpp>
#include <tapegraph/train/callbacks.hpp>

#include <cinttypes>
#include <cstdlib>

#include <signal.h>

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dropout(scope / "drop", tanh(tg::dense(scope / "hidden", x, {.units = 40})), {.rate = 0.3});
        return tg::dense(scope / "out", h, {.units = 3});
    }
};

tg::data::dataset points(int count) {
    std::vector<float> x;
    std::vector<std::int32_t> y;
    for (int i = 0; i < count; ++i) {
        for (std::uint64_t k = 0; k < 6; ++k)
            x.push_back(tg::random::uniform_at<float>(7, 0, 0, static_cast<std::uint64_t>(i) * 6 + k) - 0.5f);
        y.push_back(i % 3);
    }
    tg::data::dataset set;
    set.add("x", std::move(x), {6}).add("label", std::move(y));
    return set;
}

void train(td::exchange& ranks, const std::string& folder, std::int64_t kill_after) {
    auto model = tg::compile<tg::graph>(network{}, tg::spec<float, tg::dyn, 6>{}, tg::sparse_softmax_cross_entropy{},
                                        tg::adam{}, tg::sharded{.shards = 8, .options = {.seed = 1}, .ranks = &ranks});
    if (kill_after > 0) ranks.set_deadline(2);
    model.fit(points(150), {.epochs = 2, .batch_size = 16, .verbose = 0},
              tg::keep_checkpoints{.folder = folder, .every_steps = 2, .options = {.parts = tg::by_rank(ranks)}},
              tg::on_batch_end([&](tg::training_state& s) {
                  if (s.step == kill_after && ranks.rank() == 1) ::raise(SIGKILL);
              }));
    if (!ranks.is_chief()) return;
    std::uint64_t hash = 0;
    for (const tg::variable& v : model.variables())
        hash = td::hash_values({static_cast<const std::byte*>(v.data().read()), v.data().outline_view().bytes()}, hash);
    std::printf("step %d, weights %016" PRIx64 "\n", static_cast<int>(model.step()), hash);
}

/// Its layers on three tasks, where there are so many.
struct on_tasks {
    constexpr auto operator()(auto scope, auto x) const { return out(scope, tanh(tg::eval(2 * hidden(scope, x)))); }
    constexpr auto hidden(auto scope, auto x) const {
        const auto on = scope.with_device("/job:worker/task:1");
        return tg::batch_normalization(scope / "norm", tg::dense(scope / "hidden", x, {.units = 40}));
    }
    constexpr auto out(auto scope, auto h) const {
        const auto on = scope.with_device("/job:worker/task:2");
        return tg::dense(scope / "out", tg::dropout(scope / "drop", h, {.rate = 0.3}), {.units = 3});
    }
};

void train_on_tasks(td::exchange& ranks) {
    const tg::cluster_spec cluster(
        {{"worker", std::vector<std::string>(static_cast<std::size_t>(ranks.size()), "one")}});
    tg::server server(ranks, cluster);
    auto model = tg::compile<tg::graph>(on_tasks{}, tg::spec<float, tg::dyn, 6>{}, tg::sparse_softmax_cross_entropy{},
                                        tg::adam{}, {.seed = 1, .tasks = ranks.size() < 3 ? nullptr : server.tasks()});
    model.fit(points(150), {.epochs = 2, .batch_size = 16, .verbose = 0});
    model.gather_variables();
    std::uint64_t hash = 0;
    for (const tg::variable& v : model.variables())
        hash = td::hash_values({static_cast<const std::byte*>(v.data().read()), v.data().outline_view().bytes()}, hash);
    const std::vector<float> scores = model.predict(tg::ones<float>({2, 6})).to_vector();
    hash = td::hash_values(std::as_bytes(std::span(scores)), hash);
    for (int r = 0; r < ranks.size(); ++r) {
        td::barrier(ranks);
        if (r == ranks.rank()) std::printf("rank %d of %d: weights %016" PRIx64 "\n", r, ranks.size(), hash);
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    return tg::mpi_run(argc, argv, [&](td::exchange& ranks) {
        if (std::string_view(argv[1]) == "tasks") return train_on_tasks(ranks);
        train(ranks, argv[1], argc > 2 ? std::atoi(argv[2]) : 0);
    });
}
