// expect: TapeGraph needs exact arithmetic: compile without -ffast-math
// expect-elsewhere: it is the command that is wrong
// flags: -O2 -ffast-math
#include <tapegraph/tapegraph.hpp>

int main() {}
