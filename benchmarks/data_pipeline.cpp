#include <tapegraph/data/pipeline.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <tuple>
#include <vector>

/// Measures the share of an epoch that a training step waits for its data, with two threads whose
/// preprocessing together is faster than the step, and the memory that the ring takes meanwhile.
/// Steps and preprocessing are sleeps of known length, as on a machine whose kernels and workers
/// have cores of their own; with "busy" they compute instead.
///
/// It then measures padded batches of 64 records of 1 to 1,000 numbers: the time of a batch whose
/// shape is given, and of one whose longest record decides.
///
///     bench_data_pipeline [busy]
///     bench_data_pipeline padded

namespace tg = tapegraph;
namespace data = tapegraph::data;

namespace {

bool busy = false;

void pass(double seconds) {
    const double end = tg::detail::steady_seconds() + seconds;
    if (busy) {
        while (tg::detail::steady_seconds() < end) {}
        return;
    }
    std::timespec wait{0, static_cast<long>(seconds * 1e9)};
    ::nanosleep(&wait, nullptr);
}

void padded(const char* what, const data::padded_options& options) {
    constexpr std::int64_t rows = 64, batches = 2000;
    const auto set =
        data::range(rows * batches)
            .map([](std::int64_t i) { return std::vector<float>(static_cast<std::size_t>(i * 7919 % 1000 + 1), 1.0f); })
            .padded_batch(rows, options)
            .prefetch(2);
    const std::int64_t before = tg::eager_memory().in_use;
    tg::reset_peak_memory();
    const std::clock_t start = std::clock();
    for (auto& batch : set.epoch(0)) static_cast<void>(batch);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::printf("%-34s %8.1f us of a processor per batch   ring %lld bytes, tensors took %lld\n", what,
                1e6 * seconds / static_cast<double>(batches), static_cast<long long>(set.memory_bytes()),
                static_cast<long long>(tg::eager_memory().peak - before));
}

} // namespace

int main(int count, char** arguments) {
    if (count > 1 && std::strcmp(arguments[1], "padded") == 0) {
        for (int round = 0; round < 3; ++round) {
            padded("padded, shapes given", {.record_shapes = {{1000}}});
            padded("padded, the longest decides", {});
        }
        return EXIT_SUCCESS;
    }
    busy = count > 1 && std::strcmp(arguments[1], "busy") == 0;
    constexpr std::int64_t rows = 32, records = 200 * rows;
    constexpr double step = 8e-3; // per batch
    std::printf("%-34s %8s %10s %10s %10s\n", "preprocessing of a batch / a step", "threads", "epoch s", "waited s",
                "waited %");
    for (const double share : {0.5, 0.8, 1.2, 1.6, 1.8, 2.5})
        for (const int threads : {1, 2}) {
            const double each = share * step / rows;
            const auto set = data::range(records)
                                 .shuffle(1)
                                 .map(
                                     [each](std::int64_t i) {
                                         pass(each);
                                         return std::tuple(data::written<float>({64, 64, 3},
                                                                                [i](std::span<float> to) {
                                                                                    for (float& v : to)
                                                                                        v = static_cast<float>(i);
                                                                                }),
                                                           static_cast<std::int32_t>(i % 10));
                                     },
                                     {.threads = threads})
                                 .batch(rows, {.record_shapes = {{64, 64, 3}, {}}})
                                 .prefetch(2);
            const std::int64_t before = tg::eager_memory().in_use;
            tg::reset_peak_memory();
            const double start = tg::detail::steady_seconds();
            for (auto& [images, labels] : set.epoch(0)) {
                static_cast<void>(images);
                static_cast<void>(labels);
                pass(step);
            }
            const double seconds = tg::detail::steady_seconds() - start;
            const auto report = set.report();
            std::printf("%-34.1f %8d %10.3f %10.4f %10.2f   ring %lld bytes, taken %lld\n", share, threads, seconds,
                        report.stages.back().wait_seconds, 100 * report.stages.back().wait_seconds / seconds,
                        static_cast<long long>(set.memory_bytes()),
                        static_cast<long long>(tg::eager_memory().peak - before));
        }
    return EXIT_SUCCESS;
}
