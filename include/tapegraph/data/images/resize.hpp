#pragma once

#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/data/images/image.hpp>
#include <tapegraph/data/images/resize_weights.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

/// Resizing: rows first, then columns, with each output row written once, in place. Operations on
/// the way (mirroring, a factor and an offset per channel) are free, see normalization.hpp.

namespace tapegraph::data::images {

/// Options of `resize`.
struct resize_options {
    resize_method method = resize_method::bilinear;
    /// Average when an image shrinks, for bilinear and bicubic. The default is TensorFlow's; Pillow
    /// and torchvision always do.
    bool antialias = false;
};

namespace detail {

using four_floats = float __attribute__((vector_size(16)));

inline four_floats four_at(const float* from) {
    four_floats v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

/// The parameters of a resize. Pixel value v of channel c becomes v * factor[c] + offset[c].
template <class From, class To>
struct resample_job {
    image_view<const From> from;
    image_view<To> to;
    const axis_weights *rows, *columns;
    const float *factor, *offset; ///< channels + 3 numbers each
    float* line;                  ///< scratch memory for a row of `from` and three more numbers
    bool mirror;                  ///< columns from right to left
};

/// out[i] (+)= sum of weights[k] * rows[k][i] for Count rows, in this order, so that the instruction set does not change a bit.
template <int Count, bool Add, class From>
TG_INLINE void add_rows(float* __restrict out, const From* row, std::int64_t stride, const float* weights,
                        std::int64_t size) {
    const From *const a = row, *const b = row + stride * (Count > 1), *const c = row + stride * 2 * (Count > 2),
                      *const d = row + stride * 3 * (Count > 3);
    const float wa = weights[0], wb = weights[Count > 1 ? 1 : 0], wc = weights[Count > 2 ? 2 : 0],
                wd = weights[Count > 3 ? 3 : 0];
    TG_SIMD
    for (std::int64_t i = 0; i < size; ++i) {
        float sum = wa * static_cast<float>(a[i]);
        if constexpr (Add) sum = out[i] + sum;
        if constexpr (Count > 1) sum = sum + wb * static_cast<float>(b[i]);
        if constexpr (Count > 2) sum = sum + wc * static_cast<float>(c[i]);
        if constexpr (Count > 3) sum = sum + wd * static_cast<float>(d[i]);
        out[i] = sum;
    }
}

template <bool Add, class From>
TG_INLINE void add_some_rows(float* out, const From* row, std::int64_t stride, const float* weights, std::int64_t count,
                             std::int64_t size) {
    switch (count) {
    case 1: return add_rows<1, Add>(out, row, stride, weights, size);
    case 2: return add_rows<2, Add>(out, row, stride, weights, size);
    case 3: return add_rows<3, Add>(out, row, stride, weights, size);
    default: return add_rows<4, Add>(out, row, stride, weights, size);
    }
}

/// Three or four channels at a time; for three, the fourth number belongs to the next pixel, which
/// overwrites it.
template <int Channels, class To>
TG_INLINE void narrow_by_four(const float* line, To* out, const axis_weights& axis, std::int64_t width, bool mirror,
                              const float* factor, const float* offset) {
    const four_floats scale = four_at(factor), shift = four_at(offset);
    for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t output = mirror ? width - 1 - x : x;
        const float* const from = line + axis.first[static_cast<std::size_t>(output)] * Channels;
        const float* const weights = axis.of(output);
        four_floats sum = four_at(from) * weights[0];
        for (std::int64_t k = 1; k < axis.count[static_cast<std::size_t>(output)]; ++k)
            sum = sum + four_at(from + k * Channels) * weights[k];
        sum = sum * scale + shift;
        if constexpr (std::is_same_v<To, float>) {
            if (Channels == 4 || x + 1 < width) {
                std::memcpy(out + x * Channels, &sum, sizeof sum);
                continue;
            }
        }
        for (int c = 0; c < Channels; ++c) out[x * Channels + c] = stored<To>(sum[c]);
    }
}

template <class To>
TG_INLINE void narrow(const float* line, To* out, const axis_weights& axis, std::int64_t width, std::int64_t channels,
                      bool mirror, const float* factor, const float* offset) {
    for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t output = mirror ? width - 1 - x : x;
        const float* const from = line + axis.first[static_cast<std::size_t>(output)] * channels;
        const float* const weights = axis.of(output);
        for (std::int64_t c = 0; c < channels; ++c) {
            float sum = weights[0] * from[c];
            for (std::int64_t k = 1; k < axis.count[static_cast<std::size_t>(output)]; ++k)
                sum = sum + weights[k] * from[k * channels + c];
            out[x * channels + c] = stored<To>(sum * factor[c] + offset[c]);
        }
    }
}

struct resample_body {
    template <class Isa, class Job>
    TG_INLINE static void run(const Job* job) {
        const auto& from = job->from;
        const auto& to = job->to;
        const std::int64_t size = from.row_size();
        for (std::int64_t y = 0; y < to.height; ++y) {
            const auto* const row = from.row(job->rows->first[static_cast<std::size_t>(y)]);
            const float* const weights = job->rows->of(y);
            const std::int64_t count = job->rows->count[static_cast<std::size_t>(y)];
            add_some_rows<false>(job->line, row, from.row_stride, weights, count, size);
            for (std::int64_t k = 4; k < count; k += 4)
                add_some_rows<true>(job->line, row + k * from.row_stride, from.row_stride, weights + k, count - k,
                                    size);
            const auto& columns = *job->columns;
            if (to.channels == 3)
                narrow_by_four<3>(job->line, to.row(y), columns, to.width, job->mirror, job->factor, job->offset);
            else if (to.channels == 4)
                narrow_by_four<4>(job->line, to.row(y), columns, to.width, job->mirror, job->factor, job->offset);
            else
                narrow(job->line, to.row(y), columns, to.width, to.channels, job->mirror, job->factor, job->offset);
        }
    }
};

/// `factor` and `offset`: one number per channel.
template <class From, class To>
void resample(image_view<const From> from, image_view<To> to, const resize_options& options, bool mirror,
              std::vector<float> factor, std::vector<float> offset) {
    check_pixels("resize", from);
    check_pixels("resize", to);
    if (from.channels != to.channels)
        throw shape_error("resize: an image " + extents(from) + " has other channels than " + extents(to));
    const axis_weights rows = make_axis_weights(from.height, to.height, options.method, options.antialias);
    const axis_weights columns = make_axis_weights(from.width, to.width, options.method, options.antialias);
    factor.resize(static_cast<std::size_t>(from.channels + 3));
    offset.resize(static_cast<std::size_t>(from.channels + 3));
    std::vector<float> line(static_cast<std::size_t>(from.row_size() + 3));
    const resample_job<From, To> job{from, to, &rows, &columns, factor.data(), offset.data(), line.data(), mirror};
    cpu::dispatch<resample_body>(&job);
}

} // namespace detail

/// Resizes an image into existing memory: bytes or floats to bytes or floats, where 255 corresponds
/// to 1. Throws shape_error if either has no pixels or the channels differ.
template <image_like I, pixel To>
void resize_into(const I& x, image_view<To> to, const resize_options& options = {}) {
    const auto from = view_of(x);
    const float unit = detail::full<To> / detail::full<pixel_of<I>>;
    const auto channels = static_cast<std::size_t>(std::max<std::int64_t>(from.channels, 0));
    detail::resample(from, to, options, false, std::vector<float>(channels, unit), std::vector<float>(channels));
}

/// Resizes the image to `height` rows and `width` columns; the element type is kept, and bytes are
/// rounded to the nearest.
template <image_like I>
image<pixel_of<I>> resize(const I& x, std::int64_t height, std::int64_t width, const resize_options& options = {}) {
    image<pixel_of<I>> to(height, width, view_of(x).channels);
    resize_into(x, to.view(), options);
    return to;
}

} // namespace tapegraph::data::images
