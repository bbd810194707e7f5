#include "models/encoder.hpp"

#include <tapegraph/traced.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

/// How the cost of a training step of the encoder grows with its depth, the length of the texts and the
/// batch: a graph made at run time, one thread, median milliseconds of processor time, and the
/// process's largest memory. One size for each call, since memory is that of the whole process.
///
/// Usage: bench_transformer_growth [blocks = 4] [length = 128] [batch = 1] [steps = 3]

namespace {

double now() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

/// "123456 kB" of /proc/self/status, in megabytes.
double largest_memory() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (double kilobytes = 0; word == "VmHWM:" && status >> kilobytes) return kilobytes / 1e3;
    return 0;
}

} // namespace

int main(int count, char** words) {
    namespace tg = tapegraph;
    using models::encoder;
    const auto number = [&](int i, std::int64_t otherwise) {
        return count > i ? std::max<std::int64_t>(1, std::atoll(words[i])) : otherwise;
    };
    const std::int64_t blocks = number(1, 4), length = number(2, 128), batch = number(3, 1), steps = number(4, 3);
    tg::set_thread_count(1);
    auto model =
        tg::compile<tg::traced>(models::any_encoder{length, blocks}, tg::spec<std::int32_t, tg::dyn, tg::dyn>{},
                                tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 1e-4}, {.seed = 1});
    auto x = tg::tensor<std::int32_t>::uninitialized({batch, length});
    for (std::int64_t i = 0; i < x.size(); ++i)
        x.mutable_data()[i] = static_cast<std::int32_t>(i * 7919 % encoder::vocabulary);
    auto y = tg::tensor<std::int32_t>::uninitialized({batch});
    for (std::int64_t i = 0; i < batch; ++i) y.mutable_data()[i] = static_cast<std::int32_t>(i % encoder::classes);
    model.train_on_batch(x, y);
    std::vector<double> times;
    for (std::int64_t i = 0; i < steps; ++i) {
        const double begin = now();
        model.train_on_batch(x, y);
        times.push_back(now() - begin);
    }
    std::sort(times.begin(), times.end());
    std::printf("blocks %lld length %lld batch %lld: %.1f ms a step, %.0f MB\n", static_cast<long long>(blocks),
                static_cast<long long>(length), static_cast<long long>(batch), times[times.size() / 2],
                largest_memory());
}
