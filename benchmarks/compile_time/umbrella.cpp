// What every program pays before its first line.
#include <tapegraph/tapegraph.hpp>

int main() {}
