#include <damaged/folder.hpp>

#include <tapegraph/formats/safetensors.hpp>

#include <vector>

std::vector<std::string> sound_files() {
    using namespace tapegraph;
    const std::vector<float> kernel{1, 2, 3, 4, 5, 6};
    const std::vector<std::int64_t> labels{7, -8};
    const bool flag = true;
    std::vector<std::string> files;
    const auto path = folder().path() / "sound";
    io::write_safetensors_arrays(path, {{"kernel", dtype::f32, {2, 3}, kernel.data()}}, {});
    files.push_back(support::read_text(path));
    io::write_safetensors_arrays(path,
                                 {{"a", dtype::f32, {3, 2}, kernel.data()},
                                  {"b", dtype::i64, {2}, labels.data()},
                                  {"c", dtype::boolean, {}, &flag}},
                                 {{"format", "pt"}, {"step", "12"}});
    files.push_back(support::read_text(path));
    io::write_safetensors_arrays(path, {}, {});
    files.push_back(support::read_text(path));
    return files;
}

bool read_damaged(const std::string& bytes) {
    try {
        static_cast<void>(tapegraph::io::read_safetensors_file(folder().write("damaged", bytes)));
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 64; // the names of the header, each three times
