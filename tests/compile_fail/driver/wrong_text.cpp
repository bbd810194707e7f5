// expect: matmul: ranks differ
// The message below is another one, so the driver must object.
#include <tapegraph/tapegraph.hpp>

static_assert(sizeof(int) == 0, "matmul: inner extents differ");
