// expect: vmap: no argument is mapped
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

auto none(const tg::tensor<float>& x) { return tg::vmap<tg::unbatched>([](auto v) { return v + 1; })(x); }
