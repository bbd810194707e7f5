#include "gpu_timing.hpp"

#include <tapegraph/cpu/lstm_cell.hpp>
#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/gemm.cuh>
#include <tapegraph/cuda/recurrence.cuh>

#include <cstdint>
#include <cstdio>

/// Times the LSTM kernels on a GPU, each way of running them, and a whole layer: its recurrence, run as the library would,
/// with the products before (x W + b) or after (dx, dW, dR, db). All is captured and replayed, as in a model's step, because
/// the host cannot launch hundreds of short kernels as fast as they run. As many features as units; h, c and gates of all
/// steps are kept for backward, which is given a gradient of h at every step. Lines of tab-separated fields for gpu_table.py:
///
///     units  steps  batch  pass  way  mode  ours        (microseconds; medians, cold level 2 cache; negative: impossible)
///
/// The mode is that of the products; recurrences are computed in float.

namespace tg = tapegraph;
namespace cuda = tapegraph::cuda;
using cuda::recurrent_pass;
using cuda::recurrent_stage;
using gpu_timing::buffer;
using cell = tg::cpu::lstm_cell;

namespace {

/// Work that has been recorded, to be replayed. Throws device_error where it cannot be.
class replayed {
public:
    template <class F>
    replayed(cuda::driver::stream stream, const F& work) : stream_(stream) {
        work(); // libraries choose their algorithms
        cuda::driver::wait(stream);
        cuda::driver::begin_capture(stream);
        work();
        graph_ = cuda::driver::end_capture(stream);
        if (graph_ == nullptr) throw tg::device_error("the LSTM's launches cannot be captured");
    }
    replayed(const replayed&) = delete;
    replayed& operator=(const replayed&) = delete;
    ~replayed() { cuda::driver::destroy_graph(graph_); }
    void operator()() const { cuda::driver::launch_graph(graph_, stream_); }

private:
    cuda::driver::stream stream_;
    cuda::driver::graph graph_;
};

class layer {
public:
    layer(std::int64_t batch, std::int64_t units, std::int64_t time)
        : g_{batch, time, units},
          stream_(cuda::context::of(0).stream()),
          watch_(stream_),
          x_(lines() * units),
          w_(4 * units * units),
          r_(4 * units * units),
          bias_(4 * units),
          xz_(4 * lines() * units),
          h_(lines() * units),
          c_(lines() * units),
          gates_(4 * lines() * units),
          dh_(lines() * units),
          dz_(4 * lines() * units),
          dx_(lines() * units),
          dw_(4 * units * units),
          dr_(4 * units * units),
          dbias_(4 * units),
          before_(lines() * units),
          ones_(lines()),
          workspace_(static_cast<std::int64_t>(cuda::recurrent_workspace<cell, float>(g_, recurrent_pass::backward))) {
        std::uint32_t seed = 0;
        for (const auto* b : {&x_, &w_, &r_, &bias_, &xz_, &h_, &c_, &gates_, &dh_, &ones_}) {
            if (b->data() == nullptr) throw tg::out_of_memory("the LSTM's operands do not fit into the GPU's memory");
            gpu_timing::fill(*b, ++seed, stream_); // any numbers but zeros take the same time
        }
        if (dz_.data() == nullptr || dx_.data() == nullptr || before_.data() == nullptr || workspace_.data() == nullptr)
            throw tg::out_of_memory("the LSTM's results do not fit into the GPU's memory");
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

    /// The best that the device can hold, none beyond `most`.
    cuda::recurrent_plan plan_of(recurrent_pass pass, recurrent_stage most) const {
        cuda::driver::device_properties device = cuda::context::of(0).properties();
        if (most == recurrent_stage::steps) return cuda::choose_recurrence<cell, float>(g_, device, pass, most);
        if (most == recurrent_stage::grid && device.major >= 9) device.major = 8; // such have no clusters
        return pass == recurrent_pass::forward
                   ? cuda::recurrent_detail::feasible_plan<cell, float, recurrent_pass::forward>(g_, device)
                   : cuda::recurrent_detail::feasible_plan<cell, float, recurrent_pass::backward>(g_, device);
    }

    void recur(recurrent_pass pass, const cuda::recurrent_plan& plan) const {
        if (pass == recurrent_pass::forward) {
            cuda::recurrent_forward_operands<float> p{};
            p.xz = xz_.data(), p.recurrent = r_.data();
            p.h = {h_.data(), g_.time * g_.units}, p.c = {c_.data(), g_.time * g_.units};
            p.gates = {gates_.data(), 4 * g_.time * g_.units};
            cuda::run_recurrent_forward<cell>(stream_, "lstm", plan, g_, p, workspace_.data());
        } else {
            cuda::recurrent_backward_operands<float> p{};
            p.dh = {dh_.data(), g_.time * g_.units}, p.dh_steps = static_cast<int>(g_.time);
            p.gates = gates_.data(), p.memory = c_.data(), p.recurrent = r_.data();
            p.dz = {dz_.data(), 4 * g_.time * g_.units};
            cuda::run_recurrent_backward<cell>(stream_, "lstm", plan, g_, p, workspace_.data());
        }
    }

    void forward(const cuda::recurrent_plan& plan) const {
        cuda::gemm_arguments<float> q = product(lines(), 4 * g_.units, g_.units, x_, w_, xz_);
        q.bias = bias_.data();
        cuda::gemm<float>(stream_, "x W + b", q);
        recur(recurrent_pass::forward, plan);
    }
    void backward(const cuda::recurrent_plan& plan) const {
        recur(recurrent_pass::backward, plan);
        cuda::gemm_arguments<float> q = product(lines(), g_.units, 4 * g_.units, dz_, w_, dx_);
        q.transpose_b = true, q.ldb = 4 * g_.units;
        cuda::gemm<float>(stream_, "dx", q);
        of_weights("dW", x_, dw_);
        // The operation copies h of the steps before into rows of their own; which rows they are takes no time.
        cuda::driver::copy(before_.data(), h_.data(), h_.bytes(), stream_);
        of_weights("dR", before_, dr_);
        cuda::gemm<float>(stream_, "db", product(1, 4 * g_.units, lines(), ones_, dz_, dbias_));
    }
    /// The transpose of one operand of all steps by dz.
    void of_weights(const char* name, const buffer<float>& operand, const buffer<float>& result) const {
        cuda::gemm_arguments<float> q = product(g_.units, 4 * g_.units, lines(), operand, dz_, result);
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
        std::printf("%lld\t%lld\t%lld\t%s\t%s\t%s\t%.2f\n", static_cast<long long>(g_.units),
                    static_cast<long long>(g_.time), static_cast<long long>(g_.batch),
                    pass == recurrent_pass::forward ? "forward" : "backward", way, mode, time);
        std::fflush(stdout);
    }

    cuda::recurrent_geometry g_;
    cuda::driver::stream stream_;
    gpu_timing::stopwatch watch_;
    buffer<float> x_, w_, r_, bias_, xz_, h_, c_, gates_, dh_, dz_, dx_, dw_, dr_, dbias_, before_, ones_;
    buffer<char> workspace_;
};

} // namespace

int main() {
    if (cuda::driver::device_count() == 0) {
        std::puts("no GPU: nothing was run");
        return 0;
    }
    try {
        for (const std::int64_t batch : {1, 8, 32, 128}) layer(batch, 128, 40).measure();
        layer(32, 512, 400).measure();
    } catch (const tg::error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
