// Writes tensors to a file and reads them back.
#include <tapegraph/io/weights.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdio>

namespace tg = tapegraph;

int main() {
    tg::io::write_safetensors("points.safetensors", {{"x", tg::tensor<float>{1, 2, 3}}});
    const tg::tensor<float> x(tg::io::read_safetensors("points.safetensors").at("x"));
    std::printf("%g\n", sum(x).item());
}
