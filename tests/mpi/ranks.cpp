// What tests/distributed checks between threads, between processes of MPI: mpirun -n 4 ranks [CASE]. The sums' hash is printed, and
// is that of one rank. Other cases fail, and CTest reads how: disagree, silent, throw, length, shards.

#include <tapegraph/mpi.hpp>

#include <tapegraph/distributed.hpp>

#include <cinttypes>
#include <cstdlib>
#include <new>

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

namespace {

std::int64_t allocations = 0;

void require(bool holds, const char* what) {
    if (!holds) throw tg::check_error(std::string("not so: ") + what);
}

float value(std::size_t shard, std::size_t i) {
    std::uint64_t x = (shard + 1) * 0x9E3779B97F4A7C15u ^ (i + 7) * 0xC2B2AE3D27D4EB4Fu;
    x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
    return static_cast<float>(static_cast<std::int64_t>(x >> 20 & 0xFFFFF) - 500000) * (x % 2 == 0 ? 1e-3f : 1e4f);
}

// What a rank brings: the tree's sum over its own of eight shards.
std::vector<float> own_sum(int rank, int size, std::size_t count) {
    const std::size_t each = 8 / static_cast<std::size_t>(size);
    td::tree_accumulator<float> folded(count, static_cast<std::int64_t>(each));
    for (std::size_t s = 0; s < each; ++s) {
        std::vector<float> shard(count);
        for (std::size_t i = 0; i < count; ++i) shard[i] = value(static_cast<std::size_t>(rank) * each + s, i);
        folded.add(shard.data());
    }
    return {folded.sum(), folded.sum() + count};
}

std::uint64_t sums(td::exchange& ranks) {
    std::uint64_t hash = td::hash_text("");
    for (const std::size_t count : {1u, 700u, 4099u, 300007u}) {
        td::tree_sum sum(ranks, count, td::sum_of<float>, "sum of " + std::to_string(count));
        const std::vector<float> expected = own_sum(0, 1, count), mine = own_sum(ranks.rank(), ranks.size(), count);
        std::vector<float> data = mine;
        for (int turn = 0; turn < 3; ++turn) {
            data = mine;
            const std::int64_t before = allocations;
            if (turn < 2) {
                sum.start_all_reduce(data.data());
            } else {
                sum.start_reduce_scatter(data.data());
                sum.wait();
                sum.start_all_gather(data.data());
            }
            sum.wait();
            require(turn == 0 || allocations == before, "an exchange allocates nothing after the first");
            require(std::memcmp(data.data(), expected.data(), count * sizeof(float)) == 0,
                    "the sum has the bits of one rank's");
        }
        hash = td::hash_bytes(std::as_bytes(std::span(data)), hash);
    }
    return hash;
}

void collectives(td::exchange& ranks) {
    td::block_gather gather(ranks, "rows");
    for (int turn = 0; turn < 3; ++turn) {
        const std::vector<int> own(static_cast<std::size_t>(ranks.rank() + turn), ranks.rank());
        gather.start(std::as_bytes(std::span(own)));
        gather.wait();
        for (int r = 0; r < ranks.size(); ++r)
            require(gather.block(r).size() == sizeof(int) * static_cast<std::size_t>(r + turn), "a block has its size");
    }
    for (int root = 0; root < ranks.size(); ++root) {
        double sent = ranks.rank() == root ? 1.5 + root : 0;
        td::broadcast(ranks, root, std::as_writable_bytes(std::span(&sent, 1)));
        require(sent == 1.5 + root, "a broadcast arrives");
    }
    std::vector<double> metrics{1.0, 0.25};
    td::sum_over_ranks(ranks, std::span(metrics));
    require(metrics[0] == ranks.size() && metrics[1] == 0.25 * ranks.size(), "metrics are summed");
    td::barrier(ranks);
    td::agree(ranks, {{"schedule", 17}, td::agreed_value("shards", "8")});
}

int run(td::exchange& ranks, const std::string& which) {
    if (which == "all") {
        const std::uint64_t hash = sums(ranks);
        collectives(ranks); // which end when all have come so far
        if (ranks.rank() == 0)
            std::printf("hash %016" PRIx64 " on %d ranks of %s\n", hash, ranks.size(), ranks.name().c_str());
    } else if (which == "disagree") {
        td::agree(ranks, {{"schedule", 17}, td::agreed_value("shards", ranks.rank() == 1 ? "4" : "8")});
    } else if (which == "silent") {
        ranks.set_step(3);
        ranks.set_deadline(ranks.rank() == 0 ? 0.5 : 20);
        if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(20));
        std::vector<float> data(5000);
        td::tree_sum sum(ranks, data.size(), td::sum_of<float>, "bucket 2");
        sum.start_all_reduce(data.data());
        sum.wait();
    } else if (which == "throw") {
        if (ranks.rank() == 1) throw tg::data_error("'train.csv' is missing");
        td::barrier(ranks);
    } else if (which == "length") {
        std::vector<double> data(ranks.rank() == 0 ? 300 : 200);
        td::sum_over_ranks(ranks, std::span(data), "metrics");
        td::barrier(ranks);
    } else if (which == "shards") {
        td::require_tree(ranks.size(), 8);
    } else {
        return 3;
    }
    return 0;
}

} // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    ++allocations;
    if (void* const p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

int main(int argc, char** argv) {
    return tg::mpi_run(argc, argv, [&](td::exchange& ranks) { return run(ranks, argc > 1 ? argv[1] : "all"); });
}
