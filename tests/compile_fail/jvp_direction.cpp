// expect: ill_formed_model<
// expect: jvp: shape or element type of a direction differs
// expect: {"f32[4]"}
// expect: {"f32[3]"}
#include <tapegraph/compile/function.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

constexpr auto f = [](auto x) { return tanh(x); };

const auto compiled = tg::function<tg::graph>(tg::jvp(f), tg::spec<float, 3>{}, tg::spec<float, 4>{});
