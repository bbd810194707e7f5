// expect: ill_formed_model<
// expect: jacobian: extents must be numbers
#include <tapegraph/compile/function.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

constexpr auto any_batch = [](auto x) { return tanh(x); };

const auto compiled = tg::function<tg::graph>(tg::jacobian(any_batch), tg::spec<float, tg::dyn, 2>{});
