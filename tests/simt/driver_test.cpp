#include <simt/driver.hpp>

#include <doctest/doctest.h>

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

namespace driver = tapegraph::cuda::driver;

namespace {

/// Whether `f` ends its process; it runs in one of its own.
template <class F>
bool crashes(const F& f) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::signal(SIGSEGV, SIG_DFL); // not doctest's
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
        const auto write = [&](std::size_t where) { driver::enqueue([=] { at[where] = 1; }); };
        CHECK_FALSE(crashes([&] { write(0), write(bytes - 1); }));
        CHECK(crashes([&] { write(bytes); }));
        CHECK(crashes([&] { static_cast<void>(at[0]); }));
        CHECK(crashes([&] { at[bytes - 1] = 1; }));
        device.give(const_cast<char*>(at));
    }
    CHECK(device.live.empty());
    device.guarded = false;
}
