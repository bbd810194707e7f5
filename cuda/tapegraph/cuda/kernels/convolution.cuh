#pragma once

#include <tapegraph/cuda/kernels/convolution_shape.cuh>
#include <tapegraph/cuda/kernels/operand.cuh>

#include <type_traits>

/// Describes the three passes of a convolution as problems for implicit_gemm and tensor_gemm. x
/// [batch, height, width, in], w [kernel height, kernel width, in / groups, out], y [batch, out
/// height, out width, out]; any stride, padding, dilation, groups.
///
///   forward          M = output pixels, N = out / groups, K = (u, v, c):
///                    A gathers x, B is w in place
///   input gradient   M = input pixels,  N = in / groups,  K = (u, v, o):
///                    A gathers dy, B is w transposed
///   filter gradient  M = (u, v, c),     N = out / groups, K = output pixels:
///                    A gathers x, B is dy in place
///
/// Taps that read nothing but padding for a whole tile are skipped, since they would add zeros. (A
/// weight that is not finite may therefore be multiplied by fewer zeros than elsewhere.) Product
/// kernels walk along k tap by tap (operand_walk.cuh), other kernels access elements by index. For
/// 16-bit elements sums are float and are finished elsewhere.

namespace tapegraph::cuda::kernels {

/// The type in which elements are accumulated.
template <class Element>
using sum_type = std::conditional_t<sizeof(Element) == 2, float, Element>;

template <class Element>
struct convolution_problem {
    using element = Element;
    using T = sum_type<Element>;
    convolution_shape s;
    int m, n, k, groups;
    int splits = 1; ///< each writes its part of the sums to its own slice of `out`, without an epilogue
    int width = 1;  ///< this many results are contiguous and aligned
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
    __device__ const Element* gathered(const Element* x, const gathered_line& p, const gathered_step& t) const {
        const bool inside = static_cast<unsigned>(p.row + t.row) < static_cast<unsigned>(s.rows.in) &&
                            static_cast<unsigned>(p.column + t.column) < static_cast<unsigned>(s.columns.in);
        return inside ? x + p.offset + t.offset : nullptr;
    }
    __device__ T finished(T value, int, int) const { return value; }
};

template <class Element>
struct forward_problem : convolution_problem<Element> {
    using element = Element;
    using T = sum_type<Element>;
    using a_line = gathered_line;
    using a_step = gathered_step;
    using b_line = plain_place;
    using b_step = plain_place;
    static constexpr bool a_along_k = true, b_along_k = false;
    const Element *x, *w;
    const T* bias;
    bool relu;

    forward_problem(const convolution_geometry& g, bool batch_innermost, const Element* x_, const Element* w_,
                    const T* bias_, bool relu_, T* y)
        : convolution_problem<Element>{convolution_shape(g, batch_innermost), int(g.batch * g.out_height * g.out_width),
                                       int(g.group_out()), int(g.kernel_height * g.kernel_width * g.group_in()),
                                       int(g.groups)},
          x(x_),
          w(w_),
          bias(bias_),
          relu(relu_) {
        this->out = y;
    }

