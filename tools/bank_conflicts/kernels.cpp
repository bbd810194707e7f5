// Counts the conflicts of shared memory's banks in our kernels, on the executor of tests/simt (count.hpp says how).
//
//     cmake --build build/default --target bank_conflicts     (tests/CMakeLists.txt has the compiler's options)
//     build/default/tests/bank_conflicts [convolutions | few_channels | attention | recurrent | movement]
//
// in some minutes; needs addr2line.

#undef __SANITIZE_THREAD__ // its runtime is not linked, and the executor need not support it
#define TG_SIMT
#include "count.hpp"

#define copy_async copy_as_executed
#include <simt/instructions.hpp>
#undef copy_async

namespace tapegraph::cuda::kernels {
/// An asynchronous copy counts as one access, when it is started.
template <int Bytes>
__attribute__((noinline)) void copy_async(void* shared, const void* global, bool there) {
    bank_conflicts::note(shared, Bytes, true, __builtin_return_address(0));
    copy_as_executed<Bytes>(shared, global, there);
}
} // namespace tapegraph::cuda::kernels

#include <tapegraph/cuda/kernels/convolution.cuh>
#include <tapegraph/cuda/kernels/few_channels.cuh>
#include <tapegraph/cuda/kernels/implicit_gemm.cuh>
#include <tapegraph/cuda/kernels/rearrange.cuh>
#include <tapegraph/cuda/kernels/scan.cuh>
#include <tapegraph/cuda/kernels/scatter.cuh>
#include <tapegraph/cuda/kernels/sort.cuh>
#include <tapegraph/cuda/kernels/tensor_gemm.cuh>
#include <tapegraph/cuda/ops/attention/flash.cuh>
#include <tapegraph/cuda/ops/convolution/plan.hpp>
#include <tapegraph/cuda/ops/recurrent/recurrence.cuh>
#include <tapegraph/ops/recurrent/cpu_gru_cell.hpp>
#include <tapegraph/ops/recurrent/cpu_lstm_cell.hpp>
#include <tapegraph/ops/recurrent/cpu_simple_rnn_cell.hpp>

#include <string>
#include <vector>

namespace cuda = tapegraph::cuda;
namespace kernels = tapegraph::cuda::kernels;

