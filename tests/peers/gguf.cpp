// Writes the tensors of a GGUF file as an .npz, bf16 as f32, and prints its metadata of plain types: gguf IN.gguf OUT.npz
// needs: zlib
#include <tapegraph/formats/foreign_values.hpp>
#include <tapegraph/formats/gguf.hpp>
#include <tapegraph/formats/npz.hpp>

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <utility>

int main(int argc, char** argv) {
    namespace io = tapegraph::io;
    if (argc != 3) return 2;
    try {
        const io::gguf_reader file(argv[1]);
        for (const auto& [key, entry] : file.metadata()) {
            if (const auto* const text = std::get_if<std::string>(&entry.value))
                std::printf("%s\t%s\n", key.c_str(), text->c_str());
            if (const auto* const number = std::get_if<std::int64_t>(&entry.value))
                std::printf("%s\t%lld\n", key.c_str(), static_cast<long long>(*number));
            if (const auto* const real = std::get_if<double>(&entry.value))
                std::printf("%s\t%.17g\n", key.c_str(), *real);
            if (const auto* const texts = std::get_if<std::vector<std::string>>(&entry.value))
                std::printf("%s\t%zu texts\n", key.c_str(), texts->size());
        }
        std::map<std::string, io::host_array> arrays;
        for (auto& [name, array] : io::read_gguf(argv[1])) {
            if (array.type == tapegraph::dtype::bf16) io::detail::convert_floats(array, tapegraph::dtype::f32);
            arrays.emplace(name, std::move(array));
        }
        io::write_npz_arrays(argv[2], arrays);
    } catch (const std::exception& failure) {
        std::puts(failure.what());
        return 1;
    }
    return 0;
}
