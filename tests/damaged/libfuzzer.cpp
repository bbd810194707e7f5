/// Lets libFuzzer drive a target: `<reader>_libfuzzer -max_total_time=600 FOLDER`.

#include <damaged/target.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static_cast<void>(read_damaged(std::string(reinterpret_cast<const char*>(data), size)));
    return 0;
}

/// Its beginning, where the folder is empty: one of the sound files instead of no bytes.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    static const std::vector<std::string> sound = sound_files();
    if (size > 8 || sound.empty()) return LLVMFuzzerMutate(data, size, most);
    const std::string& file = sound[seed % sound.size()];
    size = file.size() < most ? file.size() : most;
    for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::uint8_t>(file[i]);
    return size;
}