namespace {

template <class F>
void report(const std::string& name, const F& f) {
    bank_conflicts::begin();
    f();
    bank_conflicts::end(name.c_str());
}

tapegraph::convolution_geometry geometry(int batch, int side, int in, int taps, int out) {
    tapegraph::convolution_geometry g{};
    g.batch = batch, g.in_height = g.in_width = side, g.in_channels = in, g.kernel_height = g.kernel_width = taps;
    g.out_height = g.out_width = side - taps + 1, g.out_channels = out;
    return g;
}

struct tensors {
    tapegraph::convolution_geometry g;
    std::vector<float> x, w, y;
    explicit tensors(const tapegraph::convolution_geometry& of)
        : g(of),
          x(static_cast<std::size_t>(g.batch * g.in_height * g.in_width * g.in_channels)),
          w(static_cast<std::size_t>(g.kernel_height * g.kernel_width * g.in_channels * g.out_channels)),
          y(static_cast<std::size_t>(g.batch * g.out_height * g.out_width * g.out_channels)) {}
};

/// Runs one block.
template <class Kernel, class Problem>
void one_block(const std::string& name, unsigned threads, std::size_t shared, Kernel* kernel, const Problem& p) {
    report(name, [&] {
        simt::launch_config config{1, threads};
        config.shared = shared;
        simt::launch(config, kernel, p);
    });
}

template <int Index, int TM, int TN, int V, class Problem>
void multiply_adds(const std::string& name, const Problem& p) {
    constexpr cuda::product_tile t = cuda::multiply_add_tiles[Index];
    using tile = kernels::tile_shape<t.rows, t.columns, t.depth, TM, TN>;
    one_block("implicit_gemm " + std::to_string(t.rows) + "x" + std::to_string(t.columns) + "x" +
                  std::to_string(t.depth) + " V" + std::to_string(V) + " " + name,
              tile::threads, 0, &kernels::implicit_gemm<Problem, tile, V>, p);
}
template <int Index, int WM, int WN, int V, class Problem>
void tensor_cores(const std::string& name, const Problem& p) {
    constexpr cuda::product_tile t = cuda::tensor_tiles[Index];
    using tile = kernels::tensor_tile<t.rows, t.columns, t.depth, WM, WN, 4>;
    one_block("tensor_gemm " + std::to_string(t.rows) + "x" + std::to_string(t.columns) + "x" +
                  std::to_string(t.depth) + " V" + std::to_string(V) + " " + name,
              tile::threads, kernels::tensor_gemm_shared_bytes<Problem, tile, V>,
              &kernels::tensor_gemm<Problem, tile, V, kernels::tensor_precision::tf32>, p);
}
template <class Problem>
void tiles(const std::string& name, const Problem& p, int v) {
    if (v == 1) multiply_adds<0, 4, 8, 1>(name, p), tensor_cores<0, 2, 2, 1>(name, p);
    if (v == 2) {
        multiply_adds<0, 4, 8, 2>(name, p), multiply_adds<2, 4, 20, 2>(name, p);
        tensor_cores<0, 2, 2, 2>(name, p), tensor_cores<1, 2, 2, 2>(name, p), tensor_cores<2, 2, 4, 2>(name, p);
    }
    if (v == 4) {
        multiply_adds<0, 4, 8, 4>(name, p), multiply_adds<1, 8, 8, 4>(name, p), multiply_adds<2, 4, 20, 4>(name, p);
        tensor_cores<0, 2, 2, 4>(name, p), tensor_cores<1, 2, 2, 4>(name, p), tensor_cores<2, 2, 4, 4>(name, p);
        tensor_cores<3, 4, 1, 4>(name, p);
    }
}

void convolutions(int v) {
    tensors t(geometry(2, 6, 36 + (v == 2 ? 2 : v == 1), 1, 160 + (v == 2 ? 2 : v == 1)));
    tiles("forward", kernels::forward_problem<float>(t.g, false, t.x.data(), t.w.data(), nullptr, false, t.y.data()),
          v);
    tiles("input gradient", kernels::input_gradient_problem<float>(t.g, false, t.y.data(), t.w.data(), t.x.data()), v);
    tiles("filter gradient", kernels::filter_gradient_problem<float>(t.g, t.x.data(), t.y.data(), t.w.data()), v);
}

/// A first layer of 3x3 taps, 3 to 150 channels.
void few_channels() {
    using cuda::convolution_pass;
    tensors t(geometry(1, 50, 3, 3, 150));
    for (const convolution_pass pass : {convolution_pass::forward, convolution_pass::filter_gradient}) {
        const cuda::detail::few_channels_tiling cut(t.g, pass, sizeof(float));
        const bool forward = pass == convolution_pass::forward;
        kernels::few_channels_problem<float> p{kernels::pixel_tiles(t.g, cut.pixels, cut.tile_log),
                                               150,
                                               cut.columns,
                                               cut.warps_across,
                                               t.x.data(),
                                               forward ? t.w.data() : t.y.data(),
                                               forward ? t.y.data() : t.w.data()};
        if (!forward) p.tiles.count = 2; // the one block would add up all of them
        one_block(std::string("few_channels ") + (forward ? "forward " : "filter gradient ") + std::to_string(cut.sums),
                  256, cut.shared,
                  forward ? (cut.sums == 10 ? &kernels::few_channels_forward<float, 3, 10>
                                            : &kernels::few_channels_forward<float, 3, 4>)
                          : (cut.sums == 10 ? &kernels::few_channels_filter_gradient<float, 3, 10>
                                            : &kernels::few_channels_filter_gradient<float, 3, 4>),
                  p);
    }
}

/// A tile of 64 queries and 64 keys.
template <class Products>
void attention(const std::string& name, std::int64_t features) {
    tapegraph::cpu::attention_shape s;
    s.batch = s.heads = 1, s.time = s.steps = kernels::flash_side, s.depth = s.width = features;
    std::vector<float> x(static_cast<std::size_t>(s.time * features)), of_queries(2 * kernels::flash_side), y = x,
                                                                                                            z = x;
    const kernels::attention_arguments<float> g{
        s, {x.data(), x.data(), x.data(), nullptr, nullptr}, of_queries.data(), x.data(), of_queries.data()};
    const kernels::flash_arguments all = cuda::detail::flash_arguments_of(g);
    const kernels::flash_shared_floats floats = cuda::detail::flash_pitches(s);
    const auto one = [&](const std::string& what, int size, auto* kernel, auto*... results) {
        report("attention " + name + " " + what + " " + std::to_string(features), [&] {
            simt::launch_config config{1, kernels::flash_threads};
            config.shared = static_cast<std::size_t>(size) * sizeof(float);
            simt::launch(config, kernel, all, 1, results...);
        });
    };
    one("forward", floats.forward(), &kernels::flash_forward<Products>, y.data(), of_queries.data());
    one("by queries", floats.by_queries(), &kernels::flash_by_queries<Products>, y.data());
    one("by keys", floats.by_keys<Products>(), &kernels::flash_by_keys<Products>, y.data(), z.data());
}

template <class Cell, class T>
void recurrent(const std::string& name, std::int64_t batch, std::int64_t units) {
    const cuda::recurrent_geometry g{batch, 2, units};
    const std::int64_t record = g.time * units;
    std::vector<T> xz(static_cast<std::size_t>(4 * batch * record)), r(static_cast<std::size_t>(4 * units * units)),
        h(xz), c(xz), gates(xz), dh(xz), dz(xz);
    std::vector<unsigned char> workspace(cuda::recurrent_workspace<Cell, T>(g, cuda::recurrent_pass::backward) + 128);
    cuda::driver::device_properties device{};
    device.major = 9, device.multiprocessors = 8, device.shared_per_block = 227 * 1024;
    for (const auto pass : {cuda::recurrent_pass::forward, cuda::recurrent_pass::backward})
        for (const auto way :
             {cuda::recurrent_stage::steps, cuda::recurrent_stage::grid, cuda::recurrent_stage::cluster}) {
            if (way == cuda::recurrent_stage::grid) device.major = 8;
            auto plan = cuda::choose_recurrence<Cell, T>(g, device, pass, way);
            device.major = 9;
            if (plan.stage != way) continue;
            for (const bool large : {false, true}) {
                if (large && way != cuda::recurrent_stage::steps) continue;
                plan.large_tile = large;
                const char* const ways[]{"steps", "grid", "cluster"};
                report(name + " " + std::to_string(8 * sizeof(T)) + " bits, " +
                           (pass == cuda::recurrent_pass::forward ? "forward " : "backward ") +
                           ways[static_cast<int>(way)] + (large ? " large" : "") + ", blocks " +
                           std::to_string(plan.blocks()),
                       [&] {
                           if (pass == cuda::recurrent_pass::forward) {
                               cuda::recurrent_forward_operands<T> p{};
                               p.xz = xz.data(), p.recurrent = r.data();
                               p.h = {h.data(), record}, p.c = {c.data(), record};
                               p.gates = {gates.data(), Cell::kept * record};
                               cuda::run_recurrent_forward<Cell>({}, "layer", plan, g, p, workspace.data());
                           } else {
                               cuda::recurrent_backward_operands<T> p{};
                               p.dh = {dh.data(), record}, p.dh_steps = static_cast<int>(g.time), p.dh_width = 1;
                               p.gates = gates.data(), p.memory = c.data(), p.recurrent = r.data();
                               p.dz = {dz.data(), Cell::columns * record};
                               cuda::run_recurrent_backward<Cell>({}, "layer", plan, g, p, workspace.data());
                           }
                       });
            }
        }
}

template <class Word>
void movement(const std::string& bits) {
    std::vector<Word> in(4096), out(4096);
    kernels::turned_copy turn;
    turn.rows = turn.columns = turn.in_column = turn.out_row = 64;
    turn.row_tiles = turn.column_tiles = kernels::divisor(2);
    const auto launch = [](unsigned threads, auto* kernel, const auto&... arguments) {
        simt::launch({1, threads}, kernel, arguments...);
    };
    report("transpose_tiles " + bits, [&] {
        simt::launch({1, {32, 8}}, &kernels::transpose_tiles<Word>, turn, in.data(), out.data());
    });
    if constexpr (sizeof(Word) >= 4) {
        report("scan_rows " + bits, [&] {
            launch(256, &kernels::scan_rows<false, Word>, kernels::scan_shape{2048, 1, false, false, 2048, 1},
                   in.data(), out.data(), nullptr);
        });
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<Word>(i * 2654435761u >> 7 & 0xFFFF);
        using source = kernels::number_source<Word>;
        using pair = kernels::sort_pair<typename source::key>;
        const int slots = kernels::sort_slots<typename source::key>;
        std::vector<pair> pairs(4096), merged(4096);
        for (int width : {16, slots})
            report("sort_tiles " + bits + " width " + std::to_string(width), [&] {
                launch(256, &kernels::sort_tiles<source>, kernels::tile_sort{slots / width, width, width, width},
                       source{in.data(), width, false}, pairs.data(), nullptr);
            });
        report("merge_runs " + bits, [&] {
            for (auto* from : {in.data(), in.data() + slots})
                launch(256, &kernels::sort_tiles<source>, kernels::tile_sort{2, slots, slots, slots},
                       source{from, slots, false}, pairs.data() + (from - in.data()), nullptr);
            bank_conflicts::begin();
            const std::int64_t run = slots;
            launch(128, &kernels::merge_runs<typename source::key>, kernels::merge_pass{2 * run, run, 2 * run, 1, 1},
                   pairs.data(), merged.data(), nullptr);
        });
        for (auto& p : pairs) p = {};
        for (int columns : {1, 8, 32})
            report("scatter_runs " + bits + " columns " + std::to_string(columns), [&] {
                launch(256, &kernels::scatter_runs<Word, typename source::key>,
                       kernels::scattering{1, 1, 100, columns, false}, columns, 0, pairs.data(), in.data(), out.data());
            });
    }
}

} // namespace

int main(int count, char** arguments) {
    const std::string which = count > 1 ? arguments[1] : "";
    const auto wanted = [&](const char* part) { return which.empty() || which == part; };
    if (wanted("convolutions"))
        for (int v : {1, 2, 4}) convolutions(v);
    if (wanted("few_channels")) few_channels();
    if (wanted("attention"))
        for (const std::int64_t features : {20, 64}) {
            attention<kernels::flash_tensor_products>("tf32", features);
            attention<kernels::flash_multiply_adds>("float", features);
        }
    if (wanted("recurrent")) {
        namespace cpu = tapegraph::cpu;
        recurrent<cpu::lstm_cell, float>("lstm", 4, 64);
        recurrent<cpu::lstm_cell, float>("lstm", 4, 40);
        recurrent<cpu::lstm_cell, double>("lstm", 4, 24);
        recurrent<cpu::gru_cell<false>, float>("gru, reset first", 4, 40);
        recurrent<cpu::simple_rnn_cell, float>("simple_rnn", 4, 40);
    }
    if (wanted("movement")) {
        movement<std::uint8_t>("8 bits"), movement<std::uint16_t>("16 bits");
        movement<float>("32 bits"), movement<double>("64 bits");
    }
}
