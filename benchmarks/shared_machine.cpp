#include "../examples/models/cats_and_dogs.hpp"
#include "fma_peak.hpp"

#include <cstdio>
#include <cstdlib>

/// Runs training steps of the CNN in graph mode for `seconds`; prints their number and the seconds
/// they took. benchmarks/shared_machine.py runs it beside busy processes.
/// Usage: shared_machine [batch [threads [seconds]]]

int main(int argc, char** argv) {
    namespace tg = tapegraph;
    const int batch = argc > 1 ? std::atoi(argv[1]) : 16, threads = argc > 2 ? std::atoi(argv[2]) : 2;
    const double seconds = argc > 3 ? std::atof(argv[3]) : 5;
    if (batch < 1 || threads < 1 || !(seconds > 0)) {
        std::fprintf(stderr, "usage: shared_machine [batch [threads [seconds]]]\n");
        return 2;
    }
    tg::set_thread_count(threads);
    auto x = tg::tensor<float>::uninitialized({batch, 50, 50, 3});
    auto y = tg::zeros<float>({batch, 1});
    float* const pixels = x.mutable_data();
    for (std::int64_t i = 0; i < x.size(); ++i) pixels[i] = static_cast<float>(i * 7919 % 1013) / 1013;
    for (int i = 0; i < batch; i += 2) y.set(1, i, 0);
    auto model = tg::compile<tg::graph>(models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{},
                                        tg::sigmoid_cross_entropy{}, tg::sgd{.learning_rate = 1e-5}, {.seed = 1});
    model.train_on_batch(x, y);
    int steps = 0;
    const double start = benchmarks::seconds_now();
    double now = start;
    for (; now - start < seconds; now = benchmarks::seconds_now(), ++steps) model.train_on_batch(x, y);
    std::printf("%d %.6f\n", steps, now - start);
}
