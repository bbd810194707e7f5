#include "gpu_timing.hpp"

#include <tapegraph/ops/recurrent/cpu_gru_cell.hpp>
#include <tapegraph/ops/recurrent/cpu_lstm_cell.hpp>
#include <tapegraph/ops/recurrent/cpu_simple_rnn_cell.hpp>
#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/ops/product/gemm.cuh>
#include <tapegraph/cuda/ops/recurrent/recurrence.cuh>

#include <cstdint>
#include <cstdio>

/// Times the kernels of recurrent layers on a GPU, for each cell and each way of running it, and
/// whole layers: a recurrence, run as the library would, with the products before (x W + b) or
/// after it (dx, dW, dR, db). Everything is captured and replayed, as in a model's step, because
/// the host cannot launch hundreds of short kernels as fast as they run. There are as many features
/// as units; everything that backward needs is kept, and backward receives a gradient of h at every
/// step. Prints lines of tab-separated fields for gpu_table.py:
///
///     cell  units  steps  batch  pass  way  mode  ours        (microseconds; medians, cold level 2 cache; negative: impossible)
///
/// The mode is that of the products; recurrences are computed in float.

namespace tg = tapegraph;
namespace cuda = tapegraph::cuda;
using cuda::recurrent_pass;
using cuda::recurrent_stage;
using gpu_timing::buffer;

namespace {

/// Work that has been recorded for replay. Throws device_error where it cannot be.
class replayed {
public:
    template <class F>
    replayed(cuda::driver::stream stream, const F& work) : stream_(stream) {
        work(); // libraries choose their algorithms
        cuda::driver::wait(stream);
        cuda::driver::begin_capture(stream);
        work();
        graph_ = cuda::driver::end_capture(stream);
        if (graph_ == nullptr) throw tg::device_error("the layer's launches cannot be captured");
    }
    replayed(const replayed&) = delete;
    replayed& operator=(const replayed&) = delete;
    ~replayed() { cuda::driver::destroy_graph(graph_); }
    void operator()() const { cuda::driver::launch_graph(graph_, stream_); }

private:
    cuda::driver::stream stream_;
    cuda::driver::graph graph_;
};

template <class Cell>
class layer {
public:
    layer(const char* name, std::int64_t batch, std::int64_t units, std::int64_t time)
        : name_(name),
          g_{batch, time, units},
          stream_(cuda::context::of(0).stream()),
          watch_(stream_),
          x_(state()),
          w_(weights()),
          r_(weights()),
          bias_(Cell::gates * units),
          last_bias_(units),
          xz_(Cell::gates * state()),
          h_(state()),
          c_(Cell::states == 2 ? state() : 1),
          gates_(Cell::kept > 0 ? Cell::kept * state() : 1),
          dh_(state()),
          dz_(Cell::columns * state()),
          dx_(state()),
          dw_(weights()),
          dr_(weights()),
          dbias_(Cell::gates * units),
          copied_(Cell::columns * state()),
          ones_(lines()),
          workspace_(static_cast<std::int64_t>(cuda::recurrent_workspace<Cell, float>(g_, recurrent_pass::backward))) {
        const auto there = [](const auto& b) {
            if (b.data() == nullptr) throw tg::out_of_memory("the layer does not fit into the GPU's memory");
        };
        std::uint32_t seed = 0;
        for (const auto* b : {&x_, &w_, &r_, &bias_, &last_bias_, &xz_, &h_, &c_, &gates_, &dh_, &dz_, &dx_, &dw_, &dr_,
                              &dbias_, &copied_, &ones_}) {
            there(*b);
            gpu_timing::fill(*b, ++seed, stream_); // all numbers but zeros take the same time
        }
        there(workspace_);
    }

    void measure() {
        for (const recurrent_pass pass : {recurrent_pass::forward, recurrent_pass::backward}) {
            for (const recurrent_stage way :
                 {recurrent_stage::steps, recurrent_stage::grid, recurrent_stage::cluster}) {
                const cuda::recurrent_plan plan = plan_of(pass, way);
                const double time = plan.stage == way ? time_of([&] { recur(pass, plan); }) : -1;
                line(pass, name_of(way), "fp32", time);
            }
            const cuda::recurrent_plan plan = plan_of(pass, recurrent_stage::cluster);
            for (const tg::math_mode mode : {tg::math_mode::fp32, tg::math_mode::tf32}) {
                tg::set_math_mode(mode);
                const double time = time_of([&] { pass == recurrent_pass::forward ? forward(plan) : backward(plan); });
                line(pass, "layer", mode == tg::math_mode::fp32 ? "fp32" : "tf32", time);
            }
            tg::set_math_mode(tg::math_mode::fp32);
        }
    }

private:
    std::int64_t lines() const { return g_.batch * g_.time; }
    std::int64_t state() const { return lines() * g_.units; } ///< elements of h of all steps
    std::int64_t weights() const { return Cell::gates * g_.units * g_.units; }

    /// The best that the device can hold, none beyond `most`.
    cuda::recurrent_plan plan_of(recurrent_pass pass, recurrent_stage most) const {
        const cuda::driver::device_properties& device = cuda::context::of(0).properties();
        return pass == recurrent_pass::forward
                   ? cuda::recurrent_detail::feasible_plan<Cell, float, recurrent_pass::forward>(g_, device, most)
                   : cuda::recurrent_detail::feasible_plan<Cell, float, recurrent_pass::backward>(g_, device, most);
    }

