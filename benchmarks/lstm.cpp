#include "fma_peak.hpp"
#include "models/rnn.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

/// Measures the forward and backward pass of one LSTM layer (float, every derivative, features =
/// units) in graph mode, in percent of the multiply-add peak; the two alternate, so that other load
/// on the machine affects both. Only products count as operations. It also prints the recurrence's
/// two kernels and their share of the time.
///
/// It then measures a training step (Adam) of a text classifier (models/rnn.hpp) of 40 words: with
/// the table's dense gradient and update, with its rows' only, and without an embedding; these
/// alternate, too. lstm.py is the same in PyTorch.
///
/// Usage: lstm [--threads 2] [--seconds 3] [--layers 1]   (seconds: for each shape; layers 0: only
/// the training steps)

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

tg::tensor<float> noise(const tg::shape& dims, float scale) {
    auto t = tg::tensor<float>::uninitialized(dims);
    float* const to = t.mutable_data();
    for (std::int64_t i = 0; i < t.size(); ++i) to[i] = scale * (static_cast<float>(i * 7919 % 1013) / 506.5f - 1);
    return t;
}

// For one record and one step: x W and h R, and each twice more for the derivatives with respect to
// its factors.
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

void classify(std::int64_t batch, int threads, double budget) {
    using benchmarks::rnn, benchmarks::words;
    std::vector<double> peaks, seconds[3];
    const auto turns = [&](auto... models) {
        const auto labels = rnn<words::none>::labels(batch);
        const auto inputs = std::make_tuple(decltype(models)::input(batch)...);
        auto compiled = std::make_tuple(models.compiled()...);
        const auto each = [&](const auto& f) {
            [&]<std::size_t... I>(std::index_sequence<I...>) {
                (f(I, std::get<I>(compiled), std::get<I>(inputs)), ...);
            }
            (std::index_sequence_for<decltype(models)...>{});
        };
        each([&](std::size_t, auto& model, const auto& x) { model.train_on_batch(x, labels); }); // plans the arenas
        for (double spent = 0; spent < budget || peaks.size() < 5;) {
            peaks.push_back(benchmarks::fma_peak(threads, 0.005));
            each([&](std::size_t i, auto& model, const auto& x) {
                for (int repetition = 0; repetition < 3; ++repetition) {
                    seconds[i].push_back(benchmarks::seconds_of([&] { model.train_on_batch(x, labels); }));
                    spent += seconds[i].back();
                }
            });
        }
    };
    turns(rnn<words::dense_gradient>{}, rnn<words::sparse_gradient>{}, rnn<words::none>{});
    const double peak = benchmarks::median(peaks) * 1e9, sparse = benchmarks::median(seconds[1]);
    std::printf("| %lld | %.2f | %.2f | %.0f %% | %.2f | %.2f | %.0f |\n", static_cast<long long>(batch),
                benchmarks::median(seconds[0]) * 1e3, sparse * 1e3, 100 * flops(batch, 40, 128) / sparse / peak,
                *std::min_element(seconds[1].begin(), seconds[1].end()) * 1e3, benchmarks::median(seconds[2]) * 1e3,
                peak / 1e9);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    int threads = 2, seconds = 3, layers = 1;
    for (int i = 1; i < argc; i += 2) {
        const std::string_view name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
        int* const number = name == "--threads"   ? &threads
                            : name == "--seconds" ? &seconds
                            : name == "--layers"  ? &layers
                                                  : nullptr;
        if (number == nullptr ||
            std::from_chars(value.data(), value.data() + value.size(), *number).ec != std::errc() ||
            *number < (number == &layers ? 0 : 1)) {
            std::fprintf(stderr, "usage: lstm [--threads 2] [--seconds 3] [--layers 1]\n");
            return 2;
        }
    }
    tg::set_thread_count(threads);
    benchmarks::processor_time() = threads == 1;
    if (layers != 0) {
        std::printf(
            "Multiply-add peak: %.0f GF/s on %d threads.\n\n"
            "| batch | steps | units | ms, median | of peak | best of best peak | recurrence forward | backward |\n"
            "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
            benchmarks::fma_peak(threads, 0.2), threads);
        measure<512>(32, 40, threads, seconds);
        measure<128>(1, 40, threads, seconds);
        measure<128>(32, 40, threads, seconds);
        measure<128>(128, 40, threads, seconds);
    }
    std::printf("\n| batch | dense gradient, ms | sparse, ms | of peak | best | without embedding, ms | peak, GF/s |\n"
                "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (const int batch : {1, 32, 128}) classify(batch, threads, seconds);
}
