// expect: ill_formed_model<
// expect-gcc: {"variable: this path is already taken"}
// expect-clang: {"variable: this path is already
// expect: {"block/1"}
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

struct wrong { // one path, spelled in two ways
    static constexpr wrong get() { return {}; }
    constexpr auto operator()(auto scope, auto x) const {
        const auto a = (scope / "block" / 1).variable_like(x, "bias", {4});
        const auto b = (scope / "block/1").variable_like(x, "bias", {4});
        return eval(x + a + b);
    }
};

using model = tg::ir::prediction_trace<wrong, tg::spec<float, tg::dyn, 4>>;
const auto& program = tg::ir::compile_program<model>();
