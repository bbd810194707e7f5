#pragma once

#include <tapegraph/ops/convolution/cpu_fast_transforms.hpp>
#include <tapegraph/ops/convolution/cpu_real_fourier.hpp>

/// The transforms of long kernels along one dimension (overlap-save): tiles of n inputs give n -
/// taps + 1 outputs. A product of complex numbers, (a + bi)(c + di), takes three real products: (a
/// + b) c, a (d - c) and b (c + d).

namespace tapegraph::cpu::detail {

/// n numbers in transform order, and the representation of their transform in products.
template <class V>
struct line_numbers {
    using type = typename V::type;
    static constexpr int most = fourier_angles::most;

    int n, half, places[most];
    const fourier_angles& angles = fourier_angles::shared();
    type a[most];

    TG_INLINE explicit line_numbers(std::int64_t count) : n(static_cast<int>(count)), half(n / 2) {
        for (int i = 0; i < n; ++i) places[i] = real_fourier<V>::place(i, n);
    }
    TG_INLINE type& operator[](int i) { return a[places[i]]; }
    TG_INLINE void forward() { real_fourier<V>::forward(a, n, angles); }
    TG_INLINE void backward() { real_fourier<V>::backward(a, n, angles); }
    TG_INLINE static void load(type& to, const float* from) { V::load(to, from); }

