// The umbrella is not the only header that a program may include first.
// expect: TapeGraph needs C++20: compile with -std=c++20
// expect-elsewhere: it is the command that is wrong
// flags: -std=c++17
#include <tapegraph/train/progress.hpp>

#include <tapegraph/ops/ops.hpp>

int main() {}
