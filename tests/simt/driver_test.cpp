#define TG_SIMT
#include <simt/driver.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace driver = tapegraph::cuda::driver;

namespace {

/// Whether `f` ends its process; it runs in a child process.
template <class F>
bool crashes(const F& f) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::signal(SIGSEGV, SIG_DFL); // instead of doctest's
        std::signal(SIGBUS, SIG_DFL);
        f();
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

} // namespace

TEST_CASE("guarded memory of the imitated device is the device's alone, up to the end of each buffer") {
    driver::imitation& device = driver::imitation::instance();
    REQUIRE(device.live.empty());
    device.guarded = true;
    for (const std::size_t bytes : {256, 1024, 4096, 4352, 12288}) {
        CAPTURE(bytes);
        auto* const at = static_cast<volatile char*>(device.take(bytes));
        const auto write = [&](std::size_t where) { driver::enqueue(nullptr, [=] { at[where] = 1; }); };
        CHECK_FALSE(crashes([&] { write(0), write(bytes - 1); }));
        CHECK(crashes([&] { write(bytes); }));
        CHECK(crashes([&] { static_cast<void>(at[0]); }));
        CHECK(crashes([&] { at[bytes - 1] = 1; }));
        device.give(const_cast<char*>(at));
    }
    CHECK(device.live.empty());
    device.guarded = false;
}

namespace {
void nothing() {}
} // namespace

TEST_CASE("the imitated device refuses what no device launches") {
    using tapegraph::device_error;
    const auto refused = [](const driver::launch_shape& shape, const char* why) {
        CHECK_THROWS_WITH_AS(driver::launch(nullptr, "test", shape, nothing), why, device_error);
    };
    refused({{1, 65536}, 1}, "launch of test: a grid of 1 by 65536 by 1");
    refused({{1, 1, 65536}, 1}, "launch of test: a grid of 1 by 1 by 65536");
    refused({{0x80000000u}, 1}, "launch of test: a grid of 2147483648 by 1 by 1");
    refused({{0}, 1}, "launch of test: a grid of 0 by 1 by 1");
    refused({{1}, {1, 1, 65}}, "launch of test: a block of 1 by 1 by 65");
    refused({{1}, {32, 33}}, "launch of test: a block of 32 by 33 by 1");
    refused({{1}, {1}, 232449}, "launch of test: too much shared memory");
    refused({{3}, {1}, 0, 2},
            "launch of test: clusters that the grid is not made of, or of more than 16 blocks: a grid of 3 by 1 by 1");
    CHECK_NOTHROW(driver::launch(nullptr, "test", {{2}, {1}, 0, 2}, nothing));
}

TEST_CASE("what cannot be in a graph ends the test, even where errors of a device are expected") {
    driver::imitation& device = driver::imitation::instance();
    const driver::stream stream = driver::make_stream();
    const driver::event event = driver::make_event();
    const driver::pool pool = driver::make_pool(0);
    void* const there = driver::allocate(pool, 256, stream);
    void* const pinned = driver::allocate_pinned(256);
    char here[8]{};
    const auto forbidden = [&](const char* what, const auto& f) {
        const std::string why = std::string(what) + " while a graph is captured";
        driver::begin_capture(stream);
        CHECK_THROWS_WITH_AS(f(), why.c_str(), std::logic_error);
        CHECK_THROWS_WITH_AS(driver::end_capture(stream), why.c_str(), std::logic_error);
    };
    forbidden("memory is allocated", [&] { driver::allocate(pool, 8, stream); });
    forbidden("memory is allocated", [&] { driver::allocate_plain(8); });
    forbidden("memory is freed", [&] { driver::release(there, stream); });
    forbidden("pinned memory is freed", [&] { driver::release_pinned(pinned); });
    forbidden("pageable memory is copied", [&] { driver::copy(there, here, 8, stream); });
    forbidden("pageable memory is copied", [&] { driver::copy(here, there, 8, stream); });
    forbidden("the host waits", [&] { driver::wait(stream); });
    forbidden("the host waits", [&] { driver::wait_for(event); });
    forbidden("a stream waits for an event", [&] { driver::wait_for(stream, event); });
    forbidden("another stream is given work", [&] { driver::fill(there, 0, 8, nullptr); });

    driver::begin_capture(stream);
    driver::copy(pinned, there, 8, stream);
    driver::copy(there, pinned, 8, stream);
    driver::launch(stream, "test", {1, 1}, nothing);
    driver::destroy_graph(driver::end_capture(stream));

    driver::release_pinned(pinned);
    driver::release(there, stream);
    driver::destroy(pool);
    driver::destroy_event(event);
    driver::destroy(stream);
    CHECK(device.live.empty());
    CHECK(device.pinned.empty());
}

