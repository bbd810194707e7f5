/// Times reading a file of weights that is in the page cache: the system's read() into existing
/// memory, and this library.

#include <tapegraph/formats/safetensors_reader.hpp>

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace io = tapegraph::io;

namespace {

constexpr int tensors = 64;
constexpr std::size_t each = 1 << 20; // floats

const std::filesystem::path& file() {
    static const std::filesystem::path path = [] {
        auto made = std::filesystem::temp_directory_path() / ("bench_safetensors_" + std::to_string(::getpid()));
        const std::vector<float> values(each, 1.5f);
        std::vector<io::safetensors_entry> entries;
        for (int i = 0; i < tensors; ++i)
            entries.push_back({"layer/" + std::to_string(i),
                               tapegraph::dtype::f32,
                               {static_cast<std::int64_t>(each)},
                               values.data()});
        io::write_safetensors_arrays(made, entries);
        std::atexit([] { std::filesystem::remove(file()); });
        return made;
    }();
    return path;
}
void count(benchmark::State& state) {
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(std::filesystem::file_size(file())));
}

void system_read(benchmark::State& state) {
    std::vector<char> to(std::filesystem::file_size(file()));
    for (auto _ : state) {
        const int handle = ::open(file().c_str(), O_RDONLY);
        std::size_t at = 0;
        while (at < to.size()) {
            const auto got = ::read(handle, to.data() + at, to.size() - at);
            if (got <= 0) break;
            at += static_cast<std::size_t>(got);
        }
        ::close(handle);
        benchmark::DoNotOptimize(to.data());
    }
    count(state);
}
BENCHMARK(system_read)->Unit(benchmark::kMillisecond);

/// As model.load does: into existing variables.
void into_variables(benchmark::State& state) {
    std::vector<std::vector<float>> to(tensors, std::vector<float>(each));
    for (auto _ : state) {
        const io::safetensors_reader reader(file(), io::file_access::sequential);
        std::size_t i = 0;
        for (const auto& [name, array] : reader.tensors())
            std::memcpy(to[i++].data(), array.bytes.data(), array.bytes.size());
        benchmark::DoNotOptimize(to.data());
    }
    count(state);
}
BENCHMARK(into_variables)->Unit(benchmark::kMillisecond);

/// Into new memory, which the system has to provide first.
void into_new_arrays(benchmark::State& state) {
    for (auto _ : state) {
        auto all = io::read_safetensors_file(file());
        benchmark::DoNotOptimize(all);
    }
    count(state);
}
BENCHMARK(into_new_arrays)->Unit(benchmark::kMillisecond);

/// Reads the header, and one tensor of 64.
void one_tensor(benchmark::State& state) {
    std::vector<float> to(each);
    for (auto _ : state) {
        const io::safetensors_reader reader(file());
        const auto& array = reader.at("layer/7");
        std::memcpy(to.data(), array.bytes.data(), array.bytes.size());
        benchmark::DoNotOptimize(to.data());
    }
}
BENCHMARK(one_tensor)->Unit(benchmark::kMillisecond);

} // namespace
