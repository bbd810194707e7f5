#pragma once

#include <tapegraph/core/convolution_geometry.hpp>
#include <tapegraph/cuda/kernels/implicit_gemm.cuh>

/// The three passes of a convolution as problems for implicit_gemm. x [batch, height, width, in], w [kernel height,
/// kernel width, in / groups, out], y [batch, out height, out width, out]; any stride, padding, dilation, groups.
///
///   forward          M = output pixels, N = out / groups, K = (u, v, c): A gathers x, B is w as it lies
///   input gradient   M = input pixels,  N = in / groups,  K = (u, v, o): A gathers dy, B is w read across
///   filter gradient  M = (u, v, c),     N = out / groups, K = output pixels: A gathers x, B is dy as it lies

namespace tapegraph::cuda::kernels {

/// A geometry in the integers a kernel computes with.
struct convolution_shape {
    int in_height, in_width, in_channels, out_height, out_width, out_channels;
    int kernel_height, kernel_width, group_in, group_out;
    int stride_height, stride_width, pad_top, pad_left, dilation_height, dilation_width;
    divisor by_out_plane, by_out_width, by_in_plane, by_in_width, by_group_in, by_group_out, by_kernel_width;
    divisor by_stride_height, by_stride_width;

    explicit convolution_shape(const convolution_geometry& g)
        : in_height(int(g.in_height)),
          in_width(int(g.in_width)),
          in_channels(int(g.in_channels)),
          out_height(int(g.out_height)),
          out_width(int(g.out_width)),
          out_channels(int(g.out_channels)),
          kernel_height(int(g.kernel_height)),
          kernel_width(int(g.kernel_width)),
          group_in(int(g.group_in())),
          group_out(int(g.group_out())),
          stride_height(int(g.stride_height)),
          stride_width(int(g.stride_width)),
          pad_top(int(g.pad_top)),
          pad_left(int(g.pad_left)),
          dilation_height(int(g.dilation_height)),
          dilation_width(int(g.dilation_width)),
          by_out_plane(unsigned(out_height * out_width)),
          by_out_width(unsigned(out_width)),
          by_in_plane(unsigned(in_height * in_width)),
          by_in_width(unsigned(in_width)),
          by_group_in(unsigned(group_in)),
          by_group_out(unsigned(group_out)),
          by_kernel_width(unsigned(kernel_width)),
          by_stride_height(unsigned(stride_height)),
          by_stride_width(unsigned(stride_width)) {}
};

/// (u, v, channel) of a number that counts taps, channels fastest.
struct tap_place {
    int u, v, channel;
};
__device__ inline tap_place tap_of(int k, const divisor& by_channels, const divisor& by_kernel_width) {
    const std::uint32_t tap = by_channels.quotient(static_cast<std::uint32_t>(k));
    const std::uint32_t u = by_kernel_width.quotient(tap);
    return {static_cast<int>(u), static_cast<int>(by_kernel_width.remainder(tap, u)),
            static_cast<int>(by_channels.remainder(static_cast<std::uint32_t>(k), tap))};
}
/// (image, row, column) of a number that counts pixels.
struct pixel_place {
    int image, row, column;
};
__device__ inline pixel_place pixel_of(int m, const divisor& by_plane, const divisor& by_width) {
    const std::uint32_t image = by_plane.quotient(static_cast<std::uint32_t>(m));
    const std::uint32_t rest = by_plane.remainder(static_cast<std::uint32_t>(m), image);
    const std::uint32_t row = by_width.quotient(rest);
    return {static_cast<int>(image), static_cast<int>(row), static_cast<int>(by_width.remainder(rest, row))};
}

/// The top left of a window in x, and a tap's place in it.
struct window_place {
    std::int64_t image; ///< offset of the image
    int row, column;
    bool valid;
};
struct window_tap {
    int row, column, channel;
    bool valid;
};

template <class Element>
struct convolution_problem {
    using T = Element;
    convolution_shape s;
    int m, n, k, groups, splits = 1;