TEST_CASE("a late device does nothing before somebody waits, and no more than is waited for") {
    const driver::stream first = driver::make_stream(), second = driver::make_stream();
    const driver::event event = driver::make_event();
    auto* const pinned = static_cast<char*>(driver::allocate_pinned(2));
    auto* const there = static_cast<char*>(driver::allocate_plain(2));
    const auto seen = [&](const driver::stream on, int at) {
        char value = 0;
        driver::copy(&value, there + at, 1, on); // waits for it
        return value;
    };
    {
        const driver::late_device late;
        pinned[0] = 1;
        char own = 5;
        driver::copy(there, pinned, 1, first);
        driver::copy(there + 1, &own, 1, first);
        driver::record(event, first);
        driver::fill(there + 1, 9, 1, first);
        pinned[0] = 2; // this is the value that is copied
        own = 6;       // was read when the copy was enqueued
        driver::wait_for(second, event);
        CHECK(seen(second, 0) == 2);
        CHECK(seen(second, 1) == 5);
        driver::fill(there, 7, 1, first);
        CHECK(seen(second, 0) == 2);
        CHECK(seen(first, 0) == 7);
        CHECK(seen(first, 1) == 9);
        driver::fill(there, 8, 1, first);
    }
    CHECK(seen(second, 0) == 8);
    driver::release_plain(there);
    driver::release_pinned(pinned);
    driver::destroy_event(event);
    driver::destroy(first);
    driver::destroy(second);
}

namespace {
namespace kernels = tapegraph::cuda::kernels;

struct addition {
    const int* from;
    int* to;
};
const int* seen_by_others; ///< an address that a kernel knows without its argument

void add_one(const kernels::dependent<addition> given) {
    const addition& p = given.after_predecessors();
    *p.to = *p.from + 1;
}
void add_one_too_early(const kernels::dependent<addition> given) {
    const int value = *seen_by_others;
    *given.after_predecessors().to = value + 1;
}
void wait_for_nothing(const kernels::dependent<addition>) {}
} // namespace

TEST_CASE("kernels that are launched early see what was before them when they have waited, and no sooner") {
    driver::imitation& device = driver::imitation::instance();
    const driver::stream stream = driver::make_stream();
    auto* const numbers = static_cast<int*>(driver::allocate_plain(4 * sizeof(int)));
    seen_by_others = numbers;
    const auto launch = [&](auto* kernel, int from, int to) {
        driver::launch(stream, "test", {1, 1}, kernel, addition{numbers + from, numbers + to});
    };
    const auto number = [&](int which) {
        int value = 0;
        driver::copy(&value, numbers + which, sizeof value, stream);
        return value;
    };
    const int before = device.early;
    device.overlapping = true;
    for (const bool captured : {false, true}) {
        driver::fill(numbers, 0, 4 * sizeof(int), stream);
        if (captured) driver::begin_capture(stream);
        launch(add_one, 0, 0);
        launch(add_one, 0, 1);
        launch(add_one, 1, 2);
        if (captured) {
            const driver::graph graph = driver::end_capture(stream);
            driver::launch_graph(graph, stream);
            driver::destroy_graph(graph);
        }
        CHECK(number(0) == 1);
        CHECK(number(1) == 2);
        CHECK(number(2) == 3);
    }
    CHECK(device.early == before + 6);
    launch(add_one, 0, 0);
    launch(add_one_too_early, 0, 3);
    CHECK(number(0) == 2);
    CHECK(number(3) == 2); // of 1, which number 0 was before
    CHECK_THROWS_WITH_AS(launch(wait_for_nothing, 0, 3), "test: a kernel that is launched early has not waited",
                         std::logic_error);

    tapegraph::cuda::programmatic_launches() = false;
    launch(add_one, 0, 0);
    launch(add_one_too_early, 0, 3);
    CHECK(number(3) == 4);
    CHECK_NOTHROW(launch(wait_for_nothing, 0, 3));
    tapegraph::cuda::programmatic_launches() = true;
    device.overlapping = false;
    static_assert(!kernels::waits_for_predecessors<>);
    static_assert(!kernels::waits_for_predecessors<addition>);
    static_assert(
        !kernels::waits_for_predecessors<kernels::dependent<addition>, const int*>); // which may be read at once
    driver::release_plain(numbers);
    driver::destroy(stream);
}

TEST_CASE("a thread waits for the imitated device while another makes streams and destroys them") {
    std::thread other([] {
        for (int i = 0; i < 2000; ++i) {
            driver::stream some[50];
            for (driver::stream& s : some) s = driver::make_stream();
            for (driver::stream s : some) driver::destroy(s);
        }
    });
    for (int i = 0; i < 20000; ++i) driver::release_plain(driver::allocate_plain(64)); // waits for all streams
    other.join();
    CHECK(driver::imitation::instance().streams.empty());
    CHECK(driver::imitation::instance().live.empty());
}
