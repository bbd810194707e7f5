// expect: vmap: no argument is mapped
// expect-elsewhere: the check stands in the function that is called, which the compiler names first
// expect-longer: the way there is long
// expect-errors: 4
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

auto none(const tg::tensor<float>& x) { return tg::vmap<tg::unbatched>([](auto v) { return v + 1; })(x); }
