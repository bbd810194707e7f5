// The header of weights in files, and nobody who calls it.
#include <tapegraph/io/weights.hpp>
#include <tapegraph/tapegraph.hpp>

int main() {}
