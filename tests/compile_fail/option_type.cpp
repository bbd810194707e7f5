// An option of a layer that has another type.
// expect: no_such_option_in<tapegraph::dense_options>
// expect-longer-clang: clang prints the way into a model in twelve lines
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct net {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = ""});
        return tg::dense(scope / "score", tanh(h), {.units = 1});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(net{}, tg::spec<float, tg::dyn, 2>{});
    const tg::tensor<float> x = tg::ones<float>({3, 2});
}
