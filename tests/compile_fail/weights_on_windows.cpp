// expect: this header of TapeGraph needs files of POSIX (locks, mappings, patterns), which Windows lacks: include <tapegraph/tapegraph.hpp>
// expect-elsewhere: it is the system that is wrong
// flags: -D_WIN32
#include <tapegraph/io/weights.hpp>

int main() {}