    __device__ const T* gathered(const T* x, const window_place& p, const window_tap& t) const {
        const int row = p.row + t.row, column = p.column + t.column;
        const bool inside = p.valid && t.valid && row >= 0 && row < s.in_height && column >= 0 && column < s.in_width;
        return inside ? x + p.image + (static_cast<std::int64_t>(row) * s.in_width + column) * s.in_channels + t.channel
                      : nullptr;
    }
    __device__ window_place window(int pixel, bool valid) const {
        if (!valid) return {0, 0, 0, false};
        const pixel_place p = pixel_of(pixel, s.by_out_plane, s.by_out_width);
        return {static_cast<std::int64_t>(p.image) * s.in_height * s.in_width * s.in_channels,
                p.row * s.stride_height - s.pad_top, p.column * s.stride_width - s.pad_left, true};
    }
    __device__ window_tap tap(int index, bool valid, int group) const {
        if (!valid) return {0, 0, 0, false};
        const tap_place t = tap_of(index, s.by_group_in, s.by_kernel_width);
        return {t.u * s.dilation_height, t.v * s.dilation_width, group * s.group_in + t.channel, true};
    }
};

template <class Element>
struct forward_problem : convolution_problem<Element> {
    using T = Element;
    using a_line = window_place;
    using a_step = window_tap;
    using b_line = plain_place;
    using b_step = plain_place;
    static constexpr bool a_along_k = true, b_along_k = false;
    const T *x, *w, *bias;
    T* y;
    bool relu;

    forward_problem(const convolution_geometry& g, const T* x_, const T* w_, const T* bias_, bool relu_, T* y_)
        : convolution_problem<T>{convolution_shape(g), int(g.batch * g.out_height * g.out_width), int(g.group_out()),
                                 int(g.kernel_height * g.kernel_width * g.group_in()), int(g.groups)},
          x(x_),
          w(w_),
          bias(bias_),
          y(y_),
          relu(relu_) {}

    __device__ const T* anywhere_a() const { return x; }
    __device__ const T* anywhere_b() const { return w; }
    __device__ a_line line_a(int index, int) const { return this->window(index, index < this->m); }
    __device__ a_step step_a(int index, int end, int group) const { return this->tap(index, index < end, group); }
    __device__ const T* a(const a_line& line, const a_step& step) const { return this->gathered(x, line, step); }
    __device__ b_line line_b(int index, int group) const { return {group * this->n + index, index < this->n}; }
    __device__ b_step step_b(int index, int end, int) const {
        return {static_cast<std::int64_t>(index) * this->s.out_channels, index < end};
    }
    __device__ const T* b(const b_line& line, const b_step& step) const {
        return line.valid && step.valid ? w + step.offset + line.offset : nullptr;
    }
    __device__ void store(int row, int column, int group, int, T value) const {
        const int channel = group * this->n + column;
        if (bias != nullptr) value += bias[channel];
        if (relu) value = value > T(0) || value != value ? value : T(0); // NaN stays NaN
        y[static_cast<std::int64_t>(row) * this->s.out_channels + channel] = value;
    }
};

template <class Element>
struct input_gradient_problem : convolution_problem<Element> {
    using T = Element;
    using a_line = window_place; ///< the pixel of x, moved by the padding; `image` is the offset in dy
    using a_step = window_tap;
    using b_line = plain_place;
    using b_step = plain_place;
    static constexpr bool a_along_k = true, b_along_k = true;
    const T *dy, *w;
    T* dx;

    input_gradient_problem(const convolution_geometry& g, const T* dy_, const T* w_, T* dx_)
        : convolution_problem<T>{convolution_shape(g), int(g.batch * g.in_height * g.in_width), int(g.group_in()),
                                 int(g.kernel_height * g.kernel_width * g.group_out()), int(g.groups)},
          dy(dy_),
          w(w_),
          dx(dx_) {}

