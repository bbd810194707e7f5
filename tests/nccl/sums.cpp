#include <tapegraph/cluster/ranks/nccl_exchange.hpp>
#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cluster/ranks/tree_accumulator.hpp>

#include <atomic>
#include <doctest/doctest.h>
#include <string>

/// Sums over ranks by NCCL's entry points, here those of imitation.cpp (TAPEGRAPH_NCCL): sums(PATH of a library).

namespace nccl_test {

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

namespace {

// The imitated device: the host's memory, and work that is done at once.
std::atomic<int> taken{0}, waits{0}, additions{0};
std::atomic<bool> stuck{false};
td::nccl_device device() {
    td::nccl_device d;
    d.finished = [](void*) {
        ++waits;
        return !stuck;
    };
    d.allocate = [](std::size_t bytes) {
        ++taken;
        return ::operator new(bytes);
    };
    d.release = [](void* at) {
        --taken;
        ::operator delete(at);
    };
    d.add = [](const td::sum_kind& kind, void* sum, const void* left, const void* right, std::size_t count, void*) {
        ++additions;
        kind.add(sum, left, right, count);
    };
    return d;
}
void tell(const char* function, int what) { reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, function))(what); }
void fail(int how) { tell("imitated_nccl_fail", how); }

float value(std::size_t shard, std::size_t i) {
    const std::uint64_t x = ((shard + 1) * 0x9E3779B97F4A7C15u ^ (i + 7)) * 0xBF58476D1CE4E5B9u;
    return static_cast<float>(static_cast<std::int64_t>(x >> 40) - 8000000) * (x % 2 == 0 ? 1e-3f : 1e4f);
}
std::vector<float> own_sum(int rank, int size, std::size_t count) {
    const std::size_t each = 8 / static_cast<std::size_t>(size);
    td::tree_accumulator<float> folded(count, static_cast<std::int64_t>(each));
    std::vector<float> shard(count);
    for (std::size_t s = 0; s < each; ++s) {
        for (std::size_t i = 0; i < count; ++i) shard[i] = value(static_cast<std::size_t>(rank) * each + s, i);
        folded.add(shard.data());
    }
    return {folded.sum(), folded.sum() + count};
}
template <class F>
std::string error_text(const F& f) {
    try {
        f();
    } catch (const tg::error& e) {
        return e.what();
    }
    return "nothing";
}

} // namespace

TEST_CASE("sums over NCCL have the bits of one rank, and no rank waits before finish") {
    const td::nccl_library library;
    CHECK(library.version() == "2.32.3");
    for (const int size : {1, 2, 4, 8}) {
        CAPTURE(size);
        td::run_ranks(size, [&](td::exchange& threads) {
            td::nccl_exchange ranks(threads, device(), library);
            CHECK(ranks.name() == "NCCL 2.32.3");
            for (const std::size_t count : {1u, 700u, 4099u, 300007u}) {
                td::tree_sum sum(ranks, count, td::sum_of<float>, "bucket 2");
                const std::vector<float> expected = own_sum(0, 1, count), mine = own_sum(ranks.rank(), size, count);
                std::vector<float> data;
                for (int turn = 0; turn < 3; ++turn) {
                    data = mine;
                    const int before = waits;
                    if (turn < 2) {
                        sum.start_all_reduce(data.data());
                    } else {
                        sum.start_reduce_scatter(data.data());
                        CHECK(sum.done());
                        sum.start_all_gather(data.data());
                    }
                    CHECK(sum.done()); // the stream has all of it
                    CHECK(waits == before);
                    td::barrier(threads); // the others count, too
                    ranks.finish();
                    CHECK(std::memcmp(data.data(), expected.data(), count * sizeof(float)) == 0);
                    td::barrier(threads);
                }
            }
        });
        CHECK(taken == 0);
    }
    CHECK(additions > 0);
}

TEST_CASE("what fails names the rank, the step and the sum") {
    const td::nccl_library library;
    const auto sum_on_two = [&](const auto& between) {
        return error_text([&] {
            td::run_ranks(2, [&](td::exchange& threads) {
                td::nccl_exchange ranks(threads, device(), library);
                ranks.set_step(3);
                ranks.set_deadline(0.3);
                std::vector<float> data(5000);
                td::tree_sum sum(ranks, data.size(), td::sum_of<float>, "bucket 2");
                td::barrier(threads);
                between(ranks, threads);
                sum.start_all_reduce(data.data());
                sum.wait();
                ranks.finish();
                td::barrier(threads);
            });
        });
    };
    const std::string sent = sum_on_two([](td::exchange&, td::exchange&) { fail(1); });
    CHECK(sent.find("NCCL: ncclSend failed on rank ") == 0);
    CHECK(sent.find(" in step 3, bucket 2, reduce-scatter round 1 of 1: unhandled cuda error (imitated)") != sent.npos);
    fail(0);
    const std::string peer = sum_on_two([](td::nccl_exchange& ranks, td::exchange& threads) {
        if (ranks.rank() == 0) fail(6);
        td::barrier(threads);
    });
    CHECK(peer.find("NCCL: a peer or the network failed on rank ") == 0);
    CHECK(peer.find("in step 3, bucket 2, all-gather round 1 of 1: remote process exited") != peer.npos);
    fail(0);
    // Whoever is late first gives the communicator up, and the other may see that before its own deadline.
    stuck = true;
    std::string late[2];
    td::run_ranks(2, [&](td::exchange& threads) {
        td::nccl_exchange ranks(threads, device(), library);
        ranks.set_step(3);
        ranks.set_deadline(0.3);
        std::vector<float> data(5000);
        td::tree_sum sum(ranks, data.size(), td::sum_of<float>, "bucket 2");
        sum.start_all_reduce(data.data());
        late[ranks.rank()] = error_text([&] { ranks.finish(); });
    });
    int own = 0;
    for (const std::string& each : late) {
        own +=
            each.find(" s for its stream in step 3, last given to it: bucket 2, all-gather round 1 of 1") != each.npos;
        CHECK(each.find(" in step 3, ") != each.npos);
    }
    CHECK(own >= 1);
    stuck = false;
}

TEST_CASE("a library that is missing, old or another one is one clear line") {
    const std::string missing = error_text([] { td::nccl_library("libnothing.so.2"); });
    CHECK(missing.find("NCCL: libnothing.so.2 cannot be loaded: libnothing.so.2: cannot open shared object file") == 0);
    CHECK(missing.find("; install it (pip install nvidia-nccl-cu13) and name it in TAPEGRAPH_NCCL") != missing.npos);
    CHECK(error_text([] { td::nccl_library("libm.so.6"); }) == "NCCL: libm.so.6 has no ncclGetVersion");
    const std::string file = std::getenv("TAPEGRAPH_NCCL");
    for (const auto& [number, text] : {std::pair{2708, "2.7.8"}, {20800, "2.8.0"}}) {
        tell("imitated_nccl_is", number);
        CHECK(error_text([] { td::nccl_library(); }) ==
              "NCCL: " + file + " is version " + text + "; expected 2.9 or newer");
    }
    tell("imitated_nccl_is", 23203);
    td::run_ranks(1, [](td::exchange& threads) {
        CHECK(error_text([&] { td::nccl_exchange(threads, {}, td::nccl_library()); }) ==
              "nccl_exchange: the device lacks a function; see nccl_device");
    });
}

} // namespace nccl_test
