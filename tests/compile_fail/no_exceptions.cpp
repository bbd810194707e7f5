// expect: TapeGraph reports errors by exceptions: compile without -fno-exceptions
// expect-elsewhere: it is the command that is wrong
// flags: -fno-exceptions
#include <tapegraph/tensor.hpp>

int main() {}
