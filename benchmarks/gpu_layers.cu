#include "gpu_timing.hpp"

#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/ops/convolution/convolution.cuh>
#include <tapegraph/cuda/ops/product/gemm.cuh>

#include <cstdio>
#include <cstring>
#include <string>

/// Times the convolutions of a CNN and matrix products of LSTM layers on a GPU, next to the least
/// time that this device's own ceilings allow (a copy's bandwidth, a large product's rate, both
/// measured first) and to cuBLAS on a plain product of the convolution's size. Prints lines of
/// tab-separated fields, which gpu_table.py formats as a table:
///
///     layer  pass  batch  mode  M  N  K  floor  cuBLAS  ours        (microseconds; medians, cold level 2 cache)
///
///     bench_gpu_layers [largest batch]

namespace tg = tapegraph;
namespace cuda = tapegraph::cuda;
using gpu_timing::buffer;

namespace {

struct layer {
    const char* name;
    std::int64_t size, in, taps, out; ///< square images and filters, no padding
};
constexpr layer cnn[]{
    {"L1 3x3 3->150", 50, 3, 3, 150}, {"L2 5x5 150->300", 24, 150, 5, 300}, {"L3 3x3 300->200", 10, 300, 3, 200}};

struct ceilings {
    double bytes_per_us = 0, fp32 = 0, tf32 = 0, bf16 = 0; ///< FLOP per microsecond
};

class benchmark {
public:
    benchmark() : context_(cuda::context::of(0)), stream_(context_.stream()), watch_(stream_) {}

    void measure_ceilings() {
        const buffer<char> from(std::int64_t{1} << 30), to(from.size());
        most_.bytes_per_us = 2.0 * static_cast<double>(from.bytes()) /
                             watch_.median([&] { cuda::driver::copy(to.data(), from.data(), from.bytes(), stream_); });
        most_.fp32 = rate<float>(4096, tg::math_mode::fp32);
        most_.tf32 = rate<float>(8192, tg::math_mode::tf32);
        most_.bf16 = rate<tg::bfloat16>(8192, tg::math_mode::fp32);
        const auto& p = context_.properties();
        std::printf(
            "# %s, %d multiprocessors, compute capability %d.%d; measured: copy %.2f TB/s, products in TFLOP/s: fp32 "
            "%.1f, tf32 %.0f, bf16 %.0f\n",
            p.name.c_str(), p.multiprocessors, p.major, p.minor, most_.bytes_per_us / 1e6, most_.fp32 / 1e6,
            most_.tf32 / 1e6, most_.bf16 / 1e6);
    }

    void convolutions(const layer& l, std::int64_t batch) {
        const std::int64_t side = l.size - l.taps + 1;
        const buffer<float> x(batch * l.size * l.size * l.in), w(l.taps * l.taps * l.in * l.out),
            y(batch * side * side * l.out);
        if (x.data() == nullptr || w.data() == nullptr || y.data() == nullptr) return;
        gpu_timing::fill(x, 1, stream_), gpu_timing::fill(w, 2, stream_), gpu_timing::fill(y, 3, stream_);
        const tg::buffer_view image = view(x, {batch, l.size, l.size, l.in}),
                              filter = view(w, {l.taps, l.taps, l.in, l.out}),
                              result = view(y, {batch, side, side, l.out});
        const double flop = 2.0 * static_cast<double>(y.size() * l.taps * l.taps * l.in);
        const double bytes = static_cast<double>(x.bytes() + w.bytes() + y.bytes());
        const std::int64_t pixels = batch * side * side, reach = l.taps * l.taps;
        for (tg::math_mode mode : {tg::math_mode::fp32, tg::math_mode::tf32x3, tg::math_mode::tf32}) {
            tg::set_math_mode(mode);
            pass<tg::convolution_op>(l, "forward", batch, flop, bytes, {image, filter}, result,
                                     {pixels, l.out, reach * l.in});
            if (l.in > 3) // the gradient of the images themselves is not needed
                pass<tg::convolution_input_gradient_op>(l, "input", batch, flop, bytes, {result, filter}, image,
                                                        {batch * l.size * l.size, l.in, reach * l.out});
            pass<tg::convolution_filter_gradient_op>(l, "filter", batch, flop, bytes, {image, result}, filter,
                                                     {reach * l.in, l.out, pixels});
        }
        tg::set_math_mode(tg::math_mode::fp32);
    }

