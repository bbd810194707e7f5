#include "../examples/models/cats_and_dogs.hpp"

#include <tapegraph/distributed.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

/// The CNN's training step on a batch of 128, whole and cut into shards, in turns on one thread: processor time and arenas.
///
/// Usage: shards [SHARDS] [STEPS]

namespace {

namespace tg = tapegraph;

double processor_seconds() {
    std::timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class Model>
double seconds_of_step(Model& model, const tg::tensor<float>& x, const tg::tensor<float>& y) {
    const double start = processor_seconds();
    model.train_on_batch(x, y);
    return processor_seconds() - start;
}

} // namespace

int main(int argc, char** argv) {
    const int shards = argc > 1 ? std::atoi(argv[1]) : 8, steps = argc > 2 ? std::atoi(argv[2]) : 5;
    tg::set_thread_count(1);
    const auto make = [](const auto& how) {
        return tg::compile<tg::graph>(models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{},
                                      tg::sigmoid_cross_entropy{}, tg::adam{.learning_rate = 1e-4}, how);
    };
    auto whole = make(tg::compile_options{.seed = 1});
    auto cut = make(tg::sharded{.shards = shards, .options = {.seed = 1}});
    auto x = tg::tensor<float>::uninitialized({128, 50, 50, 3});
    for (std::int64_t i = 0; i < x.size(); ++i)
        x.mutable_data()[i] = tg::random::uniform_at<float>(1, 0, 0, static_cast<std::uint64_t>(i));
    auto y = tg::tensor<float>::uninitialized({128, 1});
    for (std::int64_t i = 0; i < y.size(); ++i) y.mutable_data()[i] = static_cast<float>(i % 2);
    std::vector<double> of_whole, of_cut;
    for (int i = 0; i <= steps; ++i) { // the first plans
        of_whole.push_back(seconds_of_step(whole, x, y));
        of_cut.push_back(seconds_of_step(cut, x, y));
    }
    const double a = *std::min_element(of_whole.begin() + 1, of_whole.end());
    const double b = *std::min_element(of_cut.begin() + 1, of_cut.end());
    std::printf("whole batch: %.1f ms, arena %.1f MB\n%d shards: %.1f ms, arena %.1f MB (sums %.1f MB)\n"
                "time x %.3f, memory x %.3f\n",
                1e3 * a, 1e-6 * static_cast<double>(whole.arena_bytes()), shards, 1e3 * b,
                1e-6 * static_cast<double>(cut.arena_bytes()), 1e-6 * static_cast<double>(cut.shard_sum_bytes()), b / a,
                static_cast<double>(cut.arena_bytes()) / static_cast<double>(whole.arena_bytes()));
    return 0;
}
