#include <tapegraph/profile.hpp>
#include <tapegraph/profile/tensorboard.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace tensorboard_test {

namespace tg = tapegraph;

struct network {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "score", x, {.units = 2}); }
};

double ticks = 0;
double ticking() { return ticks += 1e-3; }

TEST_CASE("times of nodes have the names of the graph's") {
    auto model = tg::compile<tg::graph>(network{}, tg::spec<float, tg::dyn, 3>{}, tg::mean_squared_error{}, tg::sgd{});
    const tg::profile_result r = tg::profile(model, tg::ones<float>({2, 3}), tg::ones<float>({2, 2}),
                                             {.steps = 2, .peak_flops = 1, .bandwidth = 1, .clock = ticking});
    const auto times = tg::profiling::node_times(r, model.training_view());
    const auto names = tg::io::graph_call_names(model.training_view());
    REQUIRE(times.size() == names.size());
    for (std::size_t i = 0; i < times.size(); ++i) {
        CHECK(times[i].name == names[i]);
        CHECK(times[i].duration_us == doctest::Approx(1000));
        CHECK(times[i].device == "/device:CPU:0");
        if (i > 0) CHECK(times[i].start_us >= times[i - 1].start_us + 1000);
    }
    CHECK(std::any_of(times.begin(), times.end(), [](const auto& t) { return t.name.starts_with("score/"); }));
    CHECK(std::any_of(times.begin(), times.end(), [](const auto& t) { return t.bytes > 0; }));
}

} // namespace tensorboard_test
