#include "../examples/models/cats_and_dogs.hpp"
#include "fma_peak.hpp"
#include "models/rnn.hpp"

#include <tapegraph/profile.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

/// Shows where a graph-mode training step of the CNN, or of the RNN, spends its time (tg::profile),
/// and what profiling costs.
/// Usage: step_profile [batch size] [threads] [steps] [cnn | rnn]   (one thread: processor time,
/// else wall-clock time)

namespace {

namespace tg = tapegraph;

void profile(auto& model, const auto& x, const auto& y, int steps) {
    // Steps without and with a profiler, alternating.
    std::vector<double> alone, watched;
    const tg::profile_options options{.steps = 1, .warm_up = 0, .clock = benchmarks::seconds_now};
    for (int i = 0; i < 2; ++i) model.train_on_batch(x, y);
    for (int i = 0; i < steps; ++i) {
        alone.push_back(benchmarks::seconds_of([&] { model.train_on_batch(x, y); }));
        watched.push_back(tg::profile([&] { model.train_on_batch(x, y); }, options).step.least);
    }
    const auto ms = [](std::vector<double> times) {
        return std::pair(benchmarks::median(times) * 1e3, *std::min_element(times.begin(), times.end()) * 1e3);
    };
    std::printf("unwatched: median %.3f ms, least %.3f; watched: median %.3f ms, least %.3f\n", ms(alone).first,
                ms(alone).second, ms(watched).first, ms(watched).second);
    const tg::profile_result r = tg::profile(model, x, y, {.steps = steps, .clock = benchmarks::seconds_now});
    std::fputs(r.text({.rows = 40}).c_str(), stdout);
}

void profile_cnn(int batch, int steps) {
    auto model = tg::compile<tg::graph>(models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{},
                                        tg::sigmoid_cross_entropy{}, tg::sgd{.learning_rate = 1e-5}, {.seed = 1});
    auto x = tg::tensor<float>::uninitialized({batch, 50, 50, 3});
    auto y = tg::zeros<float>({batch, 1});
    for (std::int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = static_cast<float>(i * 7919 % 1013) / 1013;
    for (int i = 0; i < batch; i += 2) y.set(1, i, 0);
    profile(model, x, y, steps);
}

void profile_rnn(int batch, int steps) {
    using rnn = benchmarks::rnn<benchmarks::words::sparse_gradient>;
    auto model = rnn::compiled();
    profile(model, rnn::input(batch), rnn::labels(batch), steps);
}

} // namespace

int main(int argc, char** argv) {
    const int batch = argc > 1 ? std::atoi(argv[1]) : 16, threads = argc > 2 ? std::atoi(argv[2]) : 2;
    const int steps = argc > 3 ? std::atoi(argv[3]) : std::max(5, 400 / batch);
    const std::string which = argc > 4 ? argv[4] : "cnn";
    if (batch < 1 || threads < 1 || steps < 1 || (which != "cnn" && which != "rnn")) {
        std::fprintf(stderr, "usage: step_profile [batch size] [threads] [steps] [cnn | rnn]\n");
        return 2;
    }
    tg::set_thread_count(threads);
    benchmarks::processor_time() = threads == 1;
    which == "cnn" ? profile_cnn(batch, steps) : profile_rnn(batch, steps);
}