    /// Stores inputs: a + b, a and b of each complex number, `stride` floats apart.
    TG_INLINE void store_inputs(float* to, std::int64_t stride) const {
        V::store(to, a[0]);
        V::store(to + stride, a[half]);
        for (int k = 1; k < half; ++k) {
            float* const at = to + (3 * k - 1) * stride;
            V::store(at, a[k] + a[n - k]);
            V::store(at + stride, a[k]);
            V::store(at + 2 * stride, a[n - k]);
        }
    }
    TG_INLINE void load_inputs_back(const float* from, std::int64_t stride) {
        type sum, real, imaginary;
        load(a[0], from);
        load(a[half], from + stride);
        for (int k = 1; k < half; ++k) {
            const float* const at = from + (3 * k - 1) * stride;
            load(sum, at);
            load(real, at + stride);
            load(imaginary, at + 2 * stride);
            a[k] = sum + real;
            a[n - k] = sum + imaginary;
        }
    }
    /// Stores filters: c, d - c and c + d of each conjugate, weighted for the inverse transform.
    TG_INLINE void store_filters(float* to, std::int64_t stride) const {
        const float one = 1.0f / static_cast<float>(n), two = 2.0f / static_cast<float>(n);
        V::store(to, a[0] * one);
        V::store(to + stride, a[half] * one);
        for (int k = 1; k < half; ++k) {
            float* const at = to + (3 * k - 1) * stride;
            V::store(at, a[k] * two);
            V::store(at + stride, (a[n - k] + a[k]) * -two);
            V::store(at + 2 * stride, (a[k] - a[n - k]) * two);
        }
    }
    TG_INLINE void load_filters_back(const float* from, std::int64_t stride) {
        const float one = 1.0f / static_cast<float>(n), two = 2.0f / static_cast<float>(n);
        type c, difference, sum;
        load(a[0], from);
        load(a[half], from + stride);
        a[0] *= one;
        a[half] *= one;
        for (int k = 1; k < half; ++k) {
            const float* const at = from + (3 * k - 1) * stride;
            load(c, at);
            load(difference, at + stride);
            load(sum, at + 2 * stride);
            a[k] = (c - difference + sum) * two;
            a[n - k] = (difference + sum) * -two;
        }
    }
    /// Loads outputs: the first product minus the third, and the first plus the second.
    TG_INLINE void load_outputs(const float* from, std::int64_t stride) {
        type first, second, third;
        load(a[0], from);
        load(a[half], from + stride);
        for (int k = 1; k < half; ++k) {
            const float* const at = from + (3 * k - 1) * stride;
            load(first, at);
            load(second, at + stride);
            load(third, at + 2 * stride);
            a[k] = first - third;
            a[n - k] = first + second;
        }
    }
    TG_INLINE void store_outputs_back(float* to, std::int64_t stride) const {
        V::store(to, a[0]);
        V::store(to + stride, a[half]);
        for (int k = 1; k < half; ++k) {
            float* const at = to + (3 * k - 1) * stride;
            V::store(at, a[k] + a[n - k]);
            V::store(at + stride, a[n - k]);
            V::store(at + 2 * stride, -a[k]);
        }
    }
};

/// The number of channels from `channel` on in a pixel of a line: the last pixel of an image may
/// have fewer phases.
TG_INLINE std::int64_t channels_left(const fast_plan& plan, std::int64_t pixel, std::int64_t channel) {
    if (pixel < 0 || pixel >= plan.g.in_width) return 0;
    return std::min(plan.g.in_channels, plan.image - pixel * plan.g.in_channels) - channel;
}

template <>
struct input_transform<0> {
    template <class Isa>
    TG_INLINE static void run(const input_job* job) {
        using v = vector<float, Isa::vector_bytes>;
        const fast_plan& plan = *job->plan;
        line_numbers<v> numbers(plan.transform);
        for (std::int64_t tile = job->first; tile < job->last; ++tile) {
            const fast_tile at(plan, tile);
            const std::int64_t pixel = at.column - plan.g.pad_left;
            for (std::int64_t c = 0; c < plan.g.in_channels; c += v::lanes) {
                for (int i = 0; i < numbers.n; ++i) {
                    const std::int64_t left = channels_left(plan, pixel + i, c);
                    load_channels<v>(numbers[i],
                                     left > 0 ? job->x + at.image * plan.image + (pixel + i) * plan.g.in_channels + c
                                              : nullptr,
                                     left);
                }
                numbers.forward();
                numbers.store_inputs(job->v + (tile - job->first) * plan.in_row + c, job->product_stride);
            }
        }
    }
};

template <>
struct gradient_transform<0> {
    template <class Isa>
    TG_INLINE static void run(const gradient_job* job) {
        using v = vector<float, Isa::vector_bytes>;
        const fast_plan& plan = *job->plan;
        const panel_layout& layout = plan.filters;
        line_numbers<v> numbers(plan.transform);
        for (std::int64_t tile = job->first; tile < job->last; ++tile) {
            const fast_tile at(plan, tile);
            const std::int64_t count = std::min(plan.outputs, plan.g.out_width - at.column);
            const float* const from = job->dy + (at.image * plan.g.out_width + at.column) * plan.g.out_channels;
            for (std::int64_t c = 0; c < plan.g.out_channels; c += v::lanes) {
                const std::int64_t panel = c / (2 * v::lanes), row = tile - job->begin;
                for (int i = 0; i < numbers.n; ++i)
                    load_channels<v>(numbers[i], i < count ? from + i * plan.g.out_channels + c : nullptr,
                                     plan.g.out_channels - c);
                numbers.forward();
                numbers.store_outputs_back(job->w + (job->in_panels ? layout.offset(panel, job->size) +
                                                                          row * layout.width(panel) + c % (2 * v::lanes)
                                                                    : row * plan.out_row + c),
                                           job->product_stride);
            }
        }
    }
};

template <>
struct filter_transform<0> {
    template <class Isa>
    TG_INLINE static void run(const filter_job* job) {
        using v = vector<float, Isa::vector_bytes>;
        const fast_plan& plan = *job->plan;
        const panel_layout& layout = job->turned ? plan.turned : plan.filters;
        const std::int64_t depth = job->turned ? plan.g.out_channels : plan.g.in_channels;
        const std::int64_t in_channels = plan.g.in_channels, out_channels = plan.g.out_channels;
        line_numbers<v> numbers(plan.transform);
        alignas(64) float turned[line_numbers<v>::most][filter_job::most][v::lanes];
        for (std::int64_t n = 0; n < layout.n; n += v::lanes) {
            const std::int64_t panel = n / (2 * v::lanes), left = std::min<std::int64_t>(v::lanes, layout.n - n);
            float* const to = job->u + layout.offset(panel, depth) + n % (2 * v::lanes);
            for (int i = 0; job->turned && i < plan.g.kernel_width; ++i) { // neighbouring columns are rows of w here
                const std::int64_t row = i * in_channels + n - plan.lead_rows;
                const std::int64_t first = std::max<std::int64_t>(row, 0), last = std::min(row + left, plan.rows);
                std::fill_n(&turned[i][0][0], filter_job::most * v::lanes, 0.0f);
                if (first < last)
                    transpose(&turned[i][0][first - row], v::lanes, job->w + first * out_channels + job->first,
                              out_channels, last - first, job->last - job->first);
            }
            for (std::int64_t c = job->first; c < job->last; ++c) {
                for (int i = 0; i < numbers.n; ++i) {
                    const std::int64_t row = i * in_channels + c - plan.lead_rows;
                    if (i >= plan.g.kernel_width)
                        numbers[i] = typename v::type{};
                    else if (job->turned)
                        v::load(numbers[i], turned[i][c - job->first]);
                    else
                        load_channels<v>(numbers[i],
                                         row >= 0 && row < plan.rows ? job->w + row * out_channels + n : nullptr, left);
                }
                numbers.forward();
                numbers.store_filters(to + c * layout.width(panel), job->product_stride);
            }
        }
    }
};

template <>
struct output_transform<0> {
    template <class Isa>
    TG_INLINE static void run(const output_job* job) {
        using v = vector<float, Isa::vector_bytes>;
        using type = typename v::type;
        const fast_plan& plan = *job->plan;
        const std::int64_t width = plan.filters.width(job->panel), first_channel = job->panel * 2 * v::lanes;
        line_numbers<v> numbers(plan.transform);
        type bias = {};
        for (std::int64_t tile = job->first; tile < job->last; ++tile) {
            const fast_tile at(plan, tile);
            const std::int64_t count = std::min(plan.outputs, plan.g.out_width - at.column);
            for (std::int64_t n = 0; n < width; n += v::lanes) {
                const std::int64_t channel = first_channel + n, left = plan.g.out_channels - channel;
                numbers.load_outputs(job->results + (tile - job->first) * width + n, plan.result_stride());
                numbers.backward();
                if (job->epilogue.bias != nullptr) load_channels<v>(bias, job->epilogue.bias + channel, left);
                float* const to = job->y + (at.image * plan.g.out_width + at.column) * plan.g.out_channels + channel;
                for (int i = 0; i < count; ++i) {
                    type each = numbers[i] + bias;
                    if (job->epilogue.relu) each = each <= type{} ? type{} : each; // keeps NaN
                    store_channels<v>(to + i * plan.g.out_channels, each, left);
                }
            }
        }
    }
};

template <>
struct input_gradient_transform<0> {
    template <class Isa>
    TG_INLINE static void run(const input_gradient_job* job) {
        using v = vector<float, Isa::vector_bytes>;
        const fast_plan& plan = *job->plan;
        const std::int64_t width = plan.turned.width(job->panel), first_channel = job->panel * 2 * v::lanes;
        line_numbers<v> numbers(plan.transform);
        typename v::type sum;
        for (std::int64_t tile = job->first; tile < job->last; ++tile) {
            const fast_tile at(plan, tile);
            const std::int64_t pixel = at.column - plan.g.pad_left;
            for (std::int64_t n = 0; n < width; n += v::lanes) {
                const std::int64_t channel = first_channel + n;
                numbers.load_inputs_back(job->results + (tile - job->first) * width + n, plan.result_stride());
                numbers.backward();
                // Elements past the last output's inputs are zeros, or rounding errors of zeros.
                for (int i = 0; i < plan.outputs + plan.g.kernel_width - 1; ++i) {
                    const std::int64_t left = channels_left(plan, pixel + i, channel);
                    if (left <= 0) continue;
                    float* const to = job->dx + at.image * plan.image + (pixel + i) * plan.g.in_channels + channel;
                    load_channels<v>(sum, to, left);
                    sum += numbers[i];
                    store_channels<v>(to, sum, left);
                }
            }
        }
    }
};

template <>
struct filter_gradient_transform<0> {
    template <class Isa>
    TG_INLINE static void run(const filter_gradient_job* job) {
        using v = vector<float, Isa::vector_bytes>;
        const fast_plan& plan = *job->plan;
        const panel_layout& layout = plan.filters;
        line_numbers<v> numbers(plan.transform);
        for (std::int64_t n = 0; n < plan.g.out_channels; n += v::lanes) {
            const std::int64_t panel = n / (2 * v::lanes);
            const float* const from = job->sums + layout.offset(panel, plan.g.in_channels) + n % (2 * v::lanes);
            for (std::int64_t c = job->first; c < job->last; ++c) {
                numbers.load_filters_back(from + c * layout.width(panel), job->product_stride);
                numbers.backward();
                for (int i = 0; i < plan.g.kernel_width; ++i) {
                    const std::int64_t row = i * plan.g.in_channels + c - plan.lead_rows;
                    if (row >= 0 && row < plan.rows)
                        store_channels<v>(job->dw + row * plan.g.out_channels + n, numbers[i], plan.g.out_channels - n);
                }
            }
        }
    }
};

} // namespace tapegraph::cpu::detail
