// The cost of the umbrella header, which every program pays before its first line.
#include <tapegraph/tapegraph.hpp>

int main() {}
