// expect: block/9: features: the model has no layer and no named value of this path
// expect: {"body"}
#include <tapegraph/compile/features.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct network {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "block" / 1, x, {.units = 4}); }
};
struct inside {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::features<"block/9">(network{})(scope / "body", x);
    }
};

int main() {
    auto model = tg::compile<tg::eager>(inside{}, tg::spec<float, tg::dyn, 3>{});
    return static_cast<int>(model.parameter_count());
}
