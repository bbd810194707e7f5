#include <tapegraph/io/weights.hpp>

tapegraph::tensor<float> read(const char* path, const char* name) {
    return tapegraph::tensor<float>(tapegraph::io::read_safetensors(path).at(name));
}
