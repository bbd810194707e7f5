#include <tapegraph/tapegraph.hpp>

#include <cstdio>

int main() {
    std::printf("TapeGraph %d.%d.%d\n", TG_VERSION_MAJOR, TG_VERSION_MINOR, TG_VERSION_PATCH);
}
