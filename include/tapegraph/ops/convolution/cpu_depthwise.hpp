#pragma once

#include <tapegraph/ops/convolution/cpu_depthwise_block.hpp>
#include <tapegraph/ops/convolution/cpu_tiling.hpp>

#include <numeric>

/// Depthwise convolutions (one input and one output channel per group). There are no matrices to
/// multiply, so lanes are channels, and every pass is a sum of elementwise products over a grid of
/// two strides,
///   out[c] (+)= sum over i, j of a[i, j, c] * b[i, j, c].
/// Up to eight outputs with the same taps share what is read of the filter, and of a where the next
/// output begins at the next tap. Multiply-adds are fused, as in products. The usual kernels of the
/// first two passes are in cpu_depthwise_block.hpp.

TG_ROUNDS_EACH_BEGIN
namespace tapegraph::cpu::detail {

inline bool is_depthwise(const convolution_geometry& g) {
    return g.groups > 1 && g.group_in() == 1 && g.group_out() == 1;
}

inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/// The positions along one axis that contribute: `count` of them, a at first_a + t * step_a, b at
/// first_b + t * step_b.
struct depthwise_axis {
    std::int64_t count, first_a, step_a, first_b, step_b;
};

// Forward, output i: a is x at i * stride - pad + u * dilation, b is w at u.
inline depthwise_axis forward_axis(std::int64_t i, std::int64_t in, std::int64_t kernel, std::int64_t stride,
                                   std::int64_t pad, std::int64_t dilation) {
    const std::int64_t at = i * stride - pad;
    const std::int64_t first = std::max<std::int64_t>(0, -floor_divide(at, dilation));
    const std::int64_t last = std::min(kernel - 1, floor_divide(in - 1 - at, dilation));
    return {last - first + 1, at + first * dilation, dilation, first, 1};
}

// Input gradient, input i: a is dy at (i + pad - u * dilation) / stride where that divides, b is w at u.
inline depthwise_axis input_axis(std::int64_t i, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                                 std::int64_t pad, std::int64_t dilation) {
    const std::int64_t common = std::gcd(stride, dilation), step = stride / common, back = dilation / common;
    std::int64_t u = 0;
    while (u < step && (i + pad - u * dilation) % stride != 0) ++u;
    if (u >= step || u >= kernel) return {0, 0, 0, 0, 0};
    std::int64_t at = floor_divide(i + pad - u * dilation, stride);
    const std::int64_t skip = at >= out ? divide_up(at - out + 1, back) : 0;
    u += skip * step;
    at -= skip * back;
    if (at < 0 || u >= kernel) return {0, 0, 0, 0, 0};
    return {std::min((kernel - u + step - 1) / step, at / back + 1), at, -back, u, step};
}

/// A run of outputs.
struct depthwise_outputs {
    std::int64_t first, last;
};
inline depthwise_outputs outputs_within(std::int64_t first, std::int64_t last, std::int64_t outputs) {
    first = std::clamp<std::int64_t>(first, 0, outputs);
    return {first, std::clamp<std::int64_t>(last, first, outputs)};
}

/// `Outputs` outputs of `pixel` channels with the same taps, `apart` elements from one another; a
/// begins `next` elements later for each. Several are compiled where blocks are.
template <class T, int Outputs>
struct depthwise_body {
    template <class Isa>
    TG_INLINE static void run(const depthwise_axis& rows, const depthwise_axis& columns, const T* a, std::int64_t a_row,
                              const T* b, std::int64_t b_row, std::int64_t pixel, std::int64_t next, std::int64_t apart,
                              T* out) {
        if constexpr (Outputs == 1 || has_depthwise_blocks<Isa>)
            with_vectors<Isa, Isa::vector_bytes>(rows, columns, a, a_row, b, b_row, pixel, next, apart, out);
    }

private:
    // Vectors that are no wider than the channels; the last one may overlap the one before.
    template <class Isa, int Bytes>
    TG_INLINE static void with_vectors(const depthwise_axis& rows, const depthwise_axis& columns, const T* a,
                                       std::int64_t a_row, const T* b, std::int64_t b_row, std::int64_t pixel,
                                       std::int64_t next, std::int64_t apart, T* out) {
        using v = vector<T, Bytes>;
        if constexpr (v::lanes > 1)
            if (pixel < v::lanes)
                return with_vectors<Isa, Bytes / 2>(rows, columns, a, a_row, b, b_row, pixel, next, apart, out);
        if constexpr (Outputs == 8 && Bytes == Isa::vector_bytes) { // elsewhere it saves little
            // One step in a is one tap or one output; in the input's gradient they go in opposite directions.
            const std::int64_t step = columns.step_a * pixel, last = Outputs - 1;
            const bool meet = columns.step_b == 1 && (step == next || step == -next);
            const std::int64_t flip = step == next ? 0 : last;
            const T* const from = a + flip * next;
            T* const to = out + flip * apart;
            const std::int64_t forth = step == next ? apart : -apart;
            if (meet && columns.count == 3)
                return strips<v, 3>(rows, columns, from, a_row, b, b_row, pixel, step, forth, to);
            if (meet && columns.count == 5)
                return strips<v, 5>(rows, columns, from, a_row, b, b_row, pixel, step, forth, to);
        }
        strips<v, 0>(rows, columns, a, a_row, b, b_row, pixel, next, apart, out);
    }
    template <class V, int Taps>
    TG_INLINE static void strips(const depthwise_axis& rows, const depthwise_axis& columns, const T* a,
                                 std::int64_t a_row, const T* b, std::int64_t b_row, std::int64_t pixel,
                                 std::int64_t next, std::int64_t apart, T* out) {
        for (std::int64_t c = 0; c < pixel; c += V::lanes) {
            if (c + V::lanes > pixel) c = pixel - V::lanes; // once more, with the same values
            if constexpr (Taps == 0)
                sums<V>(rows, columns, a + c, a_row, b + c, b_row, pixel, next, apart, out + c, all_outputs{});
            else
                meeting<V, Taps>(rows, columns, a + c, a_row, b + c, b_row, pixel, next, apart, out + c, all_outputs{},
                                 std::make_index_sequence<static_cast<std::size_t>(Taps)>{},
                                 std::make_index_sequence<static_cast<std::size_t>(Outputs + Taps - 1)>{});
        }
    }
    using all_outputs = std::make_index_sequence<static_cast<std::size_t>(Outputs)>;
    // Packs, because g++ does not unroll loops over vectors everywhere.
    template <class V, std::size_t... K>
    TG_INLINE static void sums(const depthwise_axis& rows, const depthwise_axis& columns, const T* a,
                               std::int64_t a_row, const T* b, std::int64_t b_row, std::int64_t pixel,
                               std::int64_t next, std::int64_t apart, T* out, std::index_sequence<K...>) {
        typename V::type sum[Outputs] = {}, x[Outputs], y;
        for (std::int64_t i = 0; i < rows.count; ++i) {
            const T* p = a + (rows.first_a + i * rows.step_a) * a_row + columns.first_a * pixel;
            const T* q = b + (rows.first_b + i * rows.step_b) * b_row + columns.first_b * pixel;
            for (std::int64_t j = 0; j < columns.count; ++j) {
                V::load(y, q);
                (V::load(x[K], p + static_cast<std::int64_t>(K) * next), ...);
                (V::multiply_add(sum[K], x[K], y), ...);
                p += columns.step_a * pixel;
                q += columns.step_b * pixel;
            }
        }
        (V::store(out + static_cast<std::int64_t>(K) * apart, sum[K]), ...);
    }
    // The same where the next output begins at the next tap: a number of a is read once for all taps of a row.
    template <class V, int Taps, std::size_t... K, std::size_t... J, std::size_t... P>
    TG_INLINE static void meeting(const depthwise_axis& rows, const depthwise_axis& columns, const T* a,
                                  std::int64_t a_row, const T* b, std::int64_t b_row, std::int64_t pixel,
                                  std::int64_t step, std::int64_t apart, T* out, std::index_sequence<K...>,
                                  std::index_sequence<J...> taps, std::index_sequence<P...>) {
        typename V::type sum[Outputs] = {}, y[Taps];
        for (std::int64_t i = 0; i < rows.count; ++i) {
            const T* const p = a + (rows.first_a + i * rows.step_a) * a_row + columns.first_a * pixel;
            const T* const q = b + (rows.first_b + i * rows.step_b) * b_row + columns.first_b * pixel;
            (V::load(y[J], q + static_cast<std::int64_t>(J) * pixel), ...);
            (place<V, static_cast<int>(P)>(sum, y, p + static_cast<std::int64_t>(P) * step, taps), ...);
        }
        (V::store(out + static_cast<std::int64_t>(K) * apart, sum[K]), ...);
    }
    // The number at place P is what tap J of output P - J reads.
    template <class V, int P, std::size_t Taps, std::size_t... J>
    TG_INLINE static void place(typename V::type (&sum)[Outputs], const typename V::type (&y)[Taps], const T* p,
                                std::index_sequence<J...>) {
        typename V::type x;
        V::load(x, p);
        (tap<V, P - static_cast<int>(J)>(sum, x, y[J]), ...);
    }
    template <class V, int Output>
    TG_INLINE static void tap(typename V::type (&sum)[Outputs], const typename V::type& x, const typename V::type& y) {
        if constexpr (Output >= 0 && Output < Outputs) V::multiply_add(sum[Output], x, y);
    }
};

/// One row of outputs, in `phases` that each take every phases-th. axis(j) are the columns of output
/// j; a moves by `next` pixels from one output of a phase to the next.
template <class T, class Axis>
void depthwise_row(const depthwise_axis& rows, std::int64_t outputs, std::int64_t phases, std::int64_t next, const T* a,
                   std::int64_t a_row, const T* b, std::int64_t b_row, std::int64_t channels, T* out,
                   const Axis& axis) {
    // First and last taps move in one direction along a phase: if two outputs agree, so do those between.
    const auto run = [&]<int Outputs>(std::integral_constant<int, Outputs>, std::int64_t j) {
        const depthwise_axis columns = axis(j);
        if constexpr (Outputs > 1) {
            const std::int64_t end = j + (Outputs - 1) * phases;
            if (end >= outputs || !depthwise_blocks_run()) return false;
            const depthwise_axis other = axis(end);
            if (other.count != columns.count || other.first_b != columns.first_b) return false;
        }
        dispatch_fused<depthwise_body<T, Outputs>>(rows, columns, a, a_row, b, b_row, channels, next * channels,
                                                   phases * channels, out + j * channels);
        return true;
    };
    for (std::int64_t phase = 0; phase < std::min(phases, outputs); ++phase)
        for (std::int64_t j = phase; j < outputs;) {
            if (run(std::integral_constant<int, 8>{}, j))
                j += 8 * phases;
            else if (run(std::integral_constant<int, 4>{}, j))
                j += 4 * phases;
            else
                run(std::integral_constant<int, 1>{}, j), j += phases;
        }
}

/// What follows the sums: + bias, then max(0, .).
template <class T>
struct depthwise_epilogue_body {
    template <class Isa>
    TG_INLINE static void run(const T* bias, bool relu, std::int64_t pixels, std::int64_t channels, T* y) {
        for (std::int64_t j = 0; j < pixels; ++j, y += channels) {
            if (bias != nullptr) {
                TG_SIMD
                for (std::int64_t c = 0; c < channels; ++c) y[c] += bias[c];
            }
            if (relu) {
                TG_SIMD
                for (std::int64_t c = 0; c < channels; ++c) y[c] = y[c] <= T(0) ? T(0) : y[c];
            }
        }
    }
};

template <class T>
void depthwise_forward(const convolution_geometry& g, const T* x, const T* w, T* y,
                       const convolution_epilogue<T>& epilogue, bool parallel) {
    if (depthwise_in_blocks(g, true, x, w, y, epilogue, parallel)) return;
    const std::int64_t channels = g.out_channels;
    for_tasks(g.batch * g.out_height, parallel, [&](std::int64_t task, int) {
        const depthwise_axis rows = forward_axis(task % g.out_height, g.in_height, g.kernel_height, g.stride_height,
                                                 g.pad_top, g.dilation_height);
        T* const to = y + task * g.out_width * channels;
        depthwise_row(
            rows, g.out_width, 1, g.stride_width, x + task / g.out_height * g.in_height * g.in_width * channels,
            g.in_width * channels, w, g.kernel_width * channels, channels, to, [&](std::int64_t j) {
                return forward_axis(j, g.in_width, g.kernel_width, g.stride_width, g.pad_left, g.dilation_width);
            });
        if (epilogue.bias != nullptr || epilogue.relu)
            dispatch<depthwise_epilogue_body<T>>(epilogue.bias, epilogue.relu, g.out_width, channels, to);
        if (epilogue.next != nullptr) epilogue.next->on_rows(task * g.out_width, g.out_width);
    });
    if (epilogue.next != nullptr) epilogue.next->done = true;
}

template <class T>
void depthwise_input_gradient(const convolution_geometry& g, const T* dy, const T* w, T* dx, bool parallel) {
    if (depthwise_in_blocks<T>(g, false, dy, w, dx, {}, parallel)) return;
    const std::int64_t channels = g.in_channels;
    for_tasks(g.batch * g.in_height, parallel, [&](std::int64_t task, int) {
        const depthwise_axis rows = input_axis(task % g.in_height, g.out_height, g.kernel_height, g.stride_height,
                                               g.pad_top, g.dilation_height);
        depthwise_row(rows, g.in_width, g.stride_width, 1,
                      dy + task / g.in_height * g.out_height * g.out_width * channels, g.out_width * channels, w,
                      g.kernel_width * channels, channels, dx + task * g.in_width * channels, [&](std::int64_t j) {
                          return input_axis(j, g.out_width, g.kernel_width, g.stride_width, g.pad_left,
                                            g.dilation_width);
                      });
    });
}

} // namespace tapegraph::cpu::detail
TG_ROUNDS_EACH_END
