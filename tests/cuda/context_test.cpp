#define TG_SIMT
#include <simt/words.hpp>

#include <tapegraph/cuda/context.hpp>

#include <doctest/doctest.h>

namespace tg = tapegraph;
using tg::cuda::context;

namespace {
/// The imitated machine as it was, whatever a test changes.
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
}

TEST_CASE_FIXTURE(restored, "context: the random state and the fault record are in the device's memory") {
    context& c = context::of(0);
    auto& live = tg::cuda::driver::imitation::instance().live;
    CHECK(live.count(c.random()) == 1);
    CHECK(live.count(c.fault()) == 1);
    c.set_random({7, 3});
    CHECK(c.random()->seed == 7); // which tests may look into
    CHECK(c.random()->step == 3);
    struct record {
        int kind, place;
    };
    CHECK(c.take_fault<record>().kind == 0);
    *static_cast<record*>(c.fault()) = {2, 12};
    CHECK(c.take_fault<record>().place == 12);
    CHECK(c.take_fault<record>().kind == 0); // looked at and cleared
}

TEST_CASE_FIXTURE(restored, "context: devices that are not there") {
    auto& machine = tg::cuda::driver::imitation::instance();
    CHECK_THROWS_WITH_AS(context::of(5), "cuda:5 does not exist: this machine has cuda:0 alone", tg::device_error);
    machine.devices = 0;
    CHECK_THROWS_WITH_AS(context::of(0), "cuda:0 cannot be used: no device is imitated", tg::device_error);
}

TEST_CASE_FIXTURE(restored, "devices: the backend is known to a program that contains it") {
    const auto all = tg::list_devices();
    REQUIRE(all.size() == 2);
    CHECK(all[1].id == tg::device::cuda(0));
    CHECK(all[1].name == "imitated device 0");
    CHECK(all[1].memory == std::size_t{1} << 30);
    CHECK(all[1].major == 9);
    CHECK(all[1].multiprocessors == 4);
    CHECK_NOTHROW(tg::check_available(tg::device::cuda(0)));
}
