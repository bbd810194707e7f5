// Without run-time type information programs compile.
// expect-success
// flags: -fno-rtti
#include <tapegraph/data/dataset.hpp>
#include <tapegraph/data/loader.hpp>
#include <tapegraph/minimize.hpp>

int main() {}
