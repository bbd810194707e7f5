// needs: zlib
#include <damaged/folder.hpp>

#include <tapegraph/formats/npz.hpp>

#include <string>
#include <vector>

std::vector<std::string> sound_files() {
    using tapegraph::dtype;
    using tapegraph::io::host_array;
    std::vector<std::string> files;
    const auto path = folder().path() / "sound";
    for (const bool compressed : {false, true}) {
        tapegraph::io::write_npz_arrays(
            path, {{"x", host_array::zeros(dtype::f32, {4, 3})}, {"flags", host_array::zeros(dtype::boolean, {200})}},
            {.compressed = compressed});
        files.push_back(support::read_text(path));
    }
    return files;
}

bool read_damaged(const std::string& bytes) {
    try {
        static_cast<void>(tapegraph::io::read_npz_arrays(folder().write("damaged", bytes)));
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 4 * 1032; // what deflate can make of a byte, while it grows
