// expect: ill_formed_model<
// expect: jacobian: more than 64 rows or columns to unroll
// expect: {"f32[70]"}
#include <tapegraph/compile/function.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

constexpr auto wide = [](auto x) { return tanh(x); };

const auto compiled = tg::function<tg::graph>(tg::jacobian(wide), tg::spec<float, 70>{});
