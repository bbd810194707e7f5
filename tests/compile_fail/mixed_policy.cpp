// A policy that is no 16-bit type.
// expect: mixed: the policy is a 16-bit type, tg::bfloat16 or tg::half
// expect-elsewhere: a static_assert in the function
#include <tapegraph/tapegraph.hpp>

#include <tapegraph/nn/mixed_precision.hpp>

namespace tg = tapegraph;

struct network {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "out", x, {.units = 1}); }
};

int main() { tg::mixed<float>(network{}); }