    static constexpr bool walks_pixels = false;
    __device__ int taps() const { return this->s.taps(); }
    __device__ int kernel_width() const { return this->s.columns.taps; }
    __device__ int inner() const { return this->s.group_in; }
    __device__ const Element* source_a() const { return x; }
    __device__ int first_a(int group) const { return group * this->s.group_in; }
    __device__ bool enter(const gathered_line& line, int u, int v, int& within) const {
        const auto& shape = this->s;
        const int row = u * shape.rows.dilation, column = v * shape.columns.dilation;
        within = (row * shape.columns.in + column) * shape.in_channels;
        return static_cast<unsigned>(line.row + row) < static_cast<unsigned>(shape.rows.in) &&
               static_cast<unsigned>(line.column + column) < static_cast<unsigned>(shape.columns.in);
    }
    __device__ int pitch_b() const { return this->s.out_channels; }
    __device__ const Element* b_at(int u, int v, int at, int group) const {
        const std::int64_t line = static_cast<std::int64_t>(u * this->s.columns.taps + v) * this->s.group_in + at;
        return w + line * this->s.out_channels + group * this->n;
    }
    __device__ a_line line_a(int index, int) const { return this->window(index, index < this->m); }
    __device__ a_step step_a(int index, int end, int group) const { return this->tap(index, index < end, group); }
    __device__ const Element* a(const a_line& line, const a_step& step) const { return this->gathered(x, line, step); }
    __device__ b_line line_b(int index, int group) const { return {group * this->n + index, index < this->n}; }
    __device__ b_step step_b(int index, int end, int) const {
        return {static_cast<std::int64_t>(index) * this->s.out_channels, index < end};
    }
    __device__ const Element* b(const b_line& line, const b_step& step) const {
        return line.valid && step.valid ? w + step.offset + line.offset : nullptr;
    }
    __device__ needed_taps taps_of(int first, int count) const {
        return this->s.taps_of_outputs(first, (first + count < this->m ? first + count : this->m) - 1);
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
    using element = Element;
    using T = sum_type<Element>;
    using a_line = gathered_line; ///< the pixel of x, moved by the padding; with a stride only its image has an offset
    using a_step = gathered_step;
    using b_line = plain_place;
    using b_step = plain_place;
    static constexpr bool a_along_k = true, b_along_k = true;
    const Element *dy, *w;
    bool strided;

    input_gradient_problem(const convolution_geometry& g, bool batch_innermost, const Element* dy_, const Element* w_,
                           T* dx)
        : convolution_problem<Element>{convolution_shape(g, batch_innermost), int(g.batch * g.in_height * g.in_width),
                                       int(g.group_in()), int(g.kernel_height * g.kernel_width * g.group_out()),
                                       int(g.groups)},
          dy(dy_),
          w(w_),
          strided(g.stride_height > 1 || g.stride_width > 1) {
        this->out = dx;
    }

    static constexpr bool walks_pixels = false;
    __device__ int taps() const { return this->s.taps(); }
    __device__ int kernel_width() const { return this->s.columns.taps; }
    __device__ int inner() const { return this->s.group_out; }
    __device__ const Element* source_a() const { return dy; }
    __device__ int first_a(int group) const { return group * this->s.group_out; }
    __device__ bool enter(const gathered_line& line, int u, int v, int& within) const {
        const auto& shape = this->s;
        const int row = line.row - u * shape.rows.dilation, column = line.column - v * shape.columns.dilation;
        if (!strided) {
            within = -(u * shape.rows.dilation * shape.columns.out + v * shape.columns.dilation) * shape.out_channels;
            return static_cast<unsigned>(row) < static_cast<unsigned>(shape.rows.out) &&
                   static_cast<unsigned>(column) < static_cast<unsigned>(shape.columns.out);
        }
        const int i = shape.rows.output_of(row), j = shape.columns.output_of(column);
        within = (i * shape.columns.out + j) * shape.out_channels;
        return i >= 0 && j >= 0;
    }
    __device__ int pitch_b() const { return this->s.out_channels; }
    __device__ const Element* b_at(int u, int v, int at, int group) const {
        const std::int64_t line = static_cast<std::int64_t>(u * this->s.columns.taps + v) * this->s.group_in;
        return w + line * this->s.out_channels + group * this->s.group_out + at;
    }
    __device__ a_line line_a(int index, int) const {
        if (index >= this->m) return {0, -far_outside, -far_outside};
        const auto& shape = this->s;
        const pixel_place p = shape.in_pixels.at(index);
        const int row = p.row + shape.rows.pad, column = p.column + shape.columns.pad;
        const std::int64_t image = static_cast<std::int64_t>(p.image) * shape.rows.out * shape.columns.out;
        const std::int64_t within = strided ? 0 : static_cast<std::int64_t>(row) * shape.columns.out + column;
        return {(image + within) * shape.out_channels, row, column};
    }
    __device__ a_step step_a(int index, int end, int group) const {
        if (index >= end) return {0, far_outside, far_outside};
        const auto& shape = this->s;
        const tap_place t = shape.tap(index, shape.by_group_out);
        const int row = t.u * shape.rows.dilation, column = t.v * shape.columns.dilation;
        const int within = strided ? 0 : (row * shape.columns.out + column) * shape.out_channels;
        return {group * shape.group_out + t.channel - within, row, column};
    }
    // The output that reads this pixel through this tap: it exists if the stride divides the
    // distance to it.
    __device__ const Element* a(const a_line& p, const a_step& t) const {
        const auto& shape = this->s;
        const int row = p.row - t.row, column = p.column - t.column;
        if (!strided) {
            const bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(shape.rows.out) &&
                                static_cast<unsigned>(column) < static_cast<unsigned>(shape.columns.out);
            return inside ? dy + p.offset + t.offset : nullptr;
        }
        const int i = shape.rows.output_of(row), j = shape.columns.output_of(column);
        const std::int64_t within = (static_cast<std::int64_t>(i) * shape.columns.out + j) * shape.out_channels;
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
    __device__ const Element* b(const b_line& line, const b_step& step) const {
        return line.valid && step.valid ? w + step.offset + line.offset : nullptr;
    }
    __device__ needed_taps taps_of(int first, int count) const {
        return this->s.taps_of_inputs(first, (first + count < this->m ? first + count : this->m) - 1);
    }
    __device__ T* row(int index, int group, int split) const {
        const std::int64_t pixel = this->s.in_pixels.position(index);
        return this->out + (static_cast<std::int64_t>(split) * this->m + pixel) * this->s.in_channels + group * this->n;
    }
};

template <class Element>
struct filter_gradient_problem : convolution_problem<Element> {
    using element = Element;
    using T = sum_type<Element>;
    using a_line = gathered_step;
    using a_step = gathered_line;
    using b_line = plain_place;
    using b_step = plain_place;
    static constexpr bool a_along_k = false, b_along_k = false;
    const Element *x, *dy;

    filter_gradient_problem(const convolution_geometry& g, const Element* x_, const Element* dy_, T* dw)
        : convolution_problem<Element>{convolution_shape(g), int(g.kernel_height * g.kernel_width * g.group_in()),
                                       int(g.group_out()), int(g.batch * g.out_height * g.out_width), int(g.groups)},
          x(x_),
          dy(dy_) {
        this->out = dw;
    }

    static constexpr bool walks_pixels = true;
    __device__ int taps() const { return 1; }
    __device__ int kernel_width() const { return 1; }
    __device__ int inner() const { return this->k; }
    __device__ int pitch_b() const { return this->s.out_channels; }
    __device__ const Element* b_at(int, int, int at, int group) const {
        return dy + static_cast<std::int64_t>(at) * this->s.out_channels + group * this->n;
    }
    __device__ a_line line_a(int index, int group) const { return this->tap(index, index < this->m, group); }
    __device__ a_step step_a(int index, int end, int) const { return this->window(index, index < end); }
    __device__ const Element* a(const a_line& line, const a_step& step) const { return this->gathered(x, step, line); }
    __device__ b_line line_b(int index, int group) const { return {group * this->n + index, index < this->n}; }
    __device__ b_step step_b(int index, int end, int) const {
        return {static_cast<std::int64_t>(index) * this->s.out_channels, index < end};
    }
    __device__ const Element* b(const b_line& line, const b_step& step) const {
        return line.valid && step.valid ? dy + step.offset + line.offset : nullptr;
    }
    __device__ T* row(int index, int group, int split) const {
        return this->out + (static_cast<std::int64_t>(split) * this->m + index) * this->s.out_channels +
               group * this->n;
    }
};

} // namespace tapegraph::cuda::kernels
