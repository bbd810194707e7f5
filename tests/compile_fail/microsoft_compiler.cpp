// expect: TapeGraph needs g++ or clang, whose attributes it uses
// expect-elsewhere: it is the compiler that is wrong
// flags: -D_MSC_VER=1940 -Wno-builtin-macro-redefined -U__clang__
#include <tapegraph/tensor.hpp>

int main() {}
