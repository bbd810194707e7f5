#define TG_SIMT
#include <support/messages.hpp>

#include <tapegraph/cuda/memory.hpp>

#include <doctest/doctest.h>

#include <utility>
#include <vector>

namespace memory_test {

namespace tg = tapegraph;
using support::message_of;
using tg::cuda::memory_pool;

namespace {

constexpr std::size_t kib = 1024, mib = 1024 * kib, gib = 1024 * mib;

struct variable {
    variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
    ~variable() { unsetenv(name_); }
    const char* name_;
};

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Checks that a test releases what it allocated.
struct balanced {
    std::size_t before = tg::cuda::driver::imitation::instance().taken;
    ~balanced() { CHECK(tg::cuda::driver::imitation::instance().taken == before); }
};

} // namespace

TEST_CASE_FIXTURE(balanced, "device memory: buffers are counted, released and reported") {
    memory_pool pool(0);
    void* const a = pool.allocate(1000, "conv1/kernel");
    void* const b = pool.allocate(0);
    CHECK(a != b);
    auto s = pool.statistics();
    CHECK(s.in_use == 1024 + 256); // whole 256 bytes, at least one
    CHECK(s.buffers == 2);
    CHECK(s.allocations == 2);
    CHECK(s.limit == gib);
    pool.release(a);
    pool.release(nullptr);
    s = pool.statistics();
    CHECK(s.in_use == 256);
    CHECK(s.peak == 1280);
    CHECK(s.reserved == 1280); // kept for the next buffer
    pool.trim();
    CHECK(pool.statistics().reserved == 256);
    pool.reset_peak();
    CHECK(pool.statistics().peak == 256);
    CHECK(has(message_of<tg::device_error>([&] { pool.release(a); }), "not live"));
    pool.release(b);
}

TEST_CASE_FIXTURE(balanced, "device memory: a freed buffer waits for the next of its size") {
    auto& device = tg::cuda::driver::imitation::instance();
    memory_pool pool(0);
    pool.configure({.limit = 10 * mib, .reuse = 6 * mib});
    const auto driver_calls = [&](const auto& f) { // how often the driver allocates and frees memory
        const int allocations = device.allocations, frees = device.frees;
        f();
        return std::pair{device.allocations - allocations, device.frees - frees};
    };
    void* a = pool.allocate(1000, "first");
    pool.release(a);
    CHECK(driver_calls([&] {
              for (std::size_t bytes : {1000u, 900u, 1024u}) { // all of 1,024 bytes
                  CHECK(pool.allocate(bytes, "second") == a);
                  CHECK(pool.statistics().in_use == 1024);
                  CHECK(pool.statistics().buffers == 1);
                  pool.release(a);
                  CHECK(pool.statistics().in_use == 0);
                  CHECK(pool.statistics().buffers == 0);
              }
          }) == std::pair{0, 0});
    CHECK(pool.statistics().allocations == 4);
    CHECK(has(message_of<tg::device_error>([&] { pool.release(a); }), "not live"));
    CHECK(driver_calls([&] { pool.release(pool.allocate(2000)); }) == std::pair{1, 0});        // another size
    CHECK(driver_calls([&] { pool.release(pool.allocate(4 * mib + 1)); }) == std::pair{1, 1}); // too large to keep
    CHECK(driver_calls([&] {
              void *const b = pool.allocate(1000), *const c = pool.allocate(1000); // one is kept
              CHECK(b != c);
              pool.release(b), pool.release(c);
          }) == std::pair{1, 0});
    // More than may be kept: all go back.
    CHECK(driver_calls([&] {
              void *const b = pool.allocate(3 * mib), *const c = pool.allocate(3 * mib);
              pool.release(b);
              pool.release(c);
          }) == std::pair{2, 4});
    // The limit applies to all memory that the driver has given.
    CHECK(driver_calls([&] { pool.release(pool.allocate(8 * mib)); }) == std::pair{1, 2});
    pool.release(pool.allocate(1000));
    CHECK(driver_calls([&] {
              pool.recording(true);
              void* const b = pool.allocate(1000);
              pool.release(b);
              pool.recording(false);
          }) == std::pair{1, 1});
    CHECK(driver_calls([&] { pool.trim(); }) == std::pair{0, 1});
    CHECK(pool.statistics().reserved == 0);

    memory_pool without(0);
    without.configure({.reuse = 0});
    CHECK(driver_calls([&] { without.release(without.allocate(1000)); }) == std::pair{1, 1});
}

TEST_CASE_FIXTURE(balanced, "device memory: buffers that wait go before memory runs out") {
    auto& device = tg::cuda::driver::imitation::instance();
    memory_pool pool(0);
    pool.configure({.reuse = gib});
    std::vector<void*> all;
    const std::size_t available = device.memory - device.taken;
    for (std::size_t i = 0; i < available / (4 * mib); ++i) all.push_back(pool.allocate(4 * mib));
    for (void* at : all) pool.release(at);
    pool.release(pool.allocate(available - mib)); // nothing was free
}

TEST_CASE_FIXTURE(balanced, "device memory: running out names the request, the limit, and the largest buffers") {
    memory_pool pool(0);
    pool.configure({.limit = 10 * mib});
    void* held[]{pool.allocate(4 * mib, "conv2/kernel"), pool.allocate(3 * mib, "images"), pool.allocate(mib)};
    const std::string text = message_of<tg::out_of_memory>([&] { pool.allocate(5 * mib, "dense/kernel"); });
    CHECK(has(text,
              "out of memory on cuda:0: 5.00 MiB requested for dense/kernel; limit 10.00 MiB, in use 8.00 MiB in 3"));
    CHECK(has(text, "largest: conv2/kernel 4.00 MiB, images 3.00 MiB, (unnamed) 1.00 MiB"));
    CHECK(pool.statistics().in_use == 8 * mib); // and nothing else has happened
    held[2] = (pool.release(held[2]), pool.allocate(3 * mib));
    for (void* at : held) pool.release(at);
    CHECK(has(message_of<tg::argument_error>([&] { pool.configure({}); }), "in use"));
}

TEST_CASE_FIXTURE(balanced, "device memory: a part at once, and no growth beyond it") {
    {
        memory_pool pool(0);
        pool.configure({.fraction = 0.25});
        pool.release(pool.allocate(1));
        CHECK(pool.statistics().reserved == gib / 4);
    }
    memory_pool pool(0);
    pool.configure({.fraction = 0.5, .allow_growth = false});
    void* const most = pool.allocate(gib / 2);
    CHECK_THROWS_AS(pool.allocate(1), tg::out_of_memory);
    pool.release(most);
    memory_pool none(0);
    none.configure({.allow_growth = false});
    CHECK(has(message_of<tg::argument_error>([&] { none.allocate(1); }), "fraction"));
    memory_pool wrong(0);
    CHECK(has(message_of<tg::argument_error>([&] { wrong.configure({.fraction = 1.5}); }), "1.5"));
}

TEST_CASE_FIXTURE(balanced, "device memory: the environment has the last word, and bad values are named") {
    const auto limit = [](const char* text) {
        const variable set("TAPEGRAPH_GPU_MEMORY_LIMIT", text);
        memory_pool pool(0);
        pool.release(pool.allocate(1));
        return pool.statistics().limit;
    };
    CHECK(limit("1000000") == 1000000);
    CHECK(limit("64M") == 64 * mib);
    CHECK(limit("0.5G") == gib / 2);
    CHECK(limit("25%") == gib / 4);
    CHECK(limit("9999G") == gib); // there is no more
    CHECK(limit("0") == gib);
    CHECK(has(message_of<tg::argument_error>([&] { limit("8 gigs"); }), "TAPEGRAPH_GPU_MEMORY_LIMIT='8 gigs'"));
    for (const char* text : {"-1", "nan", "inf", "1e30", "nan%"})
        CHECK(has(message_of<tg::argument_error>([&] { limit(text); }), ("'" + std::string(text) + "'").c_str()));
    {
        const variable none("TAPEGRAPH_GPU_MEMORY_REUSE", "0");
        memory_pool pool(0);
        const int frees = tg::cuda::driver::imitation::instance().frees;
        pool.release(pool.allocate(1));
        CHECK(tg::cuda::driver::imitation::instance().frees == frees + 1);
    }
    for (const auto& [name, value] :
         {std::pair{"TAPEGRAPH_GPU_MEMORY_FRACTION", "1.2"}, std::pair{"TAPEGRAPH_GPU_MEMORY_FRACTION", "nan"},
          std::pair{"TAPEGRAPH_GPU_ALLOW_GROWTH", "yes"}, std::pair{"TAPEGRAPH_GPU_ALLOCATOR", "malloc"}}) {
        const variable set(name, value);
        memory_pool pool(0);
        CHECK(has(message_of<tg::argument_error>([&] { pool.allocate(1); }), name));
    }
    const auto keeps_nothing = [] {
        memory_pool pool(0);
        void* const at = pool.allocate(1000);
        CHECK(pool.statistics().reserved == 1024);
        pool.release(at);
        CHECK(pool.statistics().reserved == 0);
    };
    {
        const variable plain("TAPEGRAPH_GPU_ALLOCATOR", "plain");
        keeps_nothing();
    }
    tg::cuda::driver::imitation::instance().pools = false; // like some virtual GPUs
    keeps_nothing();
    tg::cuda::driver::imitation::instance().pools = true;
}

TEST_CASE_FIXTURE(balanced, "device memory: one pool a device; devices that are not there") {
    auto& device = tg::cuda::driver::imitation::instance();
    device.devices = 2;
    CHECK(&memory_pool::of(1) == &memory_pool::of(1));
    CHECK(&memory_pool::of(0) != &memory_pool::of(1));
    CHECK(has(message_of<tg::device_error>([] { memory_pool::of(2); }), "cuda:2 does not exist: there are 2"));
    device.devices = 0;
    CHECK_THROWS_AS(memory_pool::of(0), tg::device_error);
    device.devices = 1;
}

} // namespace memory_test
