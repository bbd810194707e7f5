// needs: zlib
// Writes the tensors of a file of torch.save as an .npz, bf16 as f32: pytorch_weights IN.pt OUT.npz
#include <tapegraph/formats/foreign_values.hpp>
#include <tapegraph/formats/npz.hpp>
#include <tapegraph/formats/pytorch.hpp>

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <utility>

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    try {
        std::map<std::string, tapegraph::io::host_array> arrays;
        for (auto& [name, array] : tapegraph::io::read_pytorch(argv[1])) {
            if (array.type == tapegraph::dtype::bf16)
                tapegraph::io::detail::convert_floats(array, tapegraph::dtype::f32);
            arrays.emplace(name, std::move(array));
        }
        tapegraph::io::write_npz_arrays(argv[2], arrays);
    } catch (const std::exception& failure) {
        std::puts(failure.what());
        return 1;
    }
    return 0;
}
