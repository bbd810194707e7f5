#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>

#include <functional>

/// Sums of a few elements of images at computed positions: what interpolation is made of.

namespace tapegraph::io::onnx_import {

namespace rules {

/// Positions along one axis, whole numbers in a floating type, and their weights: [batch, count].
struct choice {
    node at, weight;
};
/// The two neighbours of positions for linear interpolation.
inline std::vector<choice> neighbours(const node& x) {
    const node low = eval(floor(x)), d = eval(x - low);
    return {{low, eval(1 - d)}, {eval(low + 1), d}};
}

/// Calls f(element, weight) for each combination of the axes' choices: the element's number in an image of
/// these sizes, and its weight, which is zero outside of it.
inline void each_element(const std::vector<double>& sizes, std::vector<std::vector<choice>> choices,
                         const std::function<void(const node&, const node&)>& f) {
    for (std::size_t k = 0; k < choices.size(); ++k)
        for (choice& each : choices[k]) {
            const node there = eval(logical_and(each.at >= 0, each.at <= sizes[k] - 1));
            each.weight = eval(where(there, each.weight, 0));
            each.at = eval(minimum(maximum(each.at, 0), sizes[k] - 1));
        }
    const std::function<void(std::size_t, const node&, const node&)> add = [&](std::size_t k, const node& at,
                                                                               const node& weight) {
        if (k == choices.size()) return f(eval(cast<std::int64_t>(at)), weight);
        for (const choice& each : choices[k])
            add(k + 1, k == 0 ? each.at : node(eval(at * sizes[k] + each.at)),
                k == 0 ? each.weight : node(eval(weight * each.weight)));
    };
    add(0, {}, {});
}
/// The weighted sums of elements of an image [batch, elements, channels]: [batch, count, channels].
inline node weighted_elements(const node& image, const std::vector<double>& sizes,
                              const std::vector<std::vector<choice>>& choices) {
    node total;
    bool any = false;
    each_element(sizes, choices, [&](const node& at, const node& weight) {
        const node weighted = eval(gather(image, at, 1, 1) * with_axis(weight, 2));
        total = any ? node(eval(total + weighted)) : weighted;
        any = true;
    });
    return total;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
