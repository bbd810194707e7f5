// expect: TapeGraph needs exact arithmetic: compile without -ffast-math
// expect-errors: 1
// expect-lines: 12
// flags: -O2 -ffast-math
#include <tapegraph/tapegraph.hpp>

int main() {}
