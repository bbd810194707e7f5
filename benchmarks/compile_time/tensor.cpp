// The cost of the header for programs that compile no models.
#include <tapegraph/tensor.hpp>

int main() {}
