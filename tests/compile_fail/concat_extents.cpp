// expect: ill_formed_model<
// expect: concat: extents
// expect: {"concat_extents.cpp:16"}
// expect: {"f32[6,4]"}
// expect: {"f32[6,3]"}
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

struct wrong {
    static constexpr wrong get() { return {}; }
    constexpr auto operator()(auto scope, auto x) const {
        const auto narrow = slice(x, {tg::all, {0, 3}});
        return tg::concat({x, x, narrow}, 0);
    }
};

using model = tg::ir::prediction_trace<wrong, tg::spec<float, 6, 4>>;
const auto& program = tg::ir::compile_program<model>();
