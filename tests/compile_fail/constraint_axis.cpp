// expect: constraint: axis outside the rank
// expect: {"constraint_axis.cpp:12"}
// expect: {"score"}
#include <tapegraph/nn/constraint.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct held {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = relu(x);
        return tg::dense(scope / "score", h, {.bias_constraint = tg::constraints::max_norm{.axis = 1}});
    }
};

const auto table = tg::summarize(held{}, tg::spec<float, tg::dyn, 2>{});