    void recur(recurrent_pass pass, const cuda::recurrent_plan& plan) const {
        const std::int64_t record = g_.time * g_.units;
        if (pass == recurrent_pass::forward) {
            cuda::recurrent_forward_operands<float> p{};
            p.xz = xz_.data(), p.recurrent = r_.data();
            if (Cell::biased) p.bias = last_bias_.data();
            p.h = {h_.data(), record};
            if (Cell::states == 2) p.c = {c_.data(), record};
            if (Cell::kept > 0) p.gates = {gates_.data(), Cell::kept * record};
            cuda::run_recurrent_forward<Cell>(stream_, name_, plan, g_, p, workspace_.data());
        } else {
            cuda::recurrent_backward_operands<float> p{};
            p.dh = {dh_.data(), record}, p.dh_steps = static_cast<int>(g_.time), p.dh_width = 1;
            p.gates = gates_.data(), p.memory = Cell::states == 2 ? c_.data() : h_.data(), p.recurrent = r_.data();
            p.dz = {dz_.data(), Cell::columns * record};
            cuda::run_recurrent_backward<Cell>(stream_, name_, plan, g_, p, workspace_.data());
        }
    }

    void forward(const cuda::recurrent_plan& plan) const {
        cuda::gemm_arguments<float> q = product(lines(), Cell::gates * g_.units, g_.units, x_, w_, xz_);
        q.bias = bias_.data();
        cuda::gemm<float>(stream_, "x W + b", q);
        recur(recurrent_pass::forward, plan);
    }
    /// The operations copy rows of h, and for a GRU columns of dz, into separate arrays. The choice
    /// of rows does not change the time, so the products use any.
    void backward(const cuda::recurrent_plan& plan) const {
        constexpr int gates = Cell::gates;
        const std::int64_t units = g_.units;
        recur(recurrent_pass::backward, plan);
        if constexpr (Cell::columns > gates) copy(gates, dz_); // those of x W + b
        cuda::gemm_arguments<float> q = product(lines(), units, gates * units, dz_, w_, dx_);
        q.transpose_b = true, q.ldb = gates * units;
        cuda::gemm<float>(stream_, "dx", q);
        of_weights("dW", x_, gates, dw_);
        copy(Cell::reset_before ? 2 : 1, h_); // the operand of R: h before each step, perhaps r h
        if constexpr (Cell::biased) {         // the last gate's product is separate from the others'
            if constexpr (Cell::reset_before) copy(1, h_), copy(1, h_);
            copy(gates - 1, dz_), copy(1, dz_);
            of_weights("dR", h_, gates - 1, dr_);
            of_weights("dR", h_, 1, dr_);
            cuda::gemm<float>(stream_, "db", product(1, units, lines(), ones_, dz_, dbias_));
        } else {
            of_weights("dR", h_, gates, dr_);
        }
        cuda::gemm<float>(stream_, "db", product(1, gates * units, lines(), ones_, dz_, dbias_));
    }
    /// Copies as many bytes as `states` times those of h.
    void copy(int states, const buffer<float>& from) const {
        for (std::int64_t left = states * state(), part; left > 0; left -= part) {
            part = left < from.size() ? left : from.size();
            cuda::driver::copy(copied_.data(), from.data(), static_cast<std::size_t>(part) * sizeof(float), stream_);
        }
    }
    /// The transpose of one operand of all steps times some columns of dz.
    void of_weights(const char* name, const buffer<float>& operand, int columns, const buffer<float>& result) const {
        cuda::gemm_arguments<float> q = product(g_.units, columns * g_.units, lines(), operand, dz_, result);
        q.transpose_a = true, q.lda = g_.units;
        cuda::gemm<float>(stream_, name, q);
    }
    static cuda::gemm_arguments<float> product(std::int64_t m, std::int64_t n, std::int64_t k, const buffer<float>& a,
                                               const buffer<float>& b, const buffer<float>& c) {
        cuda::gemm_arguments<float> q;
        q.m = m, q.n = n, q.k = k, q.lda = k, q.ldb = n, q.ldc = n;
        q.a = a.data(), q.b = b.data(), q.c = c.data();
        return q;
    }

    template <class F>
    double time_of(const F& work) const {
        const replayed graph(stream_, work);
        return watch_.median(graph);
    }

    static const char* name_of(recurrent_stage way) {
        return way == recurrent_stage::steps ? "steps" : way == recurrent_stage::grid ? "grid" : "cluster";
    }
    void line(recurrent_pass pass, const char* way, const char* mode, double time) const {
        std::printf("%s\t%lld\t%lld\t%lld\t%s\t%s\t%s\t%.2f\n", name_, static_cast<long long>(g_.units),
                    static_cast<long long>(g_.time), static_cast<long long>(g_.batch),
                    pass == recurrent_pass::forward ? "forward" : "backward", way, mode, time);
        std::fflush(stdout);
    }

    const char* name_;
    cuda::recurrent_geometry g_;
    cuda::driver::stream stream_;
    gpu_timing::stopwatch watch_;
    buffer<float> x_, w_, r_, bias_, last_bias_, xz_, h_, c_, gates_, dh_, dz_, dx_, dw_, dr_, dbias_, copied_, ones_;
    buffer<char> workspace_;
};

template <class Cell>
void measure(const char* name) {
    for (const std::int64_t batch : {1, 8, 32, 128}) layer<Cell>(name, batch, 128, 40).measure();
    layer<Cell>(name, 32, 512, 400).measure();
}

} // namespace

int main() {
    if (cuda::driver::device_count() == 0) {
        std::puts("no GPU: nothing was run");
        return 0;
    }
    try {
        measure<tg::cpu::lstm_cell>("lstm");
        measure<tg::cpu::gru_cell<true>>("gru");
        measure<tg::cpu::simple_rnn_cell>("simple_rnn");
        measure<tg::cpu::gru_cell<false>>("gru, reset first");
    } catch (const tg::error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
