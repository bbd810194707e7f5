#include <support/messages.hpp>

#include <tapegraph/core/device.hpp>

#include <doctest/doctest.h>

#include <string>

namespace tg = tapegraph;
using support::message_of;
using tg::device;

namespace {

/// A machine with GPUs, or without, for the length of a test.
struct backend {
    explicit backend(int count) : before(tg::detail::cuda_backend()) {
        devices = count;
        tg::detail::cuda_backend() = {
            [] { return devices; }, [] { return std::string("no driver"); },
            [](int i) {
                return tg::device_report{
                    device::cuda(i), "board " + std::to_string(i), std::size_t{80} << 30, 9, 0, 132};
            }};
    }
    ~backend() { tg::detail::cuda_backend() = before; }
    static inline int devices = 0;
    tg::detail::device_backend before;
};

} // namespace

static_assert(device::cpu() == device() && device::cuda() == device::cuda(0) && device::cuda(1) != device::cuda(0));
static_assert(device::cpu() < device::cuda() && device::cpu().is_cpu() && device::cuda(3).index() == 3);

TEST_CASE("device: names are read and written") {
    CHECK(device::cpu().name() == "cpu");
    CHECK(device::cuda(2).name() == "cuda:2");
    for (const device d : {device::cpu(), device::cuda(), device::cuda(11)}) CHECK(device::parse(d.name()) == d);
    CHECK(device::parse("gpu") == device::cuda(0));
    CHECK(device::parse("cuda") == device::cuda(0));
    CHECK(device::parse("gpu:1") == device::cuda(1));
    for (const char* text :
         {"", "tpu", "cpu:0", "gpu1", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "cuda:99999999999", ":1", "Cuda"}) {
        CAPTURE(text);
        CHECK(message_of<tg::argument_error>([&] { device::parse(text); }) ==
              "device '" + std::string(text) + "': expected cpu, gpu, cuda, or cuda:N with the GPU's number");
    }
    CHECK(message_of<tg::argument_error>([] { device::cuda(-2); }) == "device::cuda: the index is -2");
}

TEST_CASE("device: a program without CUDA has the CPU alone, and errors give the reason") {
    const auto all = tg::list_devices();
    REQUIRE(all.size() == 1);
    CHECK(all[0].id == device::cpu());
    CHECK(!all[0].name.empty());
    CHECK_NOTHROW(tg::check_available(device::cpu()));
    CHECK(message_of<tg::device_error>([] { tg::check_available(device::cuda()); }) ==
          "cuda:0 cannot be used: this program was built without CUDA (compile it with nvcc and link tapegraph::cuda)");
    CHECK(tg::available_or_cpu(device::cuda()) == device::cpu());
}

TEST_CASE("device: GPUs that are there, and those that are not") {
    {
        const backend none(0);
        CHECK(tg::list_devices().size() == 1);
        CHECK(message_of<tg::device_error>([] { tg::check_available(device::cuda(1)); }) ==
              "cuda:1 cannot be used: no driver");
        CHECK(tg::available_or_cpu(device::cuda()) == device::cpu());
    }
    {
        const backend one(1);
        CHECK(message_of<tg::device_error>([] { tg::check_available(device::cuda(1)); }) ==
              "cuda:1 does not exist: this machine has cuda:0 alone");
    }
    const backend two(2);
    CHECK_NOTHROW(tg::check_available(device::cuda(1)));
    CHECK(tg::available_or_cpu(device::cuda(1)) == device::cuda(1));
    CHECK(message_of<tg::device_error>([] { tg::check_available(device::cuda(2)); }) ==
          "cuda:2 does not exist: this machine has cuda:0 to cuda:1");
    auto all = tg::list_devices();
    REQUIRE(all.size() == 3);
    CHECK(all[2].id == device::cuda(1));
    CHECK(all[2].name == "board 1");
    all[0] = {device::cpu(), "some processor"};
    CHECK(tg::device_table(all) == "device  memory     capability  processors  name\n"
                                   "cpu     -          -           -           some processor\n"
                                   "cuda:0  80.00 GiB  9.0         132         board 0\n"
                                   "cuda:1  80.00 GiB  9.0         132         board 1\n");
}
