#include "../examples/models/cats_and_dogs.hpp"
#include "fma_peak.hpp"
#include "models/rnn.hpp"

#include <tapegraph/graph/cost.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

/// Where a graph-mode training step of the CNN, or of the RNN, spends its time: every kernel call timed by itself, grouped by
/// kernel and shapes. Best times, because other programs only ever add to them; bench_training_step has medians.
/// Usage: step_profile [batch size] [threads] [steps] [cnn | rnn]   (one thread: processor time, else wall-clock time)

namespace {

namespace tg = tapegraph;

std::string shape_text(const tg::buffer_view& v) {
    std::string s = "[";
    for (int i = 0; i < v.rank; ++i) s += (i > 0 ? "," : "") + std::to_string(v.extents[i]);
    return s + "]";
}

// "(add relu multiply)": the operations of a region, in order.
std::string region_text(const tg::ir::program_view& view, const tg::ir::kernel_entry& kernel) {
    const tg::ir::region_view region = view.region_of(kernel);
    std::string s = "(";
    for (int i = 0; i < region.instructions(); ++i)
        s += (i > 0 ? " " : "") + std::string(view.ops[region.instruction(i).op]->name);
    return s + ")";
}

std::string kernel_text(const tg::ir::program& p, int step) {
    const tg::ir::program_view& view = p.view();
    const auto& k = view.kernels[view.steps[step].kernel];
    const auto kind = static_cast<tg::ir::kernel_kind>(k.kind);
    if (kind == tg::ir::kernel_kind::operation) return std::string(view.ops[k.op]->name);
    if (kind == tg::ir::kernel_kind::region) return "map " + region_text(view, k);
    return std::string(view.ops[k.op]->name) + " of " + region_text(view, k);
}

std::string operands_text(const tg::kernel_call& c) {
    std::string s;
    for (int i = 0; i < c.inputs; ++i)
        if (c.in[i].rank > 0) s += (s.empty() ? "" : " ") + shape_text(c.in[i]);
    s += " ->";
    for (int i = 0; i < c.outputs; ++i) s += " " + shape_text(c.out[i]);
    return s;
}

// Multiply-adds of convolutions, products and recurrences, times two; 0 for what is bound by memory.
double flops_of(const std::string& name, const tg::kernel_call& c, const tg::ir::cost& cost) {
    if (name.starts_with("lstm")) return cost.flops;
    const auto elements = [](const tg::buffer_view& v) { return static_cast<double>(v.elements()); };
    const auto last = [](const tg::buffer_view& v) { return static_cast<double>(v.extents[v.rank - 1]); };
    if (name == "convolution_input_gradient") return 2 * elements(c.in[0]) * elements(c.in[1]) / last(c.in[1]);
    if (name == "convolution_filter_gradient") return 2 * elements(c.in[1]) * elements(c.out[0]) / last(c.out[0]);
    if (name.starts_with("convolution")) // forward, whatever follows in the same kernel
        return 2 * elements(c.out[0]) * elements(c.in[1]) / last(c.in[1]);
    if (name == "matmul") {
        const bool transposed = c.attributes[0] != 0;
        return 2 * elements(c.out[0]) * static_cast<double>(c.in[0].extents[c.in[0].rank - (transposed ? 2 : 1)]);
    }
    return 0;
}

struct row {
    double seconds = 0, flops = 0, bytes = 0;
    int calls = 0;
};

void profile(auto& model, const auto& x, const auto& y, int batch, int threads, int steps) {
    for (int i = 0; i < 2; ++i) model.train_on_batch(x, y); // binds the program's extents and addresses
    tg::ir::program& program = model.training_program();
    const int calls = program.view().steps.size();
    std::vector<std::vector<double>> times(static_cast<std::size_t>(calls));
    std::vector<double> totals, peaks;
    for (int s = 0; s < steps; ++s) {
        peaks.push_back(benchmarks::fma_peak(threads));
        totals.push_back(benchmarks::seconds_of([&] {
            program.run_each({1, static_cast<std::uint64_t>(s)}, [&](int call, const auto& run) {
                times[static_cast<std::size_t>(call)].push_back(benchmarks::seconds_of(run));
            });
        }));
    }
    const double peak = *std::max_element(peaks.begin(), peaks.end());
    const double total = *std::min_element(totals.begin(), totals.end());
    std::map<std::string, row> rows;
    double sum = 0, flops = 0;
    for (int s = 0; s < calls; ++s) {
        const tg::kernel_call& c = program.call_of(s);
        const std::string name = kernel_text(program, s);
        row& r = rows[name + "  " + operands_text(c)];
        const auto& all = times[static_cast<std::size_t>(s)];
        const double time = *std::min_element(all.begin(), all.end());
        r.seconds += time;
        const tg::ir::cost cost = tg::ir::cost_of(program, s);
        r.flops += flops_of(name, c, cost);
        r.bytes += cost.bytes;
        ++r.calls;
        sum += time;
        flops += flops_of(name, c, cost);
    }
    std::printf("batch %d, %d threads, best of %d steps: step %.2f ms (kernels alone %.2f), %d kernel calls, "
                "%.2f GFLOP in products, %.0f GF/s = %.1f %% of the measured peak %.0f GF/s, arena %.1f MB\n",
                batch, threads, steps, total * 1e3, sum * 1e3, calls, flops / 1e9, flops / total / 1e9,
                100 * flops / total / 1e9 / peak, peak, static_cast<double>(program.arena_bytes()) / 1e6);
    std::vector<std::pair<std::string, row>> sorted(rows.begin(), rows.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    std::printf("%9s %6s %5s %9s %8s %8s  %s\n", "ms", "share", "calls", "GF/s", "of peak", "GB/s",
                "kernel  operands -> results");
    for (const auto& [name, r] : sorted) {
        std::printf("%9.3f %5.1f%% %5d ", r.seconds * 1e3, 100 * r.seconds / sum, r.calls);
        if (r.flops > 0)
            std::printf("%9.1f %7.1f%% ", r.flops / r.seconds / 1e9, 100 * r.flops / r.seconds / 1e9 / peak);
        else
            std::printf("%9s %8s ", "", "");
        std::printf("%8.1f  %s\n", r.bytes / r.seconds / 1e9, name.c_str());
    }
}

void profile_cnn(int batch, int threads, int steps) {
    auto model = tg::compile<tg::graph>(models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{},
                                        tg::sigmoid_cross_entropy{}, tg::sgd{.learning_rate = 1e-5}, {.seed = 1});
    auto x = tg::tensor<float>::uninitialized({batch, 50, 50, 3});
    auto y = tg::zeros<float>({batch, 1});
    for (std::int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = static_cast<float>(i * 7919 % 1013) / 1013;
    for (int i = 0; i < batch; i += 2) y.set(1, i, 0);
    profile(model, x, y, batch, threads, steps);
}

void profile_rnn(int batch, int threads, int steps) {
    using rnn = benchmarks::rnn<benchmarks::words::sparse_gradient>;
    auto model = rnn::compiled();
    profile(model, rnn::input(batch), rnn::labels(batch), batch, threads, steps);
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
    which == "cnn" ? profile_cnn(batch, threads, steps) : profile_rnn(batch, threads, steps);
}
