#include <tapegraph/graph/device_memory.hpp>

#include <support/captured_stderr.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace captured_steps_test {

using namespace tapegraph;

namespace {

/// Logs the calls that it receives.
class logging_device final : public runtime::device_runtime {
public:
    std::string calls;
    bool capturing = false, makes_graphs = true;

    device id() const override { return device::cuda(0); }
    void enter() override {}
    void* allocate(std::size_t, const char*) override { return nullptr; }
    void release(void*) noexcept override {}
    void* scratch(std::size_t) override { return nullptr; }
    void upload(void*, const void*, std::size_t) override {}
    void feed(void*, const void*, std::size_t) override {}
    void bring_to_host(const piece*, int) override {}
    void copy(void*, const void*, std::size_t) override {}
    void wait() override {}
    void* constant(const void*, std::size_t) override { return nullptr; }
    void* stream() override { return nullptr; }
    void* fault() override { return nullptr; }
    std::int64_t publish(const void*, std::size_t) override { return 0; }
    const void* published(std::int64_t) override { return nullptr; }
    void begin_capture() override { calls += "begin ", capturing = true; }
    void* end_capture() override {
        calls += "end ", capturing = false;
        return makes_graphs ? this : nullptr;
    }
    void replay(void*) override { calls += "replay "; }
    void drop(void*) noexcept override { calls += "drop "; }
};

struct recorded {
    logging_device device;
    std::string errors;
    /// The calls of four runs of `launch`.
    template <class F>
    recorded(bool makes_graphs, const F& launch) {
        device.makes_graphs = makes_graphs;
        errors = test::captured_stderr([&] {
            ir::captured_steps steps(&device);
            for (int i = 0; i < 4; ++i) {
                try {
                    steps.run({7}, [&] {
                        device.calls += "launch ";
                        launch(device);
                    });
                } catch (const std::exception&) {
                    device.calls += "error ";
                }
            }
        });
    }
};

} // namespace

TEST_CASE("captured steps: launched, recorded, then replayed") {
    const recorded r(true, [](const auto&) {});
    CHECK(r.device.calls == "launch begin launch end replay replay replay drop ");
    CHECK(r.errors.empty());
}

TEST_CASE("captured steps: what cannot be captured is launched, and reported once") {
    const recorded none(false, [](const auto&) {});
    CHECK(none.device.calls == "launch begin launch end launch launch launch ");
    const recorded refused(true, [](const logging_device& d) {
        if (d.capturing) throw device_error("not in a capture");
    });
    CHECK(refused.device.calls == "launch begin launch end drop launch launch launch ");
    CHECK(refused.errors ==
          "tapegraph: a program's steps are launched one by one, they cannot be captured: not in a capture\n");
}

TEST_CASE("captured steps: a mistake of the caller is thrown, and the capture ends") {
    int runs = 0;
    const recorded r(true, [&](const auto&) {
        if (++runs == 2) throw argument_error("no");
    });
    CHECK(r.device.calls == "launch begin launch end drop error begin launch end replay replay drop ");
}

} // namespace captured_steps_test
