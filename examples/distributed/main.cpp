#include "../models/cats_and_dogs.hpp"

#include <tapegraph/distributed.hpp>
#include <tapegraph/mpi.hpp>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

/// Trains the batch study's CNN with any number of processes to the same weights.
/// docs/distributed.md explains shards and ranks.

namespace {

namespace tg = tapegraph;

constexpr const char* usage = R"(mpirun -n 2 ./distributed [--images 96] [--batch-size 16] [--shards 8] [--epochs 1]

Trains the CNN of the batch study (1,674,701 parameters) on generated images of 50 x 50 pixels. Each batch is cut into shards, which
the processes share; their number divides the number of shards. Rank 0 prints the loss, and a hash of all weights and optimizer
state, which depends on the four numbers above, not on the number of processes.

  as root                      mpirun --allow-run-as-root -n 2 ./distributed
  more processes than cores    mpirun --oversubscribe -n 4 ./distributed            (Open MPI)
  threads of each process      OMP_NUM_THREADS=1 mpirun -n 2 ./distributed
)";

struct settings {
    int images = 96, batch_size = 16, shards = 8, epochs = 1;
};

bool parse(int argc, char** argv, settings& s) {
    const struct {
        std::string_view name;
        int& value;
    } all[]{{"--images", s.images}, {"--batch-size", s.batch_size}, {"--shards", s.shards}, {"--epochs", s.epochs}};
    for (int i = 1; i < argc; i += 2) {
        bool known = false;
        for (const auto& each : all) {
            if (each.name != argv[i] || i + 1 == argc) continue;
            const char* const end = argv[i + 1] + std::strlen(argv[i + 1]);
            const auto read = std::from_chars(argv[i + 1], end, each.value);
            known = read.ec == std::errc() && read.ptr == end && each.value > 0;
        }
        if (!known) return false;
    }
    return true;
}

/// Noise; the images of class 1 are brighter.
tg::data::dataset generated(int images) {
    const std::size_t pixels = 50 * 50 * 3;
    std::vector<float> values(static_cast<std::size_t>(images) * pixels), labels;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float bright = i / pixels % 2 == 0 ? 0.0f : 0.3f;
        values[i] = tg::random::uniform_at<float>(7, 0, 0, i) + bright;
    }
    for (int i = 0; i < images; ++i) labels.push_back(static_cast<float>(i % 2));
    tg::data::dataset set;
    set.add("image", values, {50, 50, 3}).add("label", labels, {1});
    return set;
}

void train(tg::distributed::exchange& ranks, const settings& s) {
    auto model = tg::compile<tg::graph>(models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{},
                                        tg::sigmoid_cross_entropy{}, tg::adam{.learning_rate = 1e-4},
                                        tg::sharded{.shards = s.shards, .options = {.seed = 1}, .ranks = &ranks});
    const auto history = model.fit(generated(s.images), {.epochs = s.epochs, .batch_size = s.batch_size, .verbose = 0});
    if (ranks.rank() != 0) return;
    std::uint64_t hash = 0;
    for (const tg::variable& v : model.variables()) {
        const auto bytes = v.data().outline_view().bytes();
        hash = tg::distributed::hash_values({static_cast<const std::byte*>(v.data().read()), bytes}, hash);
    }
    const auto& last = history.epochs.back();
    std::printf("%d processes, %lld steps in %.1f s: loss %.6f, weights %016llx\n", ranks.size(),
                static_cast<long long>(model.step()), last.seconds, last.loss, static_cast<unsigned long long>(hash));
}

} // namespace

int main(int argc, char** argv) {
    settings s;
    if (!parse(argc, argv, s)) {
        const bool help_requested = argc == 2 && std::string_view(argv[1]) == "--help";
        std::fputs(usage, help_requested ? stdout : stderr);
        return help_requested ? 0 : 2;
    }
    return tg::mpi_run(argc, argv, [&](tg::distributed::exchange& ranks) { train(ranks, s); });
}