    void products(const char* name, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
        for (tg::math_mode mode : {tg::math_mode::fp32, tg::math_mode::tf32}) {
            const double time = product<float>({m, n, k}, mode);
            const double flop = 2.0 * static_cast<double>(m * n * k);
            line(name, "product", batch, mode, {m, n, k},
                 least(mode, flop, 4.0 * static_cast<double>(m * k + k * n + m * n)), time, -1);
        }
    }

private:
    struct sizes {
        std::int64_t m, n, k;
    };

    template <class T>
    static tg::buffer_view view(const buffer<T>& b, std::initializer_list<std::int64_t> extents) {
        tg::buffer_view v;
        v.data = b.data(), v.type = tg::dtype_of<T>;
        for (std::int64_t e : extents) v.extents[v.rank++] = e;
        return v;
    }
    static const char* name_of(tg::math_mode mode) {
        return mode == tg::math_mode::fp32 ? "fp32" : mode == tg::math_mode::tf32 ? "tf32" : "tf32x3";
    }
    double least(tg::math_mode mode, double flop, double bytes) const {
        // tf32x3 is three products in TF32.
        const double rate = mode == tg::math_mode::fp32   ? most_.fp32
                            : mode == tg::math_mode::tf32 ? most_.tf32
                                                          : most_.tf32 / 3;
        return std::max(flop / rate, bytes / most_.bytes_per_us);
    }

    /// Microseconds of a row-major product through cuBLAS, negative when its operands do not fit.
    template <class T>
    double product(const sizes& s, tg::math_mode mode) const {
        const buffer<T> a(s.m * s.k), b(s.k * s.n), c(s.m * s.n);
        if (a.data() == nullptr || b.data() == nullptr || c.data() == nullptr) return -1;
        gpu_timing::fill(a, 4, stream_), gpu_timing::fill(b, 5, stream_);
        cuda::gemm_arguments<T> g;
        g.m = s.m, g.n = s.n, g.k = s.k, g.lda = s.k, g.ldb = s.n, g.ldc = s.n;
        g.a = a.data(), g.b = b.data(), g.c = c.data();
        return watch_.median([&] { cuda::gemm<T>(stream_, "benchmark", g, mode); });
    }
    template <class T>
    double rate(std::int64_t size, tg::math_mode mode) const {
        const double flop = 2.0 * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
        return flop / product<T>({size, size, size}, mode);
    }

    template <class Op>
    void pass(const layer& l, const char* name, std::int64_t batch, double flop, double bytes,
              std::initializer_list<tg::buffer_view> in, const tg::buffer_view& out, const sizes& s) const {
        const auto words = tg::attributes_to_words<tg::convolution_op>(tg::window_attributes{});
        tg::kernel_call call;
        call.in = in.begin(), call.inputs = 2, call.out = &out, call.outputs = 1;
        call.attributes = words.value, call.stream = stream_;
        const tg::runtime::kernel_functions kernel = cuda::kernel_for<Op, float>();
        const buffer<char> scratch(static_cast<std::int64_t>(kernel.workspace(call)) + 1);
        call.workspace = scratch.data();
        const double ours = watch_.median([&] { kernel.run(call); });
        const tg::math_mode mode = tg::current_math_mode();
        line(l.name, name, batch, mode, s, least(mode, flop, bytes), product<float>(s, mode), ours);
    }

    static void line(const char* name, const char* pass, std::int64_t batch, tg::math_mode mode, const sizes& s,
                     double floor, double library, double ours) {
        std::printf("%s\t%s\t%lld\t%s\t%lld\t%lld\t%lld\t%.2f\t%.2f\t%.2f\n", name, pass, static_cast<long long>(batch),
                    name_of(mode), static_cast<long long>(s.m), static_cast<long long>(s.n),
                    static_cast<long long>(s.k), floor, library, ours);
        std::fflush(stdout);
    }

    cuda::context& context_;
    cuda::driver::stream stream_;
    gpu_timing::stopwatch watch_;
    ceilings most_;
};

} // namespace

int main(int count, char** arguments) {
    const std::int64_t largest = count > 1 ? std::atoll(arguments[1]) : 128;
    try {
        benchmark b;
        b.measure_ceilings();
        for (std::int64_t batch : {1, 32, 128, 1024})
            for (const layer& l : cnn)
                if (batch <= largest) b.convolutions(l, batch);
        b.products("LSTM 128, 40 steps", 32, 40 * 32, 512, 128);
        b.products("LSTM 512, 400 steps", 32, 400 * 32, 2048, 512);
        b.products("dense 12800->10", 32, 32, 10, 12800);
    } catch (const tg::error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
