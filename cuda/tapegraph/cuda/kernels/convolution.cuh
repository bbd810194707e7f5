#pragma once

#include <tapegraph/cuda/kernels/convolution_shape.cuh>
#include <tapegraph/cuda/kernels/operand.cuh>

/// The three passes of a convolution as problems for implicit_gemm and tensor_gemm. x [batch, height, width, in], w
/// [kernel height, kernel width, in / groups, out], y [batch, out height, out width, out]; any stride, padding, dilation,
/// groups.
///
///   forward          M = output pixels, N = out / groups, K = (u, v, c): A gathers x, B is w as it lies
///   input gradient   M = input pixels,  N = in / groups,  K = (u, v, o): A gathers dy, B is w read across
///   filter gradient  M = (u, v, c),     N = out / groups, K = output pixels: A gathers x, B is dy as it lies
///
/// Steps of k whose taps see nothing but padding are left out where they do so for a whole tile: zeros would be added.
/// (A weight that is not finite may so be met by fewer zeros than elsewhere.)

namespace tapegraph::cuda::kernels {

/// Where a window, or a pixel of x in search of outputs, lies: its offset in memory, row and column.
struct gathered_line {
    std::int64_t offset;
    int row, column;
};
/// A tap's way from there.
struct gathered_step {
    int offset, row, column;
};
inline constexpr int far_outside = 1 << 30; ///< no sum or difference of a place and this is inside an image

template <class Element>
struct convolution_problem {
    using T = Element;
    convolution_shape s;
    int m, n, k, groups;
    int splits = 1; ///< each writes its part of the sums to a slice of `out` of its own, without an epilogue
    int width = 1;  ///< so many results lie together and aligned
    T* out = nullptr;

    __device__ gathered_line window(int pixel, bool valid) const {
        return valid ? window(s.out_pixels.at(pixel)) : gathered_line{0, -far_outside, -far_outside};
    }
    __device__ gathered_line window(const pixel_place& p) const {
        const int row = p.row * s.rows.stride - s.rows.pad, column = p.column * s.columns.stride - s.columns.pad;
        return {((static_cast<std::int64_t>(p.image) * s.rows.in + row) * s.columns.in + column) * s.in_channels, row,
                column};
    }
    __device__ gathered_step tap(int index, bool valid, int group) const {
        if (!valid) return {0, -far_outside, -far_outside};
        const tap_place t = s.tap(index, s.by_group_in);
        const int row = t.u * s.rows.dilation, column = t.v * s.columns.dilation;
        return {(row * s.columns.in + column) * s.in_channels + group * s.group_in + t.channel, row, column};
    }
    __device__ const T* gathered(const T* x, const gathered_line& p, const gathered_step& t) const {
        const bool inside = static_cast<unsigned>(p.row + t.row) < static_cast<unsigned>(s.rows.in) &&
                            static_cast<unsigned>(p.column + t.column) < static_cast<unsigned>(s.columns.in);
        return inside ? x + p.offset + t.offset : nullptr;
    }
    __device__ T finished(T value, int, int) const { return value; }
};

template <class Element>
struct forward_problem : convolution_problem<Element> {
    using T = Element;
    using a_line = gathered_line;
    using a_step = gathered_step;
    using b_line = plain_place;
    using b_step = plain_place;
    static constexpr bool a_along_k = true, b_along_k = false;
    const T *x, *w, *bias;
    bool relu;

    forward_problem(const convolution_geometry& g, bool batch_innermost, const T* x_, const T* w_, const T* bias_,
                    bool relu_, T* y)
        : convolution_problem<T>{convolution_shape(g, batch_innermost), int(g.batch * g.out_height * g.out_width),
                                 int(g.group_out()), int(g.kernel_height * g.kernel_width * g.group_in()),
                                 int(g.groups)},
          x(x_),
          w(w_),
          bias(bias_),
          relu(relu_) {
        this->out = y;
    }

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
    __device__ needed_taps taps_of(int first, int count) const {
        return this->s.taps_of_outputs(first, (first + count < this->m ? first + count : this->m) - 1);
    }
    __device__ int next_step(const needed_taps& needed, int k, int end, int step) const {
        return this->s.next_step(needed, this->s.by_group_in, k, end, step);
    }
    __device__ T* row(int index, int group, int split) const {
        const std::int64_t pixel = this->s.out_pixels.position(index);
        return this->out + (static_cast<std::int64_t>(split) * this->m + pixel) * this->s.out_channels +
               group * this->n;
    }
    __device__ T finished(T value, int column, int group) const {
        return this->splits > 1 ? value : with_epilogue(value, bias, group * this->n + column, relu);
    }
};

template <class Element>
struct input_gradient_problem : convolution_problem<Element> {
    using T = Element;
    using a_line = gathered_line; ///< the pixel of x, moved by the padding; with a stride only its image has an offset
    using a_step = gathered_step;
    using b_line = plain_place;
    using b_step = plain_place;
    static constexpr bool a_along_k = true, b_along_k = true;
    const T *dy, *w;
    bool strided;

