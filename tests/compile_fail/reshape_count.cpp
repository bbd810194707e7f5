// expect: ill_formed_model<
// expect-gcc: {"reshape: number of elements differs"}
// expect-clang: {"reshape: number of elements di
// expect: {"reshape_count.cpp:15"}
// expect: {"f32[6,4]"}
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

struct wrong {
    static constexpr wrong get() { return {}; }
    constexpr auto operator()(auto scope, auto x) const {
        return reshape(x, {5, 5});
    }
};

using model = tg::ir::prediction_trace<wrong, tg::spec<float, 6, 4>>;
const auto& program = tg::ir::compile_program<model>();
