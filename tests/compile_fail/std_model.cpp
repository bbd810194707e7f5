// A function of std in a model; its overloads for numbers are not listed.
// expect: leave_out_std
// expect: std::sqrt(h)
// expect-longer-clang: clang prints the way into a model in twelve lines
#include <tapegraph/tapegraph.hpp>

#include <cmath>

namespace tg = tapegraph;

struct net {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = 32});
        return tg::dense(scope / "score", std::sqrt(h), {.units = 1});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(net{}, tg::spec<float, tg::dyn, 2>{});
    const tg::tensor<float> x = tg::ones<float>({3, 2});
}
