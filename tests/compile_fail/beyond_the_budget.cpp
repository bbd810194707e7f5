// A model that exceeds the compiler's budget (a lowered one here): what raises it, and none of what follows from it.
// flags-gcc: -fconstexpr-ops-limit=350000
// expect-gcc: -fconstexpr-ops-limit=2000000000
// flags-clang: -fconstexpr-steps=4000
// expect-clang: -fconstexpr-steps=50000000
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct deep {
    constexpr auto operator()(auto scope, auto x) const {
        for (int i = 0; i < 12; ++i) x = tg::dense(scope / i, x, {.units = 4});
        return x;
    }
};

int main() { auto made = tg::compile<tg::graph>(deep{}, tg::spec<float, tg::dyn, 4>{}, tg::mean_squared_error{}, tg::sgd{}); }
