// expect: values of two vmaps meet and neither runs inside the other's values
// expect-elsewhere: the check stands in the function that is called, which the compiler names first
// expect-longer: the way there is long
// expect-errors-gcc: 15
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

// The inner vmap maps c, which knows nothing of the outer one's x.
auto meet(const tg::tensor<float>& a, const tg::tensor<float>& c) {
    return tg::vmap([c](auto x) { return tg::vmap([x](auto y) { return x + y; })(c); })(a);
}
