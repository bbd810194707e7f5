// expect: with_device: the name of a device is
// expect: optionally followed by a device
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        const auto on = scope.with_device("/job:ps/task:first");
        return tg::dense(scope / "out", x, {.units = 3});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(network{}, tg::spec<float, tg::dyn, 6>{}, tg::mean_squared_error{}, tg::sgd{});
    return static_cast<int>(model.step());
}
