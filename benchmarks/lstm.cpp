#include "fma_peak.hpp"

#include <tapegraph/tapegraph.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

/// Forward and backward pass of one LSTM layer (float, every derivative, features = units) in graph mode, in percent of the
/// multiply-add peak; the two take turns, so that what else the machine does falls on both. Only products count as operations.
/// Beside it, the recurrence's two kernels and their share of the time.
///
/// Then a training step (SGD) of a text classifier: embedding 40,691 x 128, LSTM 128, dense 100 with relu, dense 3; 40 steps;
/// with the embedding, whose dense gradient and update are most of it at small batches, and without.
///
/// Usage: lstm [--threads 2] [--seconds 3]   (seconds: for each shape)

namespace {

namespace tg = tapegraph;

template <std::int64_t Units>
struct layer {
    static constexpr auto loss = [](auto x, auto w, auto r, auto b) { return sum(tg::lstm(x, w, r, b)); };
    static constexpr auto step = tg::value_and_gradient(loss);
    using function =
        tg::graph_function<decltype(step), tg::spec<float, tg::dyn, tg::dyn, Units>, tg::spec<float, Units, 4 * Units>,
                           tg::spec<float, Units, 4 * Units>, tg::spec<float, 4 * Units>>;
};

template <bool Embedded>
struct classifier {
    constexpr auto operator()(auto scope, auto x) const {
        const auto words = [&] {
            if constexpr (Embedded)
                return tg::gather((scope / "embedding").template variable<float>("table", {40691, 128}), x, 0);
            else
                return x;
        }();
        const auto h = tg::lstm(scope / "lstm", words, {.units = 128});
        return tg::dense(scope / "score", relu(tg::dense(scope / "hidden", h, {.units = 100})), {.units = 3});
    }
};

tg::tensor<float> noise(const tg::shape& dims, float scale) {
    auto t = tg::tensor<float>::uninitialized(dims);
    float* const to = t.mutable_data();
    for (std::int64_t i = 0; i < t.size(); ++i) to[i] = scale * (static_cast<float>(i * 7919 % 1013) / 506.5f - 1);
    return t;
}

// One record, one step: x W, h R, and each twice more for the derivatives by its factors.
double flops(std::int64_t batch, std::int64_t time, std::int64_t units) {
    return 3.0 * 2 * 2 * 4 * static_cast<double>(batch * time * units * units);
}

/// The kernels alone: median seconds of the forward and of the backward recurrence.
std::pair<double, double> kernels(std::int64_t batch, std::int64_t time, std::int64_t units, int repetitions) {
    using namespace tg::cpu;
    const auto cells = static_cast<std::size_t>(batch * time * units);
    std::vector<float> z(4 * cells, 0.1f), h(cells), c(cells), gates(4 * cells), seeds(cells, 0.01f), dz(4 * cells);
    const tg::tensor<float> r = noise({units, 4 * units}, 0.05f);
    recurrent_shape<float> s{};
    s.batch = batch, s.time = time, s.units = units;
    s.recurrent = r.data();
    const std::size_t bytes = std::max(recurrent_workspace_bytes<lstm_cell>(s, false, tg::thread_count()),
                                       recurrent_workspace_bytes<lstm_cell>(s, true, tg::thread_count()));
    std::vector<float> memory(bytes / sizeof(float) + 16);
    void* const workspace = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) / sizeof(float);
    std::vector<double> forward, backward;
    for (int i = 0; i < repetitions; ++i) {
        forward.push_back(benchmarks::seconds_of([&] {
            recurrent_forward<lstm_cell, float>(s, {z.data(), 4 * time * units, 4 * units},
                                                {{h.data(), time * units, units},
                                                 {c.data(), time * units, units},
                                                 {gates.data(), 4 * time * units, 4 * units}},
                                                workspace);
        }));
        recurrent_gradients<float> g{};
        g.c = {c.data(), time * units, units}, g.gates = {gates.data(), 4 * time * units, 4 * units};
        g.seeds = {seeds.data(), time * units, units}, g.first_seed = 0, g.last_seed = time;
        g.dz = {dz.data(), 4 * time * units, 4 * units};
        backward.push_back(benchmarks::seconds_of([&] { recurrent_backward<lstm_cell, float>(s, g, workspace); }));
    }
    return {benchmarks::median(forward), benchmarks::median(backward)};
}

