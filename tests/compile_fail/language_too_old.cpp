// expect: TapeGraph needs C++20: compile with -std=c++20
// expect-elsewhere: it is the command that is wrong
// flags: -std=c++17
#include <tapegraph/tapegraph.hpp>

int main() {}
