#pragma once

#include <tapegraph/io/onnx_import/window.hpp>

/// The second result of MaxPool.

namespace tapegraph::io::onnx_import {

namespace rules {

/// For each window of MaxPool the place of its first maximum in the flattened operand, without padding.
/// `columns_first`: places within a channel are counted along its first axis first.
inline void give_places_of_maxima(call& c, window w, bool ceils, bool columns_first) {
    const shape s = c.dims(0);
    const int n = s.rank() - 2;
    node x = c.plain(0);
    if (x.type() == dtype::u8) x = eval(cast<std::int32_t>(x));
    const double lowest = is_floating(x.type()) ? -std::numeric_limits<double>::infinity() : -2147483648.0;
    std::vector<std::int64_t> sizes, counts, none(static_cast<std::size_t>(n + 2)), front = none, after = none;
    for (std::size_t k = 0; k < w.taps.size(); ++k) {
        sizes.push_back(known_extent(s[static_cast<int>(k) + 2], "the places of maxima"));
        const std::int64_t span = (w.taps[k] - 1) * w.dilations[k] + 1,
                           whole = sizes[k] + w.before[k] + w.after[k] - span;
        std::int64_t count = (whole + (ceils ? w.strides[k] - 1 : 0)) / w.strides[k] + 1;
        if (ceils && (count - 1) * w.strides[k] >= sizes[k] + w.before[k]) --count;
        if (whole < 0 || count < 1) refuse("windows larger than the image");
        counts.push_back(count);
        front[k + 2] = w.before[k];
        after[k + 2] = std::max(w.after[k], (count - 1) * w.strides[k] + span - sizes[k] - w.before[k]);
    }
    const node wide = padded(c, x, front, after, "constant", lowest);
    std::int64_t taps = 1, windows = 1, plane = 1;
    for (std::size_t k = 0; k < sizes.size(); ++k) taps *= w.taps[k], windows *= counts[k], plane *= sizes[k];
    std::vector<std::int64_t> first(static_cast<std::size_t>(windows), -1);
    std::vector<std::vector<std::int64_t>> places;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
        places.emplace_back();
        for (std::int64_t o = 0; o < windows; ++o) {
            std::int64_t place = 0, step = 1, rest = tap, of = o;
            std::vector<std::int64_t> at(sizes.size());
            bool inside = true;
            for (std::size_t k = sizes.size(); k-- > 0; rest /= w.taps[k], of /= counts[k]) {
                at[k] = of % counts[k] * w.strides[k] - w.before[k] + rest % w.taps[k] * w.dilations[k];
                inside = inside && at[k] >= 0 && at[k] < sizes[k];
            }
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                const std::size_t k = columns_first ? i : sizes.size() - 1 - i;
                place += at[k] * step;
                step *= sizes[k];
            }
            places.back().push_back(inside ? place : 0);
            if (inside && first[static_cast<std::size_t>(o)] < 0) first[static_cast<std::size_t>(o)] = place;
        }
    }
    const auto constant = [&](std::vector<std::int64_t> items) {
        array a = array::integers(items);
        a.set_dims(counts);
        return c.on.constant(a);
    };
    node best, at;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
        node v = wide;
        std::int64_t rest = tap;
        for (std::size_t k = sizes.size(); k-- > 0; rest /= w.taps[k])
            v = stepped(v, static_cast<int>(k) + 2, rest % w.taps[k] * w.dilations[k], w.strides[k], counts[k]);
        if (tap == 0) best = full_like(v, lowest), at = eval(broadcast_to(constant(first), v.shape()));
        const node better = eval(v > best);
        at = eval(where(better, constant(places[static_cast<std::size_t>(tap)]), at));
        best = eval(where(better, v, best));
    }
    std::vector<std::int64_t> along{s[0].value, s[1].value};
    along.resize(static_cast<std::size_t>(n) + 2, 1);
    const node channel = reshape(arange<std::int64_t>(c.on.example(), s[0] * s[1]), shape_of_items(c, along));
    c.give(1, eval(at + channel * static_cast<double>(plane)), dtype::i64);
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
