#pragma once

#include <tapegraph/ops/convolution/cpu_tiling.hpp>

#include <utility>

/// The forward pass of one pixel, a vector times a matrix, as the gates of squeeze-and-excitation blocks are: bound by
/// reading w once. Some rows of w at a time are read in the order in which they lie, all channels of them, while the
/// tile kernel would read two lines of each row, panel by panel. Sums are the tile kernel's, in the same order.

TG_ROUNDS_EACH_BEGIN
namespace tapegraph::cpu::detail {

/// sum[c] += x[i] * w[i, c] for i in [0, k) in order. `sum` has whole vectors.
template <class T>
struct scaled_rows_body {
    template <class Isa>
    TG_INLINE static void run(const T* w, std::int64_t w_row, const T* x, std::int64_t k, std::int64_t columns,
                              T* sum) {
        constexpr std::int64_t at_once = 8;
        std::int64_t i = 0;
        for (; i + at_once <= k; i += at_once)
            rows<vector<T, Isa::vector_bytes>>(w + i * w_row, w_row, x + i, columns, sum,
                                               std::make_index_sequence<static_cast<std::size_t>(at_once)>{});
        for (; i < k; ++i)
            rows<vector<T, Isa::vector_bytes>>(w + i * w_row, w_row, x + i, columns, sum, std::index_sequence<0>{});
    }

private:
    template <class V, std::size_t... R>
    TG_INLINE static void rows(const T* w, std::int64_t w_row, const T* x, std::int64_t columns, T* sum,
                               std::index_sequence<R...>) {
        typename V::type s, m;
        std::int64_t c = 0;
        for (; c + V::lanes <= columns; c += V::lanes) {
            V::load(s, sum + c);
            ((V::load(m, w + static_cast<std::int64_t>(R) * w_row + c), V::multiply_add(s, m, x[R])), ...);
            // The same rows of the next step; the processor alone comes too late.
            (__builtin_prefetch(w + static_cast<std::int64_t>(sizeof...(R) + R) * w_row + c), ...);
            V::store(sum + c, s);
        }
        if (c == columns) return;
        const int rest = static_cast<int>(columns - c);
        V::load(s, sum + c);
        ((V::load_first(m, w + static_cast<std::int64_t>(R) * w_row + c, rest), V::multiply_add(s, m, x[R])), ...);
        V::store(sum + c, s);
    }
};

/// y = x w + bias, then max(0, .), of one pixel, in parts of at most `most` rows of w, whose sums are added one after the
/// other. Leaves w where it lies.
template <class T>
void one_pixel_forward(const T* x, const T* w, T* y, std::int64_t k, std::int64_t columns, std::int64_t most,
                       const convolution_epilogue<T>& epilogue) {
    constexpr std::int64_t strip = 512, fewest = 128;
    const bool parallel = worth_threads(static_cast<double>(k) * static_cast<double>(columns));
    const std::int64_t shares = parallel ? thread_count() : 1;
    const std::int64_t width = std::clamp<std::int64_t>(divide_up(divide_up(columns, shares), 64) * 64, fewest, strip);
    const std::int64_t part = equal_part(k, most);
    for_tasks(divide_up(columns, width), parallel, [&](std::int64_t task, int) {
        alignas(64) T sum[strip];
        const std::int64_t first = task * width, count = std::min(width, columns - first);
        for (std::int64_t i = 0; i == 0 || i < k; i += part) {
            std::fill_n(sum, divide_up(count, 16) * 16, T(0));
            dispatch_fused<scaled_rows_body<T>>(w + i * columns + first, columns, x + i, std::min(part, k - i), count,
                                                static_cast<T*>(sum));
            const bool last = i + part >= k;
            for (std::int64_t c = 0; c < count; ++c) {
                T value = i > 0 ? sum[c] + y[first + c] : sum[c];
                if (last && epilogue.bias != nullptr) value += epilogue.bias[first + c];
                y[first + c] = last && epilogue.relu && value <= T(0) ? T(0) : value;
            }
        }
    });
    if (epilogue.next == nullptr) return;
    epilogue.next->on_rows(0, 1);
    epilogue.next->done = true;
}

} // namespace tapegraph::cpu::detail
TG_ROUNDS_EACH_END
