// expect: ill_formed_model<
// expect: split: the extent
// expect: {"split_not_divisible.cpp:14"}
// expect: {"f32[6,4]"}
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

struct wrong {
    static constexpr wrong get() { return {}; }
    constexpr auto operator()(auto scope, auto x) const {
        return tg::split<3>(x, 1)[0];
    }
};

using model = tg::ir::prediction_trace<wrong, tg::spec<float, 6, 4>>;
const auto& program = tg::ir::compile_program<model>();
