#include <tapegraph/formats/crc32c.hpp>

#if __has_include(<protozero/pbf_writer.hpp>)
#include <tapegraph/io/tensorboard.hpp>
#endif

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

/// Times the writing of events for TensorBoard, and their checksums.

namespace {

#if __has_include(<protozero/pbf_writer.hpp>)
struct folder {
    folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "tapegraph_events_XXXXXX").string();
        path = ::mkdtemp(pattern.data());
    }
    ~folder() { std::filesystem::remove_all(path); }
    std::filesystem::path path;
};

void scalar(benchmark::State& state) {
    const folder f;
    tapegraph::io::event_writer events(f.path / "run");
    std::int64_t step = 0;
    for (auto _ : state) events.scalar("train/loss", 0.5, ++step);
}
BENCHMARK(scalar);

void histogram(benchmark::State& state) {
    const folder f;
    tapegraph::io::event_writer events(f.path / "run");
    std::vector<float> values(static_cast<std::size_t>(state.range(0)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1009);
    std::int64_t step = 0;
    for (auto _ : state) events.histogram("kernel", values, ++step);
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(histogram)->Arg(1000)->Arg(1000000);
#endif

template <bool Table>
void checksum(benchmark::State& state) {
    const std::vector<std::uint8_t> bytes(static_cast<std::size_t>(state.range(0)), 7);
    for (auto _ : state) {
        if constexpr (Table)
            benchmark::DoNotOptimize(tapegraph::io::detail::crc32c_by_table(~0u, bytes.data(), bytes.size()));
        else
            benchmark::DoNotOptimize(tapegraph::io::crc32c(bytes.data(), bytes.size()));
    }
    state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(checksum<true>)->Arg(64)->Arg(1 << 20);
BENCHMARK(checksum<false>)->Arg(64)->Arg(1 << 20);

} // namespace
