#pragma once

#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/winograd.cuh>
#include <tapegraph/cuda/ops/convolution/winograd_plan.hpp>
#include <tapegraph/cuda/ops/product/gemm.cuh>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

/// Computes the passes of a convolution of floats by Winograd's algorithm: transforms of tiles and
/// filters, products of a library, one for each element of a tile, and a transform of their sums.
/// As on the CPU (cpu_fast.hpp) gradients are the adjoints:
///
///     forward          y  = A^T ((B x B^T) (G w G^T)) A
///     input gradient   dx = B^T ((A dy A^T) (G w G^T)^T) B, added up over tiles that overlap
///     filter gradient  dw = G^T (sum over tiles of (B x B^T)^T (A dy A^T)) G

namespace tapegraph::cuda {

/// `gemm` is called in order with gemm_arguments<float>, to be computed in float: cuda::gemm on the
/// call's stream, or a test's substitute.
template <class Gemm>
class convolution_by_winograd {
public:
    /// `workspace` must hold detail::winograd_chunks(g, pass, limit).workspace() for the same limit. Calls
    /// are of this pass.
    convolution_by_winograd(const kernel_call& call, const char* operation, const convolution_geometry& g,
                            convolution_pass pass, void* workspace, std::size_t limit, const Gemm& gemm)
        : call_(call),
          operation_(operation),
          g_(g),
          chunks_(g, pass, limit),
          filters_(static_cast<float*>(library_scratch(workspace))),
          inputs_(filters_ + chunks_.products * chunks_.parts * chunks_.filter_stride()),
          outputs_(inputs_ + chunks_.products * chunks_.in_stride()),
          gemm_(gemm) {}

    /// `pooled`: y receives the largest of 2 by 2 outputs.
    void forward(const float* x, const float* w, const float* bias, bool relu, bool pooled, float* y) const {
        transform_filters(w);
        const std::int64_t results = pooled ? g_.out_height / 2 * (g_.out_width / 2) : g_.out_height * g_.out_width;
        each_chunk([&](std::int64_t image, std::int64_t images) {
            transform_inputs(x, image, images);
            gemm_arguments<float> a = product(images);
            a.n = chunks_.out_pitch, a.k = chunks_.in_pitch;
            a.a = inputs_, a.lda = chunks_.in_pitch, a.stride_a = chunks_.in_stride();
            a.b = filters_, a.ldb = chunks_.out_pitch, a.stride_b = chunks_.filter_stride();
            a.c = outputs_, a.ldc = chunks_.out_pitch, a.stride_c = chunks_.out_stride();
            gemm_(a);
            const kernels::winograd_tiles t = output_tiles(images);
            float* const to = y + image * results * g_.out_channels;
            with_taps([&](auto taps) {
                if (pooled)
                    start(t.count, kernels::winograd_outputs<taps(), true>, t, outputs_, bias, relu, to);
                else
                    start(t.count, kernels::winograd_outputs<taps(), false>, t, outputs_, bias, relu, to);
            });
        });
    }
    void input_gradient(const float* dy, const float* w, float* dx) const {
        transform_filters(w);
        each_chunk([&](std::int64_t image, std::int64_t images) {
            transform_gradients(dy, image, images);
            gemm_arguments<float> a = product(images);
            a.n = chunks_.in_pitch, a.k = chunks_.out_pitch;
            a.a = outputs_, a.lda = chunks_.out_pitch, a.stride_a = chunks_.out_stride();
            a.b = filters_, a.ldb = chunks_.out_pitch, a.stride_b = chunks_.filter_stride(), a.transpose_b = true;
            a.c = inputs_, a.ldc = chunks_.in_pitch, a.stride_c = chunks_.in_stride();
            gemm_(a);
            kernels::winograd_tiles blocks = input_tiles(images);
            cut(blocks, images, detail::winograd_chunks::pieces(g_.in_height + g_.pad_top, cpu::detail::fast_outputs),
                detail::winograd_chunks::pieces(g_.in_width + g_.pad_left, cpu::detail::fast_outputs));
            with_taps([&](auto taps) {
                start(blocks.count, kernels::winograd_input_gradients<taps()>, blocks, as_int(chunks_.down),
                      as_int(chunks_.across), inputs_, dx + image * input_elements());
            });
        });
    }
    void filter_gradient(const float* x, const float* dy, float* dw) const {
        each_chunk([&](std::int64_t image, std::int64_t images) {
            transform_inputs(x, image, images);
            transform_gradients(dy, image, images);
            gemm_arguments<float> a;
            a.m = chunks_.in_pitch, a.n = chunks_.out_pitch;
            a.k = chunks_.parts > 1 ? chunks_.part() : images * chunks_.down * chunks_.across;
            a.batch = chunks_.products * chunks_.parts;
            a.a = inputs_, a.lda = chunks_.in_pitch, a.stride_a = chunks_.in_stride() / chunks_.parts;
            a.b = outputs_, a.ldb = chunks_.out_pitch, a.stride_b = chunks_.out_stride() / chunks_.parts;
            a.transpose_a = true;
            a.c = filters_, a.ldc = chunks_.out_pitch, a.stride_c = chunks_.filter_stride();
            a.accumulate = image > 0;
            gemm_(a);
        });
        kernels::winograd_filters f = filters();
        if (chunks_.parts > 1)
            launch(call_, operation_,
                   {dim3(blocks_of(f.count), static_cast<unsigned>(chunks_.products)), block_threads},
                   kernels::winograd_add_parts<float>, filters_, f.count, as_int(chunks_.parts), f.stride);
        f.stride *= chunks_.parts;
        with_taps([&](auto taps) { start(f.count, kernels::winograd_filter_gradients<taps()>, f, filters_, dw); });
    }

private:
    static constexpr unsigned block_threads = 128;
    static unsigned blocks_of(int threads) {
        return (static_cast<unsigned>(threads) + block_threads - 1) / block_threads;
    }
    static int as_int(std::int64_t v) { return static_cast<int>(v); }
    std::int64_t input_elements() const { return g_.in_height * g_.in_width * g_.in_channels; }

