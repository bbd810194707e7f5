// expect: ill_formed_model<
// expect: gather, scatter_add: axis
// expect: {"gather_axis.cpp:15"}
// expect: {"f32[6,4]"}
// expect: {"i32[6]"}
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

struct wrong {
    static constexpr wrong get() { return {}; }
    constexpr auto operator()(auto scope, auto x) const {
        return gather(x, argmax(x, 1), 2);
    }
};

using model = tg::ir::prediction_trace<wrong, tg::spec<float, 6, 4>>;
const auto& program = tg::ir::compile_program<model>();
