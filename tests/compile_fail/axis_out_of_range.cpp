// expect: ill_formed_model<
// expect: {"reduction: axis outside the rank"}
// expect: {"axis_out_of_range.cpp:14"}
// expect: {"f32[?,4]"}
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

struct wrong {
    static constexpr wrong get() { return {}; }
    constexpr auto operator()(auto scope, auto x) const {
        return sum(tanh(x), 2);
    }
};

using model = tg::ir::prediction_trace<wrong, tg::spec<float, tg::dyn, 4>>;
const auto& program = tg::ir::compile_program<model>();
