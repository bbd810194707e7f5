// expect: <tapegraph/io.hpp> needs locks and mapped files of POSIX: on Windows include <tapegraph/tapegraph.hpp>
// expect-elsewhere: it is the system that is wrong
// flags: -D_WIN32
#include <tapegraph/io.hpp>

int main() {}
