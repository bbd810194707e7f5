// The header of weights in files, without a call of it.
#include <tapegraph/io/weights.hpp>
#include <tapegraph/tapegraph.hpp>

int main() {}