    template <class F>
    void with_taps(const F& f) const {
        if (g_.kernel_width == 5)
            f(std::integral_constant<int, 5>{});
        else
            f(std::integral_constant<int, 3>{});
    }
    template <class F>
    void each_chunk(const F& f) const {
        for (std::int64_t image = 0; image < g_.batch; image += chunks_.images)
            f(image, std::min(chunks_.images, g_.batch - image));
    }
    template <class... P, class... A>
    void start(int threads, void (*kernel)(P...), A&&... arguments) const {
        launch(call_, operation_, {blocks_of(threads), block_threads}, kernel, std::forward<A>(arguments)...);
    }

    /// The products of a chunk's tiles.
    gemm_arguments<float> product(std::int64_t images) const {
        gemm_arguments<float> a;
        a.m = images * chunks_.down * chunks_.across, a.batch = chunks_.products;
        return a;
    }
    void cut(kernels::winograd_tiles& t, std::int64_t images, std::int64_t down, std::int64_t across) const {
        t.tiles = as_int(images * down * across), t.down = as_int(down), t.across = as_int(across);
        t.count = (chunks_.parts > 1 ? as_int(chunks_.parts * chunks_.part()) : t.tiles) * t.pitch;
        t.by_pitch = kernels::divisor(static_cast<unsigned>(t.pitch));
        t.by_image = kernels::divisor(static_cast<unsigned>(down * across));
        t.by_across = kernels::divisor(static_cast<unsigned>(across));
    }
    kernels::winograd_tiles input_tiles(std::int64_t images) const {
        kernels::winograd_tiles t{};
        t.height = as_int(g_.in_height), t.width = as_int(g_.in_width), t.channels = as_int(g_.in_channels);
        t.top = as_int(g_.pad_top), t.left = as_int(g_.pad_left);
        t.pitch = as_int(chunks_.in_pitch), t.stride = chunks_.in_stride();
        cut(t, images, chunks_.down, chunks_.across);
        return t;
    }
    kernels::winograd_tiles output_tiles(std::int64_t images) const {
        kernels::winograd_tiles t{};
        t.height = as_int(g_.out_height), t.width = as_int(g_.out_width), t.channels = as_int(g_.out_channels);
        t.pitch = as_int(chunks_.out_pitch), t.stride = chunks_.out_stride();
        cut(t, images, chunks_.down, chunks_.across);
        return t;
    }
    kernels::winograd_filters filters() const {
        kernels::winograd_filters f{};
        f.in = as_int(g_.in_channels), f.out = as_int(g_.out_channels), f.pitch = as_int(chunks_.out_pitch);
        f.count = as_int(chunks_.in_pitch * chunks_.out_pitch);
        f.stride = chunks_.filter_stride();
        f.by_pitch = kernels::divisor(static_cast<unsigned>(f.pitch));
        return f;
    }

    void transform_filters(const float* w) const {
        const kernels::winograd_filters f = filters();
        with_taps([&](auto taps) { start(f.count, kernels::winograd_filter_factors<taps()>, f, w, filters_); });
    }
    void transform_inputs(const float* x, std::int64_t image, std::int64_t images) const {
        const kernels::winograd_tiles t = input_tiles(images);
        with_taps([&](auto taps) {
            start(t.count, kernels::winograd_factors<taps(), kernels::input_map>, t, x + image * input_elements(),
                  inputs_);
        });
    }
    void transform_gradients(const float* dy, std::int64_t image, std::int64_t images) const {
        const kernels::winograd_tiles t = output_tiles(images);
        const float* const from = dy + image * g_.out_height * g_.out_width * g_.out_channels;
        with_taps([&](auto taps) {
            start(t.count, kernels::winograd_factors<taps(), kernels::output_map>, t, from, outputs_);
        });
    }

    const kernel_call& call_;
    const char* operation_;
    convolution_geometry g_;
    detail::winograd_chunks chunks_;
    float *filters_, *inputs_, *outputs_; ///< factors, or sums of products in their place
    const Gemm& gemm_;
};

} // namespace tapegraph::cuda
