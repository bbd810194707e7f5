#include <cuda/device_array.hpp>

#include <tapegraph/cuda/context.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace context_test {

namespace tg = tapegraph;
using tg::cuda::context;

TEST_CASE("context: the random state and the fault record are in the device's memory") {
    context& c = context::of(0);
    const tg::random_state state{7, 3};
    c.set_random(state);
    tg::random_state got;
    tg::cuda::driver::copy(&got, c.random(), sizeof got, c.stream());
    tg::cuda::driver::wait(c.stream());
    CHECK(got.seed == 7);
    CHECK(got.step == 3);

    struct record {
        int kind, place;
    } const made{2, 12};
    std::vector<record> memory(context::fault_bytes / sizeof(record));
    const auto taken = [&] {
        c.send_fault(memory.data());
        tg::cuda::driver::wait(c.stream());
        return memory[0];
    };
    CHECK(taken().kind == 0);
    tg::cuda::driver::copy(c.fault(), &made, sizeof made, c.stream());
    CHECK(taken().place == 12);
    CHECK(taken().kind == 0); // read and cleared
}

TEST_CASE("context: the first device's buffers, streams and report") {
    context& c = context::of(0);
    CHECK(&context::of(0) == &c);
    CHECK(&context::current() == &c);
    CHECK(c.stream() == c.memory().stream());
    CHECK(c.stream() != c.copy_stream());
    void* const at = c.memory().allocate(1000, "test");
    tg::cuda::driver::fill(at, 5, 1000, c.stream());
    unsigned char last = 0;
    tg::cuda::driver::copy(&last, static_cast<char*>(at) + 999, 1, c.stream());
    tg::cuda::driver::wait(c.stream());
    CHECK(last == 5);
    c.memory().release(at);

    const auto all = tg::list_devices();
    REQUIRE(all.size() >= 2);
    CHECK(all[1].id == tg::device::cuda(0));
    CHECK(all[1].name == c.properties().name);
    CHECK(all[1].memory == c.properties().memory);
    CHECK(all[1].multiprocessors > 0);
    CHECK_NOTHROW(tg::check_available(tg::device::cuda(0)));
}

#ifdef TG_SIMT
namespace {
/// Restores the imitated machine after a test.
struct restored {
    int devices = tg::cuda::driver::imitation::instance().devices;
    ~restored() {
        tg::cuda::driver::imitation::instance().devices = devices;
        tg::cuda::driver::use(0);
    }
};
} // namespace

TEST_CASE_FIXTURE(restored, "context: one per device, made when it is first used") {
    auto& machine = tg::cuda::driver::imitation::instance();
    machine.devices = 2;
    context& first = context::of(0);
    CHECK(&context::of(0) == &first);
    context& second = context::of(1);
    CHECK(&second != &first);
    CHECK(&context::current() == &second); // it was made current
    CHECK(second.device() == 1);
    CHECK(second.properties().name == "imitated device 1");
    CHECK(&second.memory() == &tg::cuda::memory_pool::of(1));
    CHECK(second.stream() == second.memory().stream());
    CHECK(second.stream() != second.copy_stream());
    CHECK(second.stream() != first.stream());
    CHECK(&second.blas() != &first.blas());
    CHECK(&context::of(0) == &first);
    CHECK(tg::cuda::driver::current_device() == 0);
    const int switches = machine.switches;
    CHECK(&context::current() == &first);
    CHECK(machine.switches == switches); // it is current
}

TEST_CASE_FIXTURE(restored, "context: devices that are not there") {
    auto& machine = tg::cuda::driver::imitation::instance();
    CHECK_THROWS_WITH_AS(context::of(5), "cuda:5 does not exist: this machine has cuda:0 alone", tg::device_error);
    machine.devices = 0;
    CHECK_THROWS_WITH_AS(context::of(5), "cuda:5 cannot be used: no device is imitated", tg::device_error);
    CHECK_THROWS_AS(context::of(-1), tg::argument_error);
}
#endif

} // namespace context_test
