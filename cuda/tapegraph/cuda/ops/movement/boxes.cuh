#pragma once

#include <tapegraph/core/shape.hpp>
#include <tapegraph/cuda/kernel.cuh>

#include <cstdint>

/// Splits index spaces: kernels count in 31 bits and add to 64-bit bases, so larger spaces take
/// several launches.

namespace tapegraph::cuda::detail {

/// The most elements that one launch counts. A variable, so that tests can make small tensors take
/// several launches.
inline std::int64_t most_elements = std::int64_t{1} << 30;

/// A launch with one thread per element.
inline driver::launch_shape over(std::int64_t elements, unsigned threads = 256) {
    driver::launch_shape shape;
    shape.grid = static_cast<unsigned>(divide_up(elements, threads));
    shape.block = threads;
    return shape;
}

/// Calls f(first, count, elements) for boxes of at most most_elements that make up the index space, none of them empty.
template <class F>
void for_boxes(int rank, const std::int64_t* counts, const F& f) {
    struct box {
        std::int64_t first[max_rank]{}, count[max_rank]{};
    };
    const auto cut = [&](const auto& again, const box& b) -> void {
        std::int64_t elements = 1;
        int longest = 0;
        for (int i = 0; i < rank; ++i) {
            elements *= b.count[i];
            if (b.count[i] > b.count[longest]) longest = i;
        }
        if (elements == 0) return;
        if (elements <= most_elements || b.count[longest] == 1) return f(b.first, b.count, elements);
        box low = b, high = b;
        low.count[longest] = b.count[longest] / 2;
        high.first[longest] += low.count[longest];
        high.count[longest] -= low.count[longest];
        again(again, low);
        again(again, high);
    };
    box all;
    for (int i = 0; i < rank; ++i) all.count[i] = counts[i];
    cut(cut, all);
}

/// As above, for a row of `count`.
template <class F>
void for_pieces(std::int64_t count, const F& f) {
    for (std::int64_t first = 0; first < count; first += most_elements)
        f(first, count - first < most_elements ? count - first : most_elements);
}

} // namespace tapegraph::cuda::detail
