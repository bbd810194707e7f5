// Parts of -ffast-math, too, as far as the compiler tells: clang defines nothing for these.
// expect-gcc: TapeGraph needs exact arithmetic: compile without -ffast-math
// expect-clang: clang does not tell
// expect-elsewhere: it is the command that is wrong
// flags: -O2 -funsafe-math-optimizations
#ifdef __clang__
#error "clang does not tell"
#endif
#include <tapegraph/core/error.hpp>

int main() {}