template <std::int64_t Units>
void measure(std::int64_t batch, std::int64_t time, int threads, double budget) {
    const auto x = noise({batch, time, Units}, 1), w = noise({Units, 4 * Units}, 0.05f),
               r = noise({Units, 4 * Units}, 0.05f), b = noise({4 * Units}, 0.1f);
    typename layer<Units>::function step;
    step(x, w, r, b); // plans the arena
    std::vector<double> seconds, peaks, forward, backward;
    for (double spent = 0; spent < budget || seconds.size() < 5;) {
        peaks.push_back(benchmarks::fma_peak(threads, 0.01));
        const double start = benchmarks::seconds_now();
        for (int i = 0; i < 3; ++i) seconds.push_back(benchmarks::seconds_of([&] { step(x, w, r, b); }));
        const auto [f, g] = kernels(batch, time, Units, 3);
        forward.push_back(f), backward.push_back(g);
        spent += benchmarks::seconds_now() - start;
    }
    const double peak = benchmarks::median(peaks) * 1e9,
                 best_peak = *std::max_element(peaks.begin(), peaks.end()) * 1e9;
    const double whole = benchmarks::median(seconds), best = *std::min_element(seconds.begin(), seconds.end());
    const double all = flops(batch, time, Units), part = all / 6; // a recurrence's products are a sixth
    std::printf("| %lld | %lld | %lld | %.2f | %.0f %% | %.0f %% | %.0f %% | %.0f %% |\n",
                static_cast<long long>(batch), static_cast<long long>(time), static_cast<long long>(Units), whole * 1e3,
                100 * all / whole / peak, 100 * all / best / best_peak, 100 * part / benchmarks::median(forward) / peak,
                100 * part / benchmarks::median(backward) / peak);
    std::fflush(stdout);
}

template <class Spec, bool Embedded>
double step_seconds(const auto& x, const tg::tensor<std::int32_t>& y, double budget, std::vector<double>& peaks,
                    int threads) {
    auto model = tg::compile<tg::graph>(classifier<Embedded>{}, Spec{}, tg::sparse_softmax_cross_entropy{},
                                        tg::sgd{.learning_rate = 1e-3}, {.seed = 1});
    model.train_on_batch(x, y); // plans the arena
    std::vector<double> seconds;
    for (double spent = 0; spent < budget || seconds.size() < 5;) {
        peaks.push_back(benchmarks::fma_peak(threads, 0.005));
        for (int i = 0; i < 3; ++i) {
            seconds.push_back(benchmarks::seconds_of([&] { model.train_on_batch(x, y); }));
            spent += seconds.back();
        }
    }
    return benchmarks::median(seconds);
}

void classify(std::int64_t batch, int threads, double budget) {
    auto words = tg::tensor<std::int32_t>::uninitialized({batch, 40});
    for (std::int64_t i = 0; i < words.size(); ++i)
        words.mutable_data()[i] = static_cast<std::int32_t>(i * 7919 % 40691);
    auto labels = tg::tensor<std::int32_t>::uninitialized({batch});
    for (std::int64_t i = 0; i < batch; ++i) labels.mutable_data()[i] = static_cast<std::int32_t>(i % 3);
    std::vector<double> peaks;
    const double whole = step_seconds<tg::spec<std::int32_t, tg::dyn, 40>, true>(words, labels, budget, peaks, threads);
    const double bare = step_seconds<tg::spec<float, tg::dyn, 40, 128>, false>(noise({batch, 40, 128}, 1), labels,
                                                                               budget, peaks, threads);
    // Without the embedding x has no gradient: one of the six products of the layer.
    const double ideal = flops(batch, 40, 128) * 5 / 6 / (benchmarks::median(peaks) * 1e9);
    std::printf("| %lld | %.2f | %.2f | %.0f %% |\n", static_cast<long long>(batch), whole * 1e3, bare * 1e3,
                100 * ideal / bare);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    int threads = 2, seconds = 3;
    for (int i = 1; i < argc; i += 2) {
        const std::string_view name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
        int* const number = name == "--threads" ? &threads : name == "--seconds" ? &seconds : nullptr;
        if (number == nullptr ||
            std::from_chars(value.data(), value.data() + value.size(), *number).ec != std::errc() || *number < 1) {
            std::fprintf(stderr, "usage: lstm [--threads 2] [--seconds 3]\n");
            return 2;
        }
    }
    tg::set_thread_count(threads);
    benchmarks::processor_time() = threads == 1;
    std::printf("Multiply-add peak: %.0f GF/s on %d threads.\n\n"
                "| batch | steps | units | ms, median | of peak | best of best peak | recurrence forward | backward |\n"
                "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
                benchmarks::fma_peak(threads, 0.2), threads);
    measure<512>(32, 40, threads, seconds);
    measure<128>(1, 40, threads, seconds);
    measure<128>(32, 40, threads, seconds);
    measure<128>(128, 40, threads, seconds);
    std::printf("\n| batch | training step, ms | without embedding, ms | of peak |\n| ---: | ---: | ---: | ---: |\n");
    for (const int batch : {1, 32, 128}) classify(batch, threads, seconds);
}
