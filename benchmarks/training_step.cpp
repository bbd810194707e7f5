#include "../examples/models/cats_and_dogs.hpp"
#include "fma_peak.hpp"

#include <tapegraph/fast_convolution.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

/// Measures the CNN's training step (float, SGD) in both modes relative to the machine's
/// multiply-add peak. Peak, graph step and eager step alternate, so that other load on the machine
/// affects all three alike; medians and best times are printed. Times are processor time on one
/// thread, otherwise wall-clock time.
///
/// Usage: training_step [--batch-sizes 1,16,32,128] [--threads 2] [--seconds 10]
///                      [--convolution direct|fast]
/// (seconds: for each batch size; GF/s count the products of direct convolutions whichever
/// algorithm runs)

namespace {

namespace tg = tapegraph;

// Multiply-adds of one sample in the forward pass: output pixels x filters x kernel x input
// channels.
constexpr double conv1 = 48.0 * 48 * 150 * 3 * 3 * 3;
constexpr double conv2 = 20.0 * 20 * 300 * 5 * 5 * 150;
constexpr double conv3 = 8.0 * 8 * 200 * 3 * 3 * 300;
constexpr double dense = 4.0 * 4 * 200;
// Each of these products is computed three times, forward, filter gradient and input gradient,
// except that conv1's input has no gradient: (2 conv1 + 3 conv2 + 3 conv3 + 3 dense) x 2 = 2.94
// GFLOP. Only products count.
constexpr double flops_per_sample = 2 * (2 * conv1 + 3 * (conv2 + conv3 + dense));

struct options {
    std::vector<int> batch_sizes{1, 16, 32, 128};
    int threads = 2;
    double seconds = 10;
    tg::convolution_algorithm convolution = tg::convolution_algorithm::automatic;
};

bool number(std::string_view text, int& value) {
    return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc() && value > 0;
}

bool parse(int argc, char** argv, options& o) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        std::string_view value = argv[i + 1];
        int n = 0;
        if (name == "--threads") {
            if (!number(value, o.threads)) return false;
        } else if (name == "--seconds") {
            if (!number(value, n)) return false;
            o.seconds = n;
        } else if (name == "--convolution") {
            if (value != "direct" && value != "fast") return false;
            if (value == "direct") o.convolution = tg::convolution_algorithm::direct;
        } else if (name == "--batch-sizes") {
            o.batch_sizes.clear();
            while (!value.empty()) {
                const std::size_t comma = std::min(value.find(','), value.size());
                if (!number(value.substr(0, comma), n)) return false;
                o.batch_sizes.push_back(n);
                value.remove_prefix(std::min(comma + 1, value.size()));
            }
        } else {
            return false;
        }
    }
    return argc % 2 == 1;
}

template <class Mode>
auto make_model() {
    return tg::compile<Mode>(models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{},
                             tg::sigmoid_cross_entropy{}, tg::sgd{.learning_rate = 1e-5}, {.seed = 1});
}

struct series {
    std::vector<double> seconds{};

    double median() const { return benchmarks::median(seconds); }
    double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
};

void report(const char* mode, int batch, const series& s, double peak, double best_peak, double memory, double ratio) {
    const double rate = batch * flops_per_sample / s.median() / 1e9;
    std::printf("| %s | %d | %.2f | %.1f | %.1f %% | %.2f | %.1f %% | %.1f | ", mode, batch, s.median() * 1e3, rate,
                100 * rate / peak, s.best() * 1e3, 100 * batch * flops_per_sample / s.best() / 1e9 / best_peak,
                memory / 1e6);
    if (ratio > 0)
        std::printf("%.2f |\n", ratio);
    else
        std::printf("|\n");
}

void measure(int batch, const options& o) {
    auto x = tg::tensor<float>::uninitialized({batch, 50, 50, 3});
    auto y = tg::zeros<float>({batch, 1});
    float* const pixels = x.mutable_data();
    for (std::int64_t i = 0; i < x.size(); ++i) pixels[i] = static_cast<float>(i * 7919 % 1013) / 1013;
    for (int i = 0; i < batch; i += 2) y.set(1, i, 0);

    auto graph = make_model<tg::graph>();
    auto eager = make_model<tg::eager>();
    graph.train_on_batch(x, y); // plans the arena
    tg::reset_peak_memory();
    const double before = static_cast<double>(tg::eager_memory().in_use);
    eager.train_on_batch(x, y); // fills the pool
    const double pool = static_cast<double>(tg::eager_memory().peak) - before;

    series graph_steps, eager_steps;
    std::vector<double> peaks;
    double loss[2]{};
    for (double spent = 0; spent < o.seconds || graph_steps.seconds.size() < 5;) {
        // Several quick steps per turn at batch 1; otherwise the peak's own time would be most of
        // the measurement.
        const int turns = std::max(1, 16 / batch);
        peaks.push_back(benchmarks::fma_peak(o.threads, 0.02));
        const double start = benchmarks::seconds_now();
        for (int i = 0; i < turns; ++i)
            graph_steps.seconds.push_back(benchmarks::seconds_of([&] { loss[0] = graph.train_on_batch(x, y).loss; }));
        for (int i = 0; i < turns; ++i)
            eager_steps.seconds.push_back(benchmarks::seconds_of([&] { loss[1] = eager.train_on_batch(x, y).loss; }));
        spent += benchmarks::seconds_now() - start;
    }
    const double peak = benchmarks::median(peaks), best = *std::max_element(peaks.begin(), peaks.end());
    report("graph", batch, graph_steps, peak, best, static_cast<double>(graph.arena_bytes()), 0);
    report("eager", batch, eager_steps, peak, best, pool, eager_steps.median() / graph_steps.median());
    std::printf("<!-- batch %d: peak %.0f GF/s (best %.0f), %zu steps each, last losses %s -->\n", batch, peak, best,
                graph_steps.seconds.size(), loss[0] == loss[1] ? "equal" : "DIFFER");
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    options o;
    if (!parse(argc, argv, o)) {
        std::fprintf(stderr, "usage: training_step [--batch-sizes 1,16,32,128] [--threads 2] [--seconds 10] "
                             "[--convolution direct|fast]\n");
        return 2;
    }
    tg::set_thread_count(o.threads);
    tg::set_convolution_algorithm(o.convolution);
    std::printf("Multiply-add peak: %.0f GF/s on one thread, %.0f on two. One sample: %.3f GFLOP. %d threads.\n\n",
                benchmarks::fma_peak(1, 0.2), benchmarks::fma_peak(2, 0.2), flops_per_sample / 1e9, o.threads);
    benchmarks::processor_time() = o.threads == 1;
    std::printf(
        "| mode | batch | ms, median | GF/s | of peak | ms, best | of best peak | arena or pool, MB | eager/graph |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (const int batch : o.batch_sizes) measure(batch, o);
}
