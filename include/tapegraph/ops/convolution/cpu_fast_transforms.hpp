#pragma once

#include <tapegraph/ops/convolution/cpu_fast_plan.hpp>
#include <tapegraph/ops/convolution/cpu_toom_cook.hpp>

/// Transforms between images or filters and factors of products, a vector of channels at a time,
/// for one instruction set each.

namespace tapegraph::cpu::detail {

template <class V>
TG_INLINE void load_channels(typename V::type& to, const float* from, std::int64_t left) {
    if (from == nullptr)
        to = typename V::type{};
    else if (left >= V::lanes)
        V::load(to, from);
    else
        V::load_first(to, from, static_cast<int>(left));
}
/// The same from channel `c` of a row on, where lanes beyond the row's channels are ignored and may
/// hold its neighbour's. Rows end at `end`.
template <class V>
TG_INLINE void load_beside(typename V::type& to, const float* row, std::int64_t c, const float* end) {
    if (row == nullptr)
        to = typename V::type{};
    else
        load_channels<V>(to, row + c, end - row - c);
}
template <class V>
TG_INLINE void store_channels(float* to, const typename V::type& value, std::int64_t left) {
    if (left >= V::lanes)
        V::store(to, value);
    else
        V::store_first(to, value, static_cast<int>(left));
}

/// The pixels of a tile in an image; null outside of it.
template <int Side>
TG_INLINE void find_pixels(const float* (&pixel)[Side * Side], const float* images, std::int64_t height,
                           std::int64_t width, std::int64_t channels, const fast_tile& at, std::int64_t row,
                           std::int64_t column) {
    for (int i = 0; i < Side; ++i)
        for (int j = 0; j < Side; ++j) {
            const std::int64_t y = row + i, x = column + j;
            const bool inside = y >= 0 && y < height && x >= 0 && x < width;
            pixel[i * Side + j] = inside ? images + ((at.image * height + y) * width + x) * channels : nullptr;
        }
}

/// Transforms inputs of tiles [first, last) to v, [product][tile - first][channel], with
/// `tile_stride` floats from product to product.
struct input_job {
    convolution_geometry g;
    const fast_plan* plan;
    const float* x;
    float* v;
    std::int64_t first, last, product_stride;
};
template <int Taps>
struct input_transform {
    template <class Isa>
    TG_INLINE static void run(const input_job* job) {
        using v = vector<float, Isa::vector_bytes>;
        using numbers = toom_cook<fast_outputs, Taps>;
        constexpr int side = numbers::products;
        const convolution_geometry& g = job->g;
        const float* const end = job->x + g.batch * job->plan->image;
        const float* pixel[side * side];
        for (std::int64_t tile = job->first; tile < job->last; ++tile) {
            const fast_tile at(*job->plan, tile);
            find_pixels<side>(pixel, job->x, g.in_height, g.in_width, g.in_channels, at, at.row - g.pad_top,
                              at.column - g.pad_left);
            float* const to = job->v + (tile - job->first) * job->plan->in_row;
            for (std::int64_t c = 0; c < g.in_channels; c += v::lanes) {
                const auto load = [&](typename v::type & in, int i) __attribute__((always_inline)) {
                    load_beside<v>(in, pixel[i], c, end);
                };
                const auto store = [&](int i, const typename v::type& out) __attribute__((always_inline)) {
                    v::store(to + i * job->product_stride + c, out);
                };
                channel_map<numbers, typename numbers::input, v>::forward_both(load, store);
            }
        }
    }
};

/// Transforms gradients of tiles to w: for a group, [product][panel][tile - begin][columns]; for a
/// block, [product][tile - begin][out channel].
struct gradient_job {
    convolution_geometry g;
    const fast_plan* plan;
    const float* dy;
    float* w;
    std::int64_t first, last, begin, size; ///< the tiles, and those of the group or block
    std::int64_t product_stride;
    bool in_panels;
};
template <int Taps>
struct gradient_transform {
    template <class Isa>
    TG_INLINE static void run(const gradient_job* job) {
        using v = vector<float, Isa::vector_bytes>;
        using numbers = toom_cook<fast_outputs, Taps>;
        constexpr int m = fast_outputs;
        const convolution_geometry& g = job->g;
        const panel_layout& layout = job->plan->filters;
        const float* const end = job->dy + g.batch * g.out_height * g.out_width * g.out_channels;
        const float* pixel[m * m];
        for (std::int64_t tile = job->first; tile < job->last; ++tile) {
            const fast_tile at(*job->plan, tile);
            find_pixels<m>(pixel, job->dy, g.out_height, g.out_width, g.out_channels, at, at.row, at.column);
            for (std::int64_t c = 0; c < g.out_channels; c += v::lanes) {
                const std::int64_t panel = c / (2 * v::lanes);
                float* const to =
                    job->w + (job->in_panels ? layout.offset(panel, job->size) +
                                                   (tile - job->begin) * layout.width(panel) + c % (2 * v::lanes)
                                             : (tile - job->begin) * job->plan->out_row + c);
                const auto load = [&](typename v::type & in, int i) __attribute__((always_inline)) {
                    load_beside<v>(in, pixel[i], c, end);
                };
                const auto store = [&](int i, const typename v::type& out) __attribute__((always_inline)) {
                    v::store(to + i * job->product_stride, out);
                };
                channel_map<numbers, typename numbers::output, v>::forward_both(load, store);
            }
        }
    }
};

/// Stores a vector of a whole cache line past the caches, which would first read the line. `lines_written`
/// comes before other threads read it.
template <class V>
TG_INLINE void store_line_past_caches(float* to, const typename V::type& value) {
#if defined(__clang__)
    __builtin_nontemporal_store(value, reinterpret_cast<typename V::type*>(to));
#elif defined(__x86_64__)
    __asm__("vmovntps %1, %0" : "=m"(*reinterpret_cast<typename V::storage*>(to)) : "v"(value));
#else
    V::store(to, value);
#endif
}
TG_INLINE void lines_written() {
#if defined(__x86_64__)
    __asm__ volatile("sfence" ::: "memory");
#endif
}

/// Transforms filters of input channels [first, last) to u, [product][panel][in channel][columns];
/// if `turned`, of output channels, to [product][panel of in channels][out channel][columns].
struct filter_job {
    static constexpr int most = 8; ///< channels per job
    convolution_geometry g;
    const fast_plan* plan;
    const float* w;
    float* u;
    std::int64_t product_stride, first, last;
    bool turned;
};
template <int Taps>
struct filter_transform {
    template <class Isa>
    TG_INLINE static void run(const filter_job* job) {
        using v = vector<float, Isa::vector_bytes>;
        using numbers = toom_cook<fast_outputs, Taps>;
        constexpr int taps = Taps * Taps;
        const panel_layout& layout = job->turned ? job->plan->turned : job->plan->filters;
        const std::int64_t depth = job->turned ? job->g.out_channels : job->g.in_channels;
        const std::int64_t in_channels = job->g.in_channels, out_channels = job->g.out_channels;
        const float* const end = job->w + taps * in_channels * out_channels;
        alignas(64) float turned[taps][filter_job::most][v::lanes] = {};
        constexpr bool whole_lines = Isa::vector_bytes == 64;
        const bool past_caches = whole_lines && !in_cache(job->plan->products, in_channels, out_channels);
        for (std::int64_t n = 0; n < layout.n; n += v::lanes) {
            const std::int64_t panel = n / (2 * v::lanes), left = layout.n - n;
            float* const to = job->u + layout.offset(panel, depth) + n % (2 * v::lanes);
            for (int i = 0; job->turned && i < taps; ++i) // neighbouring columns are rows of w here
                transpose(&turned[i][0][0], v::lanes, job->w + (i * in_channels + n) * out_channels + job->first,
                          out_channels, std::min<std::int64_t>(v::lanes, left), job->last - job->first);
            for (std::int64_t c = job->first; c < job->last; ++c) {
                const auto load = [&](typename v::type & in, int i) __attribute__((always_inline)) {
                    if (job->turned)
                        v::load(in, turned[i][c - job->first]);
                    else
                        load_beside<v>(in, job->w + (i * in_channels + c) * out_channels, n, end);
                };
                const auto store = [&](int i, const typename v::type& out) __attribute__((always_inline)) {
                    float* const at = to + i * job->product_stride + c * layout.width(panel);
                    if constexpr (whole_lines) {
                        if (past_caches) return store_line_past_caches<v>(at, out);
                    }
                    v::store(at, out);
                };
                channel_map<numbers, typename numbers::filter, v>::forward_both(load, store);
            }
        }
        if (past_caches) lines_written();
    }
};

/// Transforms the results of a panel, [product][tile - first][columns], to outputs, and applies
/// bias, relu, and the maximum of 2 by 2 where pooled.
struct output_job {
    convolution_geometry g;
    const fast_plan* plan;
    const float* results;
    float* y;
    convolution_epilogue<float> epilogue;
    std::int64_t first, last, panel;
    bool pooled;
};
template <int Taps>
struct output_transform {
    template <class Isa>
    TG_INLINE static void run(const output_job* job) {
        using v = vector<float, Isa::vector_bytes>;
        using type = typename v::type;
        using numbers = toom_cook<fast_outputs, Taps>;
        constexpr int m = fast_outputs;
        const convolution_geometry& g = job->g;
        const std::int64_t width = job->plan->filters.width(job->panel), first_channel = job->panel * 2 * v::lanes;
        const int halved = job->pooled ? 1 : 0, step = 1 + halved;
        const std::int64_t height = g.out_height >> halved, row = g.out_width >> halved;
        const std::int64_t result_stride = job->plan->result_stride();
        type out[m * m], bias = {};
        for (std::int64_t tile = job->first; tile < job->last; ++tile) {
            const fast_tile at(*job->plan, tile);
            for (std::int64_t n = 0; n < width; n += v::lanes) {
                const std::int64_t channel = first_channel + n, left = g.out_channels - channel;
                const float* const from = job->results + (tile - job->first) * width + n;
                const auto load = [&](type & in, int i) __attribute__((always_inline)) {
                    v::load(in, from + i * result_stride);
                };
                const auto store = [&](int i, const type& value) __attribute__((always_inline)) { out[i] = value; };
                channel_map<numbers, typename numbers::output, v>::backward_both(load, store);
                if (job->epilogue.bias != nullptr) load_channels<v>(bias, job->epilogue.bias + channel, left);
                for (type& each : out) {
                    each += bias;
                    if (job->epilogue.relu) each = each <= type{} ? type{} : each; // keeps NaN
                }
                for (int i = 0; i < m; i += step)
                    for (int j = 0; j < m; j += step) {
                        const std::int64_t y = (at.row + i) >> halved, x = (at.column + j) >> halved;
                        if (y >= height || x >= row) continue;
                        type value = out[i * m + j];
                        if (job->pooled) {
                            take_larger(value, out[i * m + j + 1]);
                            take_larger(value, out[(i + 1) * m + j]);
                            take_larger(value, out[(i + 1) * m + j + 1]);
                        }
                        store_channels<v>(job->y + ((at.image * height + y) * row + x) * g.out_channels + channel,
                                          value, left);
                    }
            }
        }
    }
    // Compares like max pooling: of equal values the later is taken, and a NaN stays.
    template <class Value>
    TG_INLINE static void take_larger(Value& best, const Value& other) {
        best = best > other ? best : best != best ? best : other;
    }
};

/// Transforms the results of a panel of in channels, [product][tile - first][columns], and adds
/// them to dx.
struct input_gradient_job {
    convolution_geometry g;
    const fast_plan* plan;
    const float* results;
    float* dx;
    std::int64_t first, last, panel;
};
template <int Taps>
struct input_gradient_transform {
    template <class Isa>
    TG_INLINE static void run(const input_gradient_job* job) {
        using v = vector<float, Isa::vector_bytes>;
        using numbers = toom_cook<fast_outputs, Taps>;
        constexpr int side = numbers::products;
        const convolution_geometry& g = job->g;
        const std::int64_t width = job->plan->turned.width(job->panel), first_channel = job->panel * 2 * v::lanes;
        const std::int64_t result_stride = job->plan->result_stride();
        const float* pixel[side * side];
        for (std::int64_t tile = job->first; tile < job->last; ++tile) {
            const fast_tile at(*job->plan, tile);
            find_pixels<side>(pixel, job->dx, g.in_height, g.in_width, g.in_channels, at, at.row - g.pad_top,
                              at.column - g.pad_left);
            for (std::int64_t n = 0; n < width; n += v::lanes) {
                const std::int64_t channel = first_channel + n, left = g.in_channels - channel;
                const float* const from = job->results + (tile - job->first) * width + n;
                const auto load = [&](typename v::type & in, int i) __attribute__((always_inline)) {
                    v::load(in, from + i * result_stride);
                };
                const auto store = [&](int i, const typename v::type& out) __attribute__((always_inline)) {
                    if (pixel[i] == nullptr) return;
                    float* const to = job->dx + (pixel[i] - job->dx) + channel;
                    typename v::type sum;
                    load_channels<v>(sum, to, left);
                    sum += out;
                    store_channels<v>(to, sum, left);
                };
                channel_map<numbers, typename numbers::input, v>::backward_both(load, store);
            }
        }
    }
};

/// Transforms sums of products, [product][panel][in channel][columns], to dw for input channels
/// [first, last).
struct filter_gradient_job {
    convolution_geometry g;
    const fast_plan* plan;
    const float* sums;
    float* dw;
    std::int64_t product_stride, first, last;
};
template <int Taps>
struct filter_gradient_transform {
    template <class Isa>
    TG_INLINE static void run(const filter_gradient_job* job) {
        using v = vector<float, Isa::vector_bytes>;
        using numbers = toom_cook<fast_outputs, Taps>;
        const convolution_geometry& g = job->g;
        const panel_layout& layout = job->plan->filters;
        for (std::int64_t n = 0; n < g.out_channels; n += v::lanes) {
            const std::int64_t panel = n / (2 * v::lanes);
            const float* const from = job->sums + layout.offset(panel, g.in_channels) + n % (2 * v::lanes);
            for (std::int64_t c = job->first; c < job->last; ++c) {
                const auto load = [&](typename v::type & in, int i) __attribute__((always_inline)) {
                    v::load(in, from + i * job->product_stride + c * layout.width(panel));
                };
                const auto store = [&](int i, const typename v::type& out) __attribute__((always_inline)) {
                    store_channels<v>(job->dw + (i * g.in_channels + c) * g.out_channels + n, out, g.out_channels - n);
                };
                channel_map<numbers, typename numbers::filter, v>::backward_both(load, store);
            }
        }
    }
};

} // namespace tapegraph::cpu::detail
