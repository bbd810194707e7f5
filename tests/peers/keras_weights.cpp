// needs: zlib
// needs: hdf5
// Writes the arrays of a file of Keras as an .npz, by the names of their layers, and prints these in its order: keras_weights IN OUT.npz
#include <tapegraph/formats/npz.hpp>
#include <tapegraph/io/keras.hpp>

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <utility>

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    try {
        std::map<std::string, tapegraph::io::host_array> arrays;
        for (auto& [name, array] : tapegraph::io::read_keras(argv[1])) {
            std::puts(name.c_str());
            arrays.emplace(name, std::move(array));
        }
        tapegraph::io::write_npz_arrays(argv[2], arrays);
    } catch (const std::exception& failure) {
        std::puts(failure.what());
        return 1;
    }
    return 0;
}
