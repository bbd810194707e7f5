#include <damaged/folder.hpp>

#include <tapegraph/formats/npy.hpp>

#include <string>
#include <vector>

namespace {

std::string file(const tapegraph::io::host_array& array) {
    const auto bytes = tapegraph::io::npy_to_bytes(array);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace

std::vector<std::string> sound_files() {
    using tapegraph::dtype;
    using tapegraph::io::host_array;
    std::string columns = file(host_array::zeros(dtype::i16, {3, 5}));
    columns.replace(columns.find("False, "), 7, "True,  ");
    std::string big = file(host_array::zeros(dtype::f64, {2, 2}));
    big.replace(big.find("<f8"), 3, ">f8");
    return {file(host_array::zeros(dtype::f32, {4, 3})), file(host_array::zeros(dtype::boolean, {9})),
            file(host_array::zeros(dtype::u8, {})), columns, big};
}

bool read_damaged(const std::string& bytes) {
    try {
        static_cast<void>(tapegraph::io::read_npy_array(folder().write("damaged", bytes)));
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 16; // the shape as numbers, and two copies where columns become rows
