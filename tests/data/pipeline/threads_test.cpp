#include <data/pipeline/collected.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <tuple>

namespace pipeline_threads_test {

using namespace pipeline_test;

namespace {

/// Takes a while that differs from element to element, and draws random numbers.
std::int64_t slowly(std::int64_t i, data::counter_random& random) {
    if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    return 1000 * i + static_cast<std::int64_t>(random.below(1000));
}

std::int64_t threads_of_this_process() {
    std::int64_t count = 0;
    std::FILE* const f = std::fopen("/proc/self/status", "r");
    if (f == nullptr) return -1;
    char line[256];
    while (std::fgets(line, sizeof line, f) != nullptr)
        if (std::sscanf(line, "Threads: %ld", &count) == 1) break;
    std::fclose(f);
    return count;
}

// The system counts a thread for a moment after somebody has joined it: the least of some counts, or the first that is no more than
// `most`.
std::int64_t threads_left(std::int64_t most = 0) {
    std::int64_t least = threads_of_this_process();
    for (int i = 0; i < 50 && least > most; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        least = std::min(least, threads_of_this_process());
    }
    return least;
}

} // namespace

TEST_CASE("any number of threads gives the same elements") {
    const auto with = [](int threads) {
        return data::range(41).shuffle(3, {.buffer = 7}).map(slowly, {.threads = threads, .seed = 11});
    };
    for (const std::uint64_t epoch : {0, 1}) {
        const auto expected = elements_of(with(0), epoch);
        const auto batches = batches_of(with(0).batch(6), epoch);
        CHECK(batches.size() == 7);
        for (const int threads : {1, 2, 4, 7}) {
            CHECK(elements_of(with(threads), epoch) == expected);
            CHECK(elements_of(with(threads).prefetch(3), epoch) == expected);
            CHECK(elements_of(with(threads).filter([](std::int64_t i) { return i % 2 == 0; }).prefetch(2), epoch) ==
                  elements_of(with(0).filter([](std::int64_t i) { return i % 2 == 0; }), epoch));
            for (const std::int64_t depth : {0, 1, 3, 50}) {
                CHECK(batches_of(with(threads).batch(6).prefetch(depth), epoch) == batches);
                CHECK(batches_of(with(threads).batch(6).shuffle(2).prefetch(depth), epoch) ==
                      batches_of(with(0).batch(6).shuffle(2), epoch));
            }
            CHECK(batches_of(with(threads).prefetch(2).map([](std::int64_t i) { return i; }, {.threads = 2}).batch(6),
                             epoch) == batches);
            CHECK(batches_of(data::range(5)
                                 .interleave([&](std::int64_t i) { return with(2).take(i); }, {.cycle = 2})
                                 .map([](std::int64_t i) { return i; }, {.threads = threads})
                                 .batch(4),
                             epoch) ==
                  batches_of(
                      data::range(5).interleave([&](std::int64_t i) { return with(0).take(i); }, {.cycle = 2}).batch(4),
                      epoch));
        }
    }
    CHECK(elements_of(data::range(0).map(slowly, {.threads = 3}).prefetch(2)).empty());
    CHECK(elements_of(data::range(1).map(slowly, {.threads = 3}).prefetch(2)).size() == 1);
    CHECK_THROWS_WITH_AS(data::range(1).map(slowly, {.threads = 2000}),
                         "map: 2000 threads; 0 to 1024, or automatic_threads", tg::argument_error);
    CHECK(elements_of(data::range(9).map(slowly, {.threads = data::automatic_threads})).size() == 9);
}

TEST_CASE("in free order nothing is lost and nothing comes twice") {
    const auto set = data::range(61).map(slowly, {.threads = 4, .deterministic = false, .seed = 11});
    auto expected = elements_of(data::range(61).map(slowly, {.seed = 11}));
    std::sort(expected.begin(), expected.end());
    for (int round = 0; round < 5; ++round) {
        auto got = elements_of(set.prefetch(3));
        std::sort(got.begin(), got.end());
        CHECK(got == expected);
        numbers all;
        for (const numbers& b : batches_of(set.batch(7).prefetch(2))) all.insert(all.end(), b.begin(), b.end());
        std::sort(all.begin(), all.end());
        CHECK(all == expected);
    }
    CHECK_THROWS_AS(set.filter([](std::int64_t) { return true; }).batch(2).iterator().position(), tg::argument_error);
    auto at = set.iterator();
    at.restore({3, 0});
    CHECK_THROWS_WITH_AS(
        at.restore({3, 1}),
        "data pipeline: no position to resume from, elements come in the order in which they are ready",
        tg::argument_error);
    at.next();
    CHECK_THROWS_WITH_AS(at.position(),
                         "data pipeline: no position, elements come in the order in which they are ready",
                         tg::argument_error);
}

TEST_CASE("what a thread throws reaches the caller, the first by number, with its origin") {
    struct mishap : std::runtime_error {
        using std::runtime_error::runtime_error;
    };
    for (const int threads : {0, 1, 2, 4, 7})
        for (const std::int64_t depth : {0, 2}) {
            const auto set = data::slices(counted(100, 140))
                                 .map(
                                     [](std::int64_t i) {
                                         if (i == 117) std::this_thread::sleep_for(std::chrono::milliseconds(2));
                                         if (i == 117 || i == 119 || i == 121) throw mishap("bad " + std::to_string(i));
                                         return i;
                                     },
                                     {.threads = threads});
            numbers seen;
            try {
                for (const auto i : set.prefetch(depth).epoch(4)) seen.push_back(i);
                CHECK(false);
            } catch (const data::record_error& e) {
                CHECK(e.what() == std::string("data pipeline: epoch 4, element 17 (slices record 17): bad 117"));
                CHECK(e.element == 17);
                CHECK(e.epoch == 4);
                CHECK(e.origin == "slices record 17");
                CHECK_THROWS_AS(std::rethrow_exception(e.cause), mishap);
            }
            CHECK(seen == counted(100, 117));
            auto at = set.batch(4).prefetch(depth).iterator();
            for (int i = 0; i < 4; ++i) CHECK(at.next());
            for (int again = 0; again < 2; ++again)
                CHECK_THROWS_WITH_AS(at.next(), "data pipeline: epoch 0, element 17 (slices record 17): bad 117",
                                     data::record_error);
        }
    // Where the source itself fails.
    const auto broken = data::generator([] {
        return [i = 0]() mutable {
            if (i == 5) throw tg::data_error("the wire is cut");
            return std::optional(i++);
        };
    });
    for (const std::int64_t depth : {0, 3}) {
        int seen = 0;
        try {
            for (auto& b : broken.batch(2).prefetch(depth).epoch(0)) seen += static_cast<int>(b.size());
            CHECK(false);
        } catch (const data::record_error& e) {
            CHECK(e.what() == std::string("data pipeline: epoch 0, element 5: the wire is cut"));
        }
        CHECK(seen == 4);
    }
    const auto first = data::range(3).map([](std::int64_t) -> tg::tensor<float> { throw mishap("at once"); });
    CHECK_THROWS_WITH_AS(elements_of(first.batch(2).prefetch(1)),
                         "data pipeline: epoch 0, element 0 (range record 0): at once", data::record_error);
}

TEST_CASE("no thread outlives its walk") {
    const std::int64_t before = threads_left();
    std::atomic<int> inside{0};
    const auto set = data::range(100000).map(
        [&](std::int64_t i) {
            ++inside;
            std::this_thread::sleep_for(std::chrono::microseconds(50));
            --inside;
            return i;
        },
        {.threads = 4});
    for (int round = 0; round < 4; ++round) {
        for (auto& b : set.batch(16).prefetch(2).epoch(0)) {
            if (before > 0 && round == 0) CHECK(threads_of_this_process() > before);
            if (b(0) >= 16 * round) break;
        }
        CHECK(inside == 0);
        {
            auto at = set.prefetch(3).iterator();
            at.next();
            at.initialize(2);
            at.next();
            auto moved = std::move(at);
            moved.next();
        }
        CHECK(inside == 0);
        if (before > 0) CHECK(threads_left(before) == before);
    }
}

TEST_CASE("the memory is the ring's") {
    // A decoder that never ends: what lives at once is counted.
    struct counting {
        std::atomic<int> live{0}, most{0};
    } counter;
    struct image {
        image(counting* c, std::int64_t i) : to(c), pixels(1000, static_cast<float>(i)) { count(1); }
        image(image&& other) noexcept : to(std::exchange(other.to, nullptr)), pixels(std::move(other.pixels)) {}
        image& operator=(image&& other) noexcept {
            if (to != nullptr) count(-1);
            to = std::exchange(other.to, nullptr);
            pixels = std::move(other.pixels);
            return *this;
        }
        ~image() {
            if (to != nullptr) count(-1);
        }
        void count(int by) {
            const int now = to->live += by;
            int most = to->most;
            while (now > most && !to->most.compare_exchange_weak(most, now)) {}
        }
        counting* to;
        std::vector<float> pixels;
    };
    const auto set = data::range(400).map([&](std::int64_t i) { return image(&counter, i); }, {.threads = 3});
    int taken = 0;
    for (auto& e : set.prefetch(5).epoch(0)) {
        static_cast<void>(e);
        if (++taken % 50 == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(1)); // the threads run ahead as far as they may
    }
    CHECK(taken == 400);
    CHECK(counter.live == 0);
    CHECK(counter.most <= 6 + 1); // ring of depth + 1, and the one that is passed on

    // Batches: tensors of the ring alone.
    const auto numbers_only = data::range(4000)
                                  .map([](std::int64_t i) { return std::array<float, 256>{float(i)}; }, {.threads = 3})
                                  .batch(16)
                                  .prefetch(3);
    const std::int64_t ring = 4 * 16 * 1024;
    CHECK(numbers_only.memory_bytes() >= ring);
    CHECK(numbers_only.memory_bytes() < ring + 4 * 16 * 1100); // with the tickets
    const std::int64_t before = tg::eager_memory().in_use;
    std::int64_t most = 0;
    for (auto& b : numbers_only.epoch(0)) {
        static_cast<void>(b);
        most = std::max(most, tg::eager_memory().in_use - before);
    }
    CHECK(most >= ring);
    CHECK(most <= ring + ring / 4 + 4096); // buffers come in sizes of at most a quarter more
    CHECK(tg::eager_memory().in_use == before);
}

} // namespace pipeline_threads_test
