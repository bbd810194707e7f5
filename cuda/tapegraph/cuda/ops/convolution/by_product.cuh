#pragma once

#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/im2col.cuh>
#include <tapegraph/cuda/ops/convolution/plan.hpp>
#include <tapegraph/cuda/ops/product/gemm.cuh>

#include <algorithm>

/// Computes the passes of a convolution of one group as matrix products of a library: over its
/// windows written out, in chunks that fit into scratch memory, or over the images themselves where
/// a window is one pixel. This also handles batches whose pixels cannot be counted in 32 bits, and
/// is the reference that kernels without written-out windows are compared with on a device.

namespace tapegraph::cuda {

/// `gemm` is called in order with gemm_arguments<T>: cuda::gemm on the call's stream, or a test's
/// substitute.
template <class T, class Gemm>
class convolution_by_product {
public:
    /// `workspace` must hold detail::chunk_bytes(g, sizeof(T), limit) for the same limit.
    convolution_by_product(const kernel_call& call, const char* operation, const convolution_geometry& g,
                           void* workspace, std::size_t limit, const Gemm& gemm)
        : call_(call),
          operation_(operation),
          g_(g),
          windows_(static_cast<T*>(workspace)),
          images_(detail::images_of_chunk(g, sizeof(T), limit)),
          pixelwise_(detail::is_pixelwise(g)),
          gemm_(gemm) {}

    void forward(const T* x, const T* w, const T* bias, bool relu, T* y) const {
        each_chunk([&](const convolution_geometry& part, std::int64_t image) {
            gemm_arguments<T> a;
            a.m = pixels(part), a.n = g_.out_channels, a.k = depth();
            a.a = windows_of(part, x + image * in()), a.lda = pitch();
            a.b = w, a.ldb = g_.out_channels;
            a.c = y + image * out(), a.ldc = g_.out_channels;
            a.bias = bias, a.relu = relu;
            gemm_(a);
        });
    }
    void input_gradient(const T* dy, const T* w, T* dx) const {
        each_chunk([&](const convolution_geometry& part, std::int64_t image) {
            gemm_arguments<T> a;
            a.m = pixels(part), a.n = depth(), a.k = g_.out_channels;
            a.a = dy + image * out(), a.lda = g_.out_channels;
            a.b = w, a.ldb = g_.out_channels, a.transpose_b = true;
            a.c = pixelwise_ ? dx + image * in() : windows_, a.ldc = pitch();
            gemm_(a);
            if (pixelwise_) return;
            start(part.batch * g_.in_height * g_.in_width, kernels::col2im<T>, kernels::convolution_shape(part),
                  windows_, pitch(), dx + image * in());
        });
    }
    void filter_gradient(const T* x, const T* dy, T* dw) const {
        const auto add = [&](const T* windows, std::int64_t pixels, std::int64_t image) {
            gemm_arguments<T> a;
            a.m = depth(), a.n = g_.out_channels, a.k = pixels;
            a.a = windows, a.lda = pitch(), a.transpose_a = true;
            a.b = dy + image * out(), a.ldb = g_.out_channels;
            a.c = dw, a.ldc = g_.out_channels;
            a.accumulate = image > 0;
            gemm_(a);
        };
        if (g_.batch == 0) add(windows_, 0, 0);
        each_chunk([&](const convolution_geometry& part, std::int64_t image) {
            add(windows_of(part, x + image * in()), pixels(part), image);
        });
    }

private:
    std::int64_t in() const { return g_.in_height * g_.in_width * g_.in_channels; }
    std::int64_t out() const { return g_.out_height * g_.out_width * g_.out_channels; }
    std::int64_t depth() const { return g_.kernel_height * g_.kernel_width * g_.in_channels; }
    std::int64_t pitch() const { return detail::window_pitch(g_, sizeof(T)); }
    static std::int64_t pixels(const convolution_geometry& g) { return g.batch * g.out_height * g.out_width; }

    template <class F>
    void each_chunk(const F& f) const {
        for (std::int64_t image = 0; image < g_.batch; image += images_) {
            convolution_geometry part = g_;
            part.batch = std::min(images_, g_.batch - image);
            f(part, image);
        }
    }
    template <class... P, class... A>
    void start(std::int64_t lines, void (*kernel)(P...), A&&... arguments) const {
        if (lines == 0) return;
        const auto blocks = static_cast<unsigned>(std::min<std::int64_t>((lines + 7) / 8, 65535));
        launch(call_, operation_, {blocks, dim3(32, 8)}, kernel, std::forward<A>(arguments)...);
    }
    const T* windows_of(const convolution_geometry& part, const T* x) const {
        if (pixelwise_) return x;
        const T* const none = nullptr;
        start(depth() == 0 ? 0 : pixels(part), kernels::im2col<T>,
              kernels::forward_problem<T>(part, false, x, none, none, false, nullptr), windows_, pitch());
        return windows_;
    }

    const kernel_call& call_;
    const char* operation_;
    convolution_geometry g_;
    T* windows_;
    std::int64_t images_;
    bool pixelwise_;
    const Gemm& gemm_;
};

} // namespace tapegraph::cuda
