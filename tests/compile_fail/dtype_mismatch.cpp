// expect: ill_formed_model<
// expect: {"multiply: element types differ"}
// expect: {"dtype_mismatch.cpp:17"}
// expect: {"f32[?,4]"}
// expect: {"f64[4]"}
// expect: {"wide"}
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

struct wrong {
    static constexpr wrong get() { return {}; }
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = (scope / "wide").template variable<double>("w", {4});
        return eval(x * w);
    }
};

using model = tg::ir::prediction_trace<wrong, tg::spec<float, tg::dyn, 4>>;
const auto& program = tg::ir::compile_program<model>();
