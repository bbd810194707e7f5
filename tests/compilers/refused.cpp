#include <tapegraph/tapegraph.hpp>

/// A warning, which front_ends.py must refuse.
int main() { const int unused = 3; }
