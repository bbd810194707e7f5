// expect: ill_formed_model<
// expect: {"matmul: inner extents differ"}
// expect: {"matmul_inner_extents.cpp:15"}
// expect: {"f32[?,512]"}
// expect: {"f32[500,10]"}
// expect: {"mlp/out"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct mlp {
    constexpr auto operator()(auto scope, auto x) const {
        const auto layer = scope / "mlp" / "out";
        const auto w = layer.variable_like(x, "kernel", {500, 10});
        return matmul(x, w);
    }
};

int main() { auto model = tg::compile<tg::graph>(mlp{}, tg::spec<float, tg::dyn, 512>{}); }
