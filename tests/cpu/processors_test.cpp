#include <tapegraph/cpu/caches.hpp>
#include <tapegraph/cpu/parallel.hpp>

#include <doctest/doctest.h>

#include "support/messages.hpp"

#include <cstdlib>
#include <string>

#if defined(__linux__)
#include <sched.h>
#endif

namespace processors_test {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu::detail;

TEST_CASE("a quota grants whole processors, at least one") {
    CHECK(cpu::processors_of_quota("200000 100000") == 2);
    CHECK(cpu::processors_of_quota("150000 100000") == 2); // one and a half: two threads keep it busy
    CHECK(cpu::processors_of_quota("10000 100000") == 1);
    CHECK(cpu::processors_of_quota("9000000000000 1") == 1 << 15);
    for (const char* none : {"max 100000", "", "max", "-1 100000", "0 100000", "100000", "100000 0", "100000 x", " "})
        CHECK(cpu::processors_of_quota(none) == 0);
}

TEST_CASE("the size of a cache in the system's words") {
    CHECK(cpu::bytes_of_cache("1024K") == 1 << 20);
    CHECK(cpu::bytes_of_cache("2M") == 1 << 21);
    CHECK(cpu::bytes_of_cache("65536") == 65536);
    for (const char* none : {"", "K", "-1K", "1G", "1 M", "1.5M", "99999999999M", "99999999999999999999K"})
        CHECK(cpu::bytes_of_cache(none) == 0);
}

TEST_CASE("the first number of a variable is the number of threads") {
    CHECK(cpu::threads_of("4") == 4);
    CHECK(cpu::threads_of(" 4,2") == 4);
    CHECK(cpu::threads_of(" 4 ") == 4);
    CHECK(cpu::threads_of("99999") == 1 << 15);
    for (const char* none : {"", "0", "-3", "many", ",2", "4x", "2.5", "99999999999"}) CHECK(cpu::threads_of(none) == 0);
}

#if !defined(_WIN32)
// Sets a variable and puts the old value back.
struct variable {
    variable(const char* name, const char* value) : name_(name) {
        if (const char* const old = std::getenv(name)) old_ = old, set_ = true;
        value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
    }
    ~variable() { set_ ? ::setenv(name_, old_.c_str(), 1) : ::unsetenv(name_); }
    const char* name_;
    std::string old_;
    bool set_ = false;
};

TEST_CASE("the environment says how many threads, or the system") {
    const variable no_openmp("OMP_NUM_THREADS", nullptr), none("TAPEGRAPH_NUM_THREADS", nullptr);
    CHECK(cpu::wanted_threads() == cpu::system_processors());
    CHECK(cpu::threads_of_openmp(5) == 5);
    const variable openmp("OMP_NUM_THREADS", "3,1");
    CHECK(cpu::wanted_threads() == 3);
    CHECK(cpu::threads_of_openmp(5) == 3);
    {
        const variable own("TAPEGRAPH_NUM_THREADS", "7");
        CHECK(cpu::wanted_threads() == 7);
    }
    for (const char* wrong : {"0", "two", "-1", "2 threads"}) {
        const variable own("TAPEGRAPH_NUM_THREADS", wrong);
        CHECK(support::message_of<tg::argument_error>([] { (void)cpu::wanted_threads(); }) ==
              "TAPEGRAPH_NUM_THREADS='" + std::string(wrong) + "': expected a number of threads, 1 or more");
    }
}
#endif

TEST_CASE("the system has processors, fewer where the affinity is less") {
    const int all = cpu::system_processors();
    CHECK(all >= 1);
#if defined(__linux__)
    cpu_set_t before, one;
    REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
    CHECK(all <= CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &before)) {
            CPU_SET(i, &one);
            break;
        }
    REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(cpu::system_processors() == 1);
    ::sched_setaffinity(0, sizeof before, &before);
#endif
}

} // namespace processors_test
