// expect: TapeGraph needs C++20: compile with -std=c++20
// expect-errors: 1
// expect-lines: 12
// flags: -std=c++17
#include <tapegraph/tapegraph.hpp>

int main() {}
