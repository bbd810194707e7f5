// Writes a model's weights in files of limited size, reads what safetensors_shards.py made of them, and prints the sums.
#include <tapegraph/io/weights.hpp>

#include <cstdio>
#include <filesystem>
#include <string>

namespace tg = tapegraph;

int main(int, char** argv) {
    const std::filesystem::path folder = argv[2];
    if (std::string(argv[1]) == "write") {
        std::vector<tg::tensor<float>> values;
        std::vector<tg::io::safetensors_entry> entries;
        for (int i = 0; i < 7; ++i) values.push_back(tg::arange<float>(10 * i, static_cast<float>(i)));
        for (std::size_t i = 0; i < values.size(); ++i)
            entries.push_back({"layer/" + std::to_string(i) + "/kernel",
                               tg::dtype::f32,
                               {5, values[i].size() / 5},
                               values[i].data()});
        tg::io::write_safetensors_shards({folder / "model.safetensors", 400}, entries, {{"format", "pt"}});
        return 0;
    }
    for (const auto& [name, value] : tg::io::read_safetensors(folder / "model.safetensors.index.json"))
        std::printf("%s %g\n", name.c_str(),
                    static_cast<double>(tg::tensor<float>(tg::sum(tg::tensor<float>(value))).item()));
}
