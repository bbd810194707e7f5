#include <tapegraph/cpu/gemm.hpp>
#include <tapegraph/fast_convolution.hpp>
#include <tapegraph/ops/convolution/cpu.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

/// Measures the matrix and convolution kernels relative to the processor's multiply-add peak, which
/// is measured in the same run.
/// Usage: kernels [part of a name]. TAPEGRAPH_ISA and OMP_NUM_THREADS choose instruction set and
/// threads.

namespace {

namespace cpu = tapegraph::cpu;

double seconds() {
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

template <class T>
struct buffer {
    explicit buffer(std::size_t elements)
        : bytes((elements * sizeof(T) + 127) / 64 * 64), memory(static_cast<T*>(std::aligned_alloc(64, bytes))) {
        for (std::size_t i = 0; i < bytes / sizeof(T); ++i) memory.get()[i] = static_cast<T>((i * 7 % 13) / 13.0 - 0.5);
    }
    T* get() { return memory.get(); }

private:
    struct release {
        void operator()(T* p) const { std::free(p); }
    };
    std::size_t bytes;
    std::unique_ptr<T, release> memory;
};

template <class F>
double best_of(const F& f) {
    f();
    double best = 1e30, total = 0;
    for (int run = 0; run < 200 && (total < 0.4 || run < 3); ++run) {
        const double start = seconds();
        f();
        const double time = seconds() - start;
        total += time;
        best = time < best ? time : best;
    }
    return best;
}

// The tile kernel on operands that stay in L1 gives the peak: only multiply-adds limit it.
double measure_peak() {
    const int threads = tapegraph::thread_count();
    const auto& kernels = cpu::active_tile_kernels<float>();
    const double time = best_of([&] {
        cpu::parallel_team(threads > 1, [&](int, int) {
            alignas(64) float a[12] = {}, b[32 * 32] = {}, c[12 * 32];
            cpu::tile_job<float> job{};
            job.walk.outer = 100000;
            job.walk.inner = 32;
            job.walk.a_inner = 0;
            job.walk.b_skip = -32 * 2 * kernels.lanes;
            job.a = a;
            job.a_row = 1;
            job.b = b;
            job.c = c;
            job.c_row = 2 * kernels.lanes;
            job.columns = 2 * kernels.lanes;
            kernels.run[1][kernels.rows - 1](job);
        });
    });
    return threads * 100000.0 * 32 * kernels.rows * 2 * kernels.lanes * 2 / time / 1e9;
}

double peak = 0;
const char* wanted = "";

template <class F>
void report(const std::string& name, double flops, const F& f) {
    if (name.find(wanted) == std::string::npos) return;
    const double time = best_of(f);
    std::printf("%-64s %10.3f ms %8.1f GF/s %6.1f %%\n", name.c_str(), time * 1e3, flops / time / 1e9,
                100 * flops / time / 1e9 / peak);
    std::fflush(stdout);
}

void convolution(const char* name, cpu::convolution_geometry g) {
    std::string label = std::string(name) + " batch " + std::to_string(g.batch);
    buffer<float> x(static_cast<std::size_t>(g.batch * g.in_height * g.in_width * g.in_channels));
    buffer<float> y(static_cast<std::size_t>(g.batch * g.out_height * g.out_width * g.out_channels));
    buffer<float> w(static_cast<std::size_t>(g.kernel_height * g.kernel_width * g.group_in() * g.out_channels));
    const double flops = 2.0 * static_cast<double>(g.batch * g.out_height * g.out_width * g.out_channels) *
                         static_cast<double>(g.kernel_height * g.kernel_width * g.group_in());
    const int threads = tapegraph::thread_count();
    {
        buffer<char> work(cpu::convolution_workspace_bytes<float>(g, cpu::convolution_pass::forward, threads));
        report(label + " forward", flops, [&] { cpu::convolution_forward(g, x.get(), w.get(), y.get(), work.get()); });
        buffer<float> packed(cpu::packed_filter_bytes<float>(g) / sizeof(float));
        cpu::pack_filters(g, w.get(), packed.get());
        report(label + " forward, packed", flops,
               [&] { cpu::convolution_forward_packed(g, x.get(), packed.get(), y.get(), work.get()); });
    }
    {
        buffer<char> work(cpu::convolution_workspace_bytes<float>(g, cpu::convolution_pass::input_gradient, threads));
        report(label + " input gradient", flops,
               [&] { cpu::convolution_input_gradient(g, y.get(), w.get(), x.get(), work.get()); });
    }
    {
        buffer<char> work(cpu::convolution_workspace_bytes<float>(g, cpu::convolution_pass::filter_gradient, threads));
        report(label + " filter gradient", flops,
               [&] { cpu::convolution_filter_gradient(g, x.get(), y.get(), w.get(), work.get()); });
    }
    cpu::convolution_geometry fewer = g;
    if (cpu::algorithm_for<float>(fewer) == nullptr) return;
    if (fewer.algorithm == tapegraph::convolution_algorithm::fourier)
        label += " by " + std::to_string(cpu::detail::line_tiles(fewer, true).transform);
    // GF/s of these count the products of direct sums.
    const auto bytes = [&](cpu::convolution_pass pass) {
        return cpu::fast_convolution.workspace(fewer, pass, threads, false);
    };
    {
        buffer<char> work(bytes(cpu::convolution_pass::forward));
        report(label + " forward, fast", flops, [&] {
            cpu::fast_convolution.forward(fewer, x.get(), w.get(), y.get(), work.get(), {}, false, nullptr);
        });
    }
    {
        buffer<char> work(bytes(cpu::convolution_pass::input_gradient));
        report(label + " input gradient, fast", flops,
               [&] { cpu::fast_convolution.input_gradient(fewer, y.get(), w.get(), x.get(), work.get()); });
    }
    {
        buffer<char> work(bytes(cpu::convolution_pass::filter_gradient));
        report(label + " filter gradient, fast", flops,
               [&] { cpu::fast_convolution.filter_gradient(fewer, x.get(), y.get(), w.get(), work.get()); });
    }
}

void product(const char* name, std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b) {
    if (std::string(name).find(wanted) == std::string::npos) return;
    buffer<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
        c(static_cast<std::size_t>(m * n));
    const cpu::gemm_arguments<float> g{
        m,           n,       k, a.get(), transpose_a ? m : k, transpose_a, b.get(), transpose_b ? k : n,
        transpose_b, c.get(), n, false};
    buffer<char> work(cpu::gemm_workspace_bytes(g, tapegraph::thread_count()));
    report(name, 2.0 * static_cast<double>(m * n * k), [&] { cpu::gemm(g, work.get()); });
    if (m > 64 || m == 1) return;
    buffer<float> packed(cpu::gemm_packed_bytes<float>(n, k) / sizeof(float));
    cpu::gemm_pack_b(g, packed.get());
    auto with_packed = g;
    with_packed.packed_b = packed.get();
    report(std::string(name) + ", packed", 2.0 * static_cast<double>(m * n * k),
           [&] { cpu::gemm(with_packed, work.get()); });
}

void batched(const char* name, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
    if (std::string(name).find(wanted) == std::string::npos) return;
    buffer<float> a(static_cast<std::size_t>(batch * m * k)), b(static_cast<std::size_t>(batch * k * n)),
        c(static_cast<std::size_t>(batch * m * n));
    const cpu::gemm_arguments<float> g{m, n, k, a.get(), k, false, b.get(), n, false, c.get(), n, false};
    buffer<char> work(cpu::gemm_batched_workspace_bytes(g, batch, tapegraph::thread_count()));
    report(name, 2.0 * static_cast<double>(batch * m * n * k),
           [&] { cpu::gemm_batched(g, batch, m * k, k * n, m * n, work.get()); });
}

} // namespace

int main(int argc, char** argv) {
    if (argc > 1) wanted = argv[1];
    peak = measure_peak();
    std::printf("%d threads, multiply-add peak %.1f GF/s\n", tapegraph::thread_count(), peak);
    product("gemm 1024 x 1024 x 1024", 1024, 1024, 1024, false, false);
    product("gemm 1024 x 1024 x 1024, a transposed", 1024, 1024, 1024, true, false);
    product("gemm 1024 x 1024 x 1024, b transposed", 1024, 1024, 1024, false, true);
    product("gemm 2048 x 2048 x 2048", 2048, 2048, 2048, false, false);
    product("gemm 400 x 300 x 3750", 400, 300, 3750, false, false);
    product("gemm 4 x 2304 x 768", 4, 2304, 768, false, false);
    product("gemm 12 x 768 x 768", 12, 768, 768, false, false);
    product("gemm 32 x 2048 x 512", 32, 2048, 512, false, false);
    product("gemm 32 x 2048 x 512, b transposed", 32, 2048, 512, false, true);
    product("gemm 32 x 512 x 128", 32, 512, 128, false, false);
    product("gemm 512 x 2048 x 32, a transposed", 512, 2048, 32, true, false);
    product("gemm 1024 x 10 x 784", 1024, 10, 784, false, false);
    batched("gemm batch 4096, 4 x 4 x 4", 4096, 4, 4, 4);
    batched("gemm batch 1024, 16 x 16 x 16", 1024, 16, 16, 16);
    batched("gemm batch 96, 64 x 64 x 64", 96, 64, 64, 64);
    batched("gemm batch 96, 128 x 128 x 64", 96, 128, 128, 64);
    batched("gemm batch 512, 1 x 64 x 64", 512, 1, 64, 64);
    product("gemm 128 x 128 x 128", 128, 128, 128, false, false);
    product("gemm 1024 x 1 x 3200", 1024, 1, 3200, false, false);
    product("gemm 3200 x 1 x 1024, a transposed", 3200, 1, 1024, true, false);
    product("gemm 1024 x 3200 x 1", 1024, 3200, 1, false, false);
    product("gemm 1 x 3200 x 1024", 1, 3200, 1024, false, false);
    for (const std::int64_t batch : {1, 8, 16, 32}) {
        convolution("conv1 50x50x3 3x3 150", {batch, 50, 50, 3, 3, 3, 48, 48, 150});
        convolution("conv2 24x24x150 5x5 300", {batch, 24, 24, 150, 5, 5, 20, 20, 300});
        convolution("1-D 16x128 16 128 same", {batch, 1, 16, 128, 1, 16, 1, 16, 128, 1, 1, 0, 8});
        convolution("1-D 45x128 20 64", {batch, 1, 45, 128, 1, 20, 1, 26, 64});
        convolution("1-D 64x128 9 128 same", {batch, 1, 64, 128, 1, 9, 1, 64, 128, 1, 1, 0, 4});
        convolution("1-D 300x64 5 64 same", {batch, 1, 300, 64, 1, 5, 1, 300, 64, 1, 1, 0, 2});
        convolution("1-D 350x33 100 32", {batch, 1, 350, 33, 1, 100, 1, 251, 32});
        convolution("1-D 140x30 40 128 stride 4 same", {batch, 1, 140, 30, 1, 40, 1, 35, 128, 1, 4, 0, 18});
        convolution("1-D 1362x128 20 256", {batch, 1, 1362, 128, 1, 20, 1, 1343, 256});
        convolution("1-D 1400x128 9 128", {batch, 1, 1400, 128, 1, 9, 1, 1392, 128});
        convolution("1-D 1343x256 20 256", {batch, 1, 1343, 256, 1, 20, 1, 1324, 256});
        convolution("1-D 121x64 20 128", {batch, 1, 121, 64, 1, 20, 1, 102, 128});
        convolution("1-D 1400x30 40 128 stride 4", {batch, 1, 1400, 30, 1, 40, 1, 341, 128, 1, 4});
        convolution("1-D 1400x30 400 64 stride 4", {batch, 1, 1400, 30, 1, 400, 1, 251, 64, 1, 4});
        convolution("depthwise 28x28x256 3x3", {batch, 28, 28, 256, 3, 3, 28, 28, 256, 1, 1, 1, 1, 1, 1, 256});
        convolution("depthwise 56x56x64 3x3", {batch, 56, 56, 64, 3, 3, 56, 56, 64, 1, 1, 1, 1, 1, 1, 64});
        convolution("depthwise 28x28x72 5x5", {batch, 28, 28, 72, 5, 5, 28, 28, 72, 1, 1, 2, 2, 1, 1, 72});
        convolution("14x14x512 1x1 512", {batch, 14, 14, 512, 1, 1, 14, 14, 512});
        convolution("14x14x256 3x3 256 dilation 2", {batch, 14, 14, 256, 3, 3, 14, 14, 256, 1, 1, 2, 2, 2, 2});
        convolution("conv3 10x10x300 3x3 200", {batch, 10, 10, 300, 3, 3, 8, 8, 200});
    }
}