    __device__ const T* anywhere_a() const { return dy; }
    __device__ const T* anywhere_b() const { return w; }
    __device__ a_line line_a(int index, int) const {
        if (index >= this->m) return {0, 0, 0, false};
        const auto& s = this->s;
        const pixel_place p = pixel_of(index, s.by_in_plane, s.by_in_width);
        return {static_cast<std::int64_t>(p.image) * s.out_height * s.out_width * s.out_channels, p.row + s.pad_top,
                p.column + s.pad_left, true};
    }
    __device__ a_step step_a(int index, int end, int group) const {
        if (index >= end) return {0, 0, 0, false};
        const tap_place t = tap_of(index, this->s.by_group_out, this->s.by_kernel_width);
        return {t.u * this->s.dilation_height, t.v * this->s.dilation_width, group * this->s.group_out + t.channel,
                true};
    }
    // The output that saw this pixel through this tap: there is one if the stride divides the way to it.
    __device__ const T* a(const a_line& p, const a_step& t) const {
        const auto& s = this->s;
        const int row = p.row - t.row, column = p.column - t.column;
        if (!p.valid || !t.valid || row < 0 || column < 0) return nullptr;
        const std::uint32_t i = s.by_stride_height.quotient(static_cast<std::uint32_t>(row));
        const std::uint32_t j = s.by_stride_width.quotient(static_cast<std::uint32_t>(column));
        const bool hit = s.by_stride_height.remainder(static_cast<std::uint32_t>(row), i) == 0 &&
                         s.by_stride_width.remainder(static_cast<std::uint32_t>(column), j) == 0 &&
                         static_cast<int>(i) < s.out_height && static_cast<int>(j) < s.out_width;
        return hit ? dy + p.image + (static_cast<std::int64_t>(i) * s.out_width + j) * s.out_channels + t.channel
                   : nullptr;
    }
    __device__ b_line line_b(int index, int) const {
        return {static_cast<std::int64_t>(index) * this->s.out_channels, index < this->n};
    }
    __device__ b_step step_b(int index, int end, int group) const {
        if (index >= end) return {0, false};
        const std::uint32_t tap = this->s.by_group_out.quotient(static_cast<std::uint32_t>(index));
        const std::uint32_t channel = this->s.by_group_out.remainder(static_cast<std::uint32_t>(index), tap);
        return {static_cast<std::int64_t>(tap) * this->s.group_in * this->s.out_channels + group * this->s.group_out +
                    static_cast<int>(channel),
                true};
    }
    __device__ const T* b(const b_line& line, const b_step& step) const {
        return line.valid && step.valid ? w + step.offset + line.offset : nullptr;
    }
    __device__ void store(int row, int column, int group, int, T value) const {
        dx[static_cast<std::int64_t>(row) * this->s.in_channels + group * this->n + column] = value;
    }
};

template <class Element>
struct filter_gradient_problem : convolution_problem<Element> {
    using T = Element;
    using a_line = window_tap;
    using a_step = window_place;
    using b_line = plain_place;
    using b_step = plain_place;
    static constexpr bool a_along_k = false, b_along_k = false;
    const T *x, *dy;
    T* dw; ///< one [kernel height, kernel width, in / groups, out] per split

    filter_gradient_problem(const convolution_geometry& g, const T* x_, const T* dy_, T* dw_, int splits_)
        : convolution_problem<T>{convolution_shape(g), int(g.kernel_height * g.kernel_width * g.group_in()),
                                 int(g.group_out()),   int(g.batch * g.out_height * g.out_width),
                                 int(g.groups),        splits_},
          x(x_),
          dy(dy_),
          dw(dw_) {}

    __device__ const T* anywhere_a() const { return x; }
    __device__ const T* anywhere_b() const { return dy; }
    __device__ a_line line_a(int index, int group) const { return this->tap(index, index < this->m, group); }
    __device__ a_step step_a(int index, int end, int) const { return this->window(index, index < end); }
    __device__ const T* a(const a_line& line, const a_step& step) const { return this->gathered(x, step, line); }
    __device__ b_line line_b(int index, int group) const { return {group * this->n + index, index < this->n}; }
    __device__ b_step step_b(int index, int end, int) const {
        return {static_cast<std::int64_t>(index) * this->s.out_channels, index < end};
    }
    __device__ const T* b(const b_line& line, const b_step& step) const {
        return line.valid && step.valid ? dy + step.offset + line.offset : nullptr;
    }
    __device__ void store(int row, int column, int group, int split, T value) const {
        const std::int64_t at = (static_cast<std::int64_t>(split) * this->m + row) * this->s.out_channels;
        dw[at + group * this->n + column] = value;
    }
};

} // namespace tapegraph::cuda::kernels
