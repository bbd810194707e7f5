// expect-success
// What a regularizer needs is asked for by the model's type: models of the same loss that were compiled before its header was read
// do not count.
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct plain {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "score", x, {.units = 1}); }
};

auto early() {
    return tg::compile<tg::graph>(plain{}, tg::spec<float, tg::dyn, 2>{}, tg::mean_squared_error{}, tg::sgd{}).parameter_count();
}

#include <tapegraph/nn/constraint.hpp>
#include <tapegraph/nn/regularizer.hpp>

struct held {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "score", x,
                         {.kernel_regularizer = tg::regularizers::l2{}, .kernel_constraint = tg::constraints::max_norm{}});
    }
};

auto late() {
    return tg::compile<tg::graph>(held{}, tg::spec<float, tg::dyn, 2>{}, tg::mean_squared_error{}, tg::sgd{}).parameter_count();
}
