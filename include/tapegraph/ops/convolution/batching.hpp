#pragma once

#include <tapegraph/ops/convolution/convolution.hpp>
#include <tapegraph/ops/vmap/batching.hpp>

/// Batching rules of convolutions.

namespace tapegraph {

/// Filters common to all examples: more images. Filters per example: more groups of channels.
template <>
struct batching_rule<convolution_op> {
    template <class C, class X, class W>
    static constexpr auto apply(const C& c, const window_attributes& a, const X& x, const W& w) {
        if constexpr (!C::template is_batched<W>) {
            return detail::batched_images<convolution_op>::apply(c, a, x, w);
        } else {
            if (!c.count.known())
                mode_transforms<mode_of_t<std::remove_cvref_t<decltype(c.whole(w))>>>::refuse(
                    c.whole(w), "vmap: filters per example need a number of examples known to the compiler",
                    shape_of(x), shape_of(w));
            window_attributes grouped = a;
            grouped.groups = a.groups * (c.count.known() ? c.count.value : 1);
            const auto y =
                c.template run<convolution_op>(grouped, nullptr, channels(c, c.spread(x, w)), channels(c, c.whole(w)));
            const shape found = shape_of(y), filters = shape_of(w);
            const int rank = found.rank();
            shape parted = found; // [..., examples, one example's filters]
            parted.set(rank - 1, c.count);
            parted.push_back(filters[filters.rank() - 1]);
            return c.move_axis(c.reshape(y, parted), rank - 1, 0);
        }
    }

private:
    /// [examples, ..., channels] to [..., examples * channels]
    static constexpr auto channels(const auto& c, const auto& whole) {
        const int rank = shape_of(whole).rank();
        const auto moved = c.move_axis(whole, 0, rank - 2);
        const shape s = shape_of(moved);
        shape merged;
        merged.attach(s.table());
        for (int i = 0; i + 2 < rank; ++i) merged.push_back(s[i]);
        merged.push_back(s.size(rank - 2, rank));
        return c.reshape(moved, merged);
    }
};

} // namespace tapegraph
