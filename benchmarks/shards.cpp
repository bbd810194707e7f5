#include "../examples/models/cats_and_dogs.hpp"

#include <tapegraph/distributed.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

/// Measures the CNN's training step on a batch of 128, whole and cut into shards that normalize
/// separately or together, alternating on one thread: processor time and arenas.
///
/// Usage: shards [SHARDS] [STEPS]

namespace {

namespace tg = tapegraph;

/// models::cats_and_dogs with batch statistics over all shards.
struct normalized_together {
    constexpr auto operator()(auto scope, auto image) const {
        auto h = tg::conv2d(scope / "conv1", image, {.filters = 150, .kernel_size = {3, 3}});
        h = tg::max_pooling2d(tg::batch_normalization(scope / "norm1", relu(h), {}, tg::synchronized),
                              {.pool_size = {2, 2}});
        h = tg::conv2d(scope / "conv2", h, {.filters = 300, .kernel_size = {5, 5}});
        h = tg::max_pooling2d(tg::batch_normalization(scope / "norm2", relu(h), {}, tg::synchronized),
                              {.pool_size = {2, 2}});
        h = tg::dropout(scope / "drop2", h, {.rate = 0.25});
        h = tg::conv2d(scope / "conv3", h, {.filters = 200, .kernel_size = {3, 3}});
        h = tg::max_pooling2d(relu(h), {.pool_size = {2, 2}});
        h = tg::dropout(scope / "drop3", tg::flatten(h), {.rate = 0.25});
        return tg::dense(scope / "score", h, {.units = 1});
    }
};

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
    const auto make = [](auto network, const auto& how) {
        return tg::compile<tg::graph>(network, tg::spec<float, tg::dyn, 50, 50, 3>{}, tg::sigmoid_cross_entropy{},
                                      tg::adam{.learning_rate = 1e-4}, how);
    };
    auto whole = make(models::cats_and_dogs<>{}, tg::compile_options{.seed = 1});
    const tg::sharded how{.shards = shards, .options = {.seed = 1}};
    auto cut = make(models::cats_and_dogs<>{}, how);
    auto together = make(normalized_together{}, how);
    auto x = tg::tensor<float>::uninitialized({128, 50, 50, 3});
    for (std::int64_t i = 0; i < x.size(); ++i)
        x.mutable_data()[i] = tg::random::uniform_at<float>(1, 0, 0, static_cast<std::uint64_t>(i));
    auto y = tg::tensor<float>::uninitialized({128, 1});
    for (std::int64_t i = 0; i < y.size(); ++i) y.mutable_data()[i] = static_cast<float>(i % 2);
    std::vector<double> of_whole, of_cut, of_all;
    for (int i = 0; i <= steps; ++i) { // the first plans
        of_whole.push_back(seconds_of_step(whole, x, y));
        of_cut.push_back(seconds_of_step(cut, x, y));
        of_all.push_back(seconds_of_step(together, x, y));
    }
    const auto best = [](const std::vector<double>& of) { return *std::min_element(of.begin() + 1, of.end()); };
    const auto row = [&](const char* name, const auto& model, const std::vector<double>& of) {
        std::printf("%-24s %8.1f ms, x %.3f; arena %7.1f MB, x %.3f\n", name, 1e3 * best(of), best(of) / best(of_whole),
                    1e-6 * static_cast<double>(model.arena_bytes()),
                    static_cast<double>(model.arena_bytes()) / static_cast<double>(whole.arena_bytes()));
    };
    row("whole batch", whole, of_whole);
    std::printf("%d shards, whose sums take %.1f MB\n", shards, 1e-6 * static_cast<double>(cut.shard_sum_bytes()));
    row("  normalized apart", cut, of_cut);
    row("  normalized together", together, of_all);
    return 0;
}
