// <cstdio> and the umbrella come with the precompiled header.
#include <tapegraph/io/weights.hpp>

namespace tg = tapegraph;

tg::tensor<float> read(const char* path, const char* name); // reader.cpp

int main() {
    std::printf("TapeGraph %d.%d.%d\n", TAPEGRAPH_VERSION_MAJOR, TAPEGRAPH_VERSION_MINOR, TAPEGRAPH_VERSION_PATCH);
    const char* const path = "consumer.safetensors";
    const tg::tensor<float> x{1, 2, 4};
    tg::io::write_safetensors(path, {{"x \"\n", x}});
    const bool same = read(path, "x \"\n").to_vector() == x.to_vector();
    std::remove(path);
    return same ? 0 : 1;
}
