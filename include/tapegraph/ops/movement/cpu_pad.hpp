#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/ops/movement/cpu.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// Fills, and places a tensor in a larger one: constant padding and the adjoint of slice.

namespace tapegraph::cpu {

namespace layout_detail {
template <int Size>
TG_VECTORISES void fill_run(void* to, std::int64_t count, const void* value) {
    using element = typename word<Size>::type;
    element* y = static_cast<element*>(to);
    const element v = *static_cast<const element*>(value);
    TG_SIMD
    for (std::int64_t i = 0; i < count; ++i) y[i] = v;
}
} // namespace layout_detail

/// Sets `count` elements to the one at `value`, on several threads when it pays.
inline void fill(std::int64_t count, std::size_t size, const void* value, void* out) {
    layout_detail::axes_list axes;
    axes.add({count, 0, 1});
    if (count == 1)
        std::memcpy(out, value, size);
    else
        layout_detail::strided_copy(axes, size, value, out);
}

/// Sets out to the element at `value` (null: zero) everywhere, then out[begin + i * step...] =
/// in[i...]: the adjoint of slice, and constant padding. Where steps are 1 every element of out is
/// written once.
void pad(int rank, const std::int64_t* extents, const std::int64_t* begin, const std::int64_t* step,
         const std::int64_t* out_extents, std::size_t size, const void* in, void* out, const void* value = nullptr);

#if TG_DEFINES(movement)

TG_DEFINITION void pad(int rank, const std::int64_t* extents, const std::int64_t* begin, const std::int64_t* step,
                       const std::int64_t* out_extents, std::size_t size, const void* in, void* out,
                       const void* value) {
    using namespace layout_detail;
    const std::uint64_t zeros = 0;
    if (value == nullptr) value = &zeros;
    std::int64_t in_strides[8], out_strides[8], first = 0, elements = 1;
    strides_of(rank, extents, in_strides);
    strides_of(rank, out_extents, out_strides);
    axes_list axes;
    bool box = true;
    for (int i = 0; i < rank; ++i) {
        elements *= out_extents[i];
        first += begin[i] * out_strides[i];
        axes.add({extents[i], in_strides[i], step[i] * out_strides[i]});
        box = box && (step[i] == 1 || extents[i] == 1);
    }
    if (elements == 0) return;
    if (axes.elements == 0 || size > 8 || (size & (size - 1)) != 0) return fill(elements, size, value, out);
    // The last axis with a border: the axes after it form one run. Rows of out are all border, or
    // border, run, border.
    int last = rank - 1;
    while (last >= 0 && extents[last] == out_extents[last]) --last;
    const std::int64_t bytes = static_cast<std::int64_t>(size);
    const std::int64_t run = last < 0 ? 0 : out_extents[last] * out_strides[last];
    if (!box || last < 0 || run < 4 || run > 4 * piece_elements) { // rows too short or too long for this
        fill(elements, size, value, out);
        return strided_copy(axes, size, in, static_cast<char*>(out) + first * bytes);
    }
    const auto fill_elements = size == 1   ? &fill_run<1>
                               : size == 2 ? &fill_run<2>
                               : size == 4 ? &fill_run<4>
                                           : &fill_run<8>;
    const std::int64_t rows = elements / run, inner = out_strides[last];
    const std::int64_t before = begin[last] * inner, middle = extents[last] * inner, after = run - before - middle;
    const std::int64_t in_task = std::max<std::int64_t>(1, 2 * piece_elements / run);
    parallel_for((rows + in_task - 1) / in_task, elements >= parallel_elements, [&](std::int64_t task) {
        std::int64_t at[8]{};
        std::int64_t row = task * in_task;
        for (std::int64_t i = last, rest = row; i-- > 0;) {
            at[i] = rest % out_extents[i];
            rest /= out_extents[i];
        }
        for (const std::int64_t end = std::min(rows, row + in_task); row < end; ++row) {
            bool inside = true;
            std::int64_t from = 0;
            for (int i = 0; i < last; ++i) {
                const std::int64_t k = at[i] - begin[i];
                inside = inside && k >= 0 && k < extents[i];
                from += k * in_strides[i];
            }
            char* const y = static_cast<char*>(out) + row * run * bytes;
            if (inside) {
                fill_elements(y, before, value);
                move_bytes(y + before * bytes, static_cast<const char*>(in) + from * bytes, middle * bytes);
                fill_elements(y + (before + middle) * bytes, after, value);
            } else {
                fill_elements(y, run, value);
            }
            for (int i = last; i-- > 0 && ++at[i] == out_extents[i];) at[i] = 0;
        }
    });
}

#endif

} // namespace tapegraph::cpu