    input_gradient_problem(const convolution_geometry& g, bool batch_innermost, const T* dy_, const T* w_, T* dx)
        : convolution_problem<T>{convolution_shape(g, batch_innermost), int(g.batch * g.in_height * g.in_width),
                                 int(g.group_in()), int(g.kernel_height * g.kernel_width * g.group_out()),
                                 int(g.groups)},
          dy(dy_),
          w(w_),
          strided(g.stride_height > 1 || g.stride_width > 1) {
        this->out = dx;
    }

    __device__ const T* anywhere_a() const { return dy; }
    __device__ const T* anywhere_b() const { return w; }
    __device__ a_line line_a(int index, int) const {
        if (index >= this->m) return {0, -far_outside, -far_outside};
        const auto& s = this->s;
        const pixel_place p = s.in_pixels.at(index);
        const int row = p.row + s.rows.pad, column = p.column + s.columns.pad;
        const std::int64_t image = static_cast<std::int64_t>(p.image) * s.rows.out * s.columns.out;
        const std::int64_t within = strided ? 0 : static_cast<std::int64_t>(row) * s.columns.out + column;
        return {(image + within) * s.out_channels, row, column};
    }
    __device__ a_step step_a(int index, int end, int group) const {
        if (index >= end) return {0, far_outside, far_outside};
        const auto& s = this->s;
        const tap_place t = s.tap(index, s.by_group_out);
        const int row = t.u * s.rows.dilation, column = t.v * s.columns.dilation;
        const int within = strided ? 0 : (row * s.columns.out + column) * s.out_channels;
        return {group * s.group_out + t.channel - within, row, column};
    }
    // The output that saw this pixel through this tap: there is one if the stride divides the way to it.
    __device__ const T* a(const a_line& p, const a_step& t) const {
        const auto& s = this->s;
        const int row = p.row - t.row, column = p.column - t.column;
        if (!strided) {
            const bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(s.rows.out) &&
                                static_cast<unsigned>(column) < static_cast<unsigned>(s.columns.out);
            return inside ? dy + p.offset + t.offset : nullptr;
        }
        const int i = s.rows.output_of(row), j = s.columns.output_of(column);
        const std::int64_t within = (static_cast<std::int64_t>(i) * s.columns.out + j) * s.out_channels;
        return i >= 0 && j >= 0 ? dy + p.offset + within + t.offset : nullptr;
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
    __device__ needed_taps taps_of(int first, int count) const {
        return this->s.taps_of_inputs(first, (first + count < this->m ? first + count : this->m) - 1);
    }
    __device__ int next_step(const needed_taps& needed, int k, int end, int step) const {
        return this->s.next_step(needed, this->s.by_group_out, k, end, step);
    }
    __device__ T* row(int index, int group, int split) const {
        const std::int64_t pixel = this->s.in_pixels.position(index);
        return this->out + (static_cast<std::int64_t>(split) * this->m + pixel) * this->s.in_channels + group * this->n;
    }
};

template <class Element>
struct filter_gradient_problem : convolution_problem<Element> {
    using T = Element;
    using a_line = gathered_step;
    using a_step = gathered_line;
    using b_line = plain_place;
    using b_step = plain_place;
    static constexpr bool a_along_k = false, b_along_k = false;
    const T *x, *dy;

    filter_gradient_problem(const convolution_geometry& g, const T* x_, const T* dy_, T* dw)
        : convolution_problem<T>{convolution_shape(g), int(g.kernel_height * g.kernel_width * g.group_in()),
                                 int(g.group_out()), int(g.batch * g.out_height * g.out_width), int(g.groups)},
          x(x_),
          dy(dy_) {
        this->out = dw;
    }

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
    __device__ needed_taps taps_of(int, int) const { return {}; }
    __device__ int next_step(const needed_taps&, int k, int, int) const { return k; }
    __device__ T* row(int index, int group, int split) const {
        return this->out + (static_cast<std::int64_t>(split) * this->m + index) * this->s.out_channels +
               group * this->n;
    }
};

} // namespace tapegraph::cuda::kernels
