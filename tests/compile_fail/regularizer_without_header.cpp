// expect: regularizer: needs #include <tapegraph/nn/regularizer.hpp>
// expect: regularizer_without_header.cpp:
// expect: {"score"}
// A penalty that is not made by the types of its header is not left out in silence.
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct held {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "score", x, {.kernel_regularizer = {tg::regularizer_kind::l1_l2, 0, 0.1}});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(held{}, tg::spec<float, tg::dyn, 2>{}, tg::mean_squared_error{}, tg::sgd{});
    return static_cast<int>(model.parameter_count());
}
