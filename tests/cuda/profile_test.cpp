#include <cuda/whole_programs.hpp>

#include <tapegraph/profile.hpp>

#include <doctest/doctest.h>

#include <algorithm>

namespace device_profile_test {

/// Profiles of steps on a GPU or the imitated device.

namespace tg = tapegraph;
using tg::profiling::phase;

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = 5});
        return tg::dense(scope / "score", tanh(h), {.units = 1});
    }
};

double ticks = 0;
double ticking() { return ticks += 1; }

template <class Mode>
void check_steps() {
    const on_device::late_device late;
    auto model = tg::compile<Mode>(network{}, tg::spec<float, tg::dyn, 3>{}, tg::sigmoid_cross_entropy{},
                                   tg::sgd{.learning_rate = 0.5}, {.seed = 5, .device = tg::device::cuda(0)});
    const auto x = tg::ones<float>({4, 3}), y = tg::ones<float>({4, 1});
    model.train_on_batch(x, y);
    const auto before = model.variables()["score/kernel"].template value<float>().to_vector();
    // More steps than it takes until a program is captured: calls are still profiled.
    const tg::profile_result r = tg::profile(model, x, y, {.steps = 3, .warm_up = 3, .clock = ticking});
    CHECK(r.device == "cuda:0");
    CHECK(r.calls.size() >= 6);
    for (const auto& c : r.calls) {
        CHECK(c.count == 3);
        CHECK(c.seconds.median == 1);
        CHECK(c.bound == 0); // the peaks of a GPU are unknown
    }
    CHECK(r.seconds_of(phase::forward) + r.seconds_of(phase::backward) + r.seconds_of(phase::update) ==
          static_cast<double>(r.calls.size()));
    CHECK(std::any_of(r.calls.begin(), r.calls.end(),
                      [](const auto& c) { return c.phase == phase::backward && c.layer == "hidden"; }));
    CHECK(model.step() == 1);
    CHECK(model.variables()["score/kernel"].template value<float>().to_vector() == before);
    CHECK(model.train_on_batch(x, y).loss > 0);
    CHECK(tg::profile(model, x, y, {.steps = 1, .peak_flops = 1, .bandwidth = 1}).calls.front().bound > 0);
}

} // namespace

TEST_CASE("a profile of graph mode on a device") { check_steps<tg::graph>(); }
TEST_CASE("a profile of eager mode on a device") { check_steps<tg::eager>(); }

} // namespace device_profile_test
