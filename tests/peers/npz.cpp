// needs: zlib
// Reads an .npz of NumPy's and writes it again, stored and deflated, and each array as an .npy: npz IN.npz FOLDER
#include <tapegraph/formats/npz.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    try {
        const std::filesystem::path folder = argv[2];
        const auto arrays = tapegraph::io::read_npz_arrays(argv[1]);
        tapegraph::io::write_npz_arrays(folder / "stored.npz", arrays);
        tapegraph::io::write_npz_arrays(folder / "packed.npz", arrays, {.compressed = true});
        for (const auto& [name, array] : arrays) tapegraph::io::write_npy_array(folder / (name + ".npy"), array);
    } catch (const std::exception& failure) {
        std::puts(failure.what());
        return 1;
    }
    return 0;
}
