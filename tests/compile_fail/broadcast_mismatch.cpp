// expect: ill_formed_model<
// expect: {"add: shapes do not broadcast"}
// expect: {"broadcast_mismatch.cpp:17"}
// expect: {"f32[?,4]"}
// expect: {"f32[3]"}
// expect: {"block/2"}
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

struct wrong {
    static constexpr wrong get() { return {}; }
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = (scope / "block" / 2).variable_like(x, "w", {3});
        return eval(x + w * 2);
    }
};

using model = tg::ir::prediction_trace<wrong, tg::spec<float, tg::dyn, 4>>;
const auto& program = tg::ir::compile_program<model>();
