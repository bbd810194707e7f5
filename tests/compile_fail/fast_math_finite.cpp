// expect: TapeGraph needs exact arithmetic: compile without -ffast-math
// expect-errors: 1
// expect-lines: 12
// flags: -ffinite-math-only
#include <tapegraph/tapegraph.hpp>

int main() {}
