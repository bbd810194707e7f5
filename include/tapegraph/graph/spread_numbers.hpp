#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/lifetimes.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

namespace tapegraph::ir {

/// Replicates the numbers of a program's formulas, as many consecutive copies as the small kernels
/// that read them have elements. A kernel with a single copy spreads it in every call
/// (cpu/map.hpp), which takes as long as computing so few elements.
class spread_numbers {
public:
    /// `values` hold one copy of every number, and extents; they are redirected to the replicas.
    /// Memory is allocated the first time.
    void spread(const program_view& view, numbered<buffer_view>& values);

private:
    static constexpr std::int64_t most_elements = 256;

    // Whether a step is a formula that may have few elements: symbols may be 1.
    static bool may_be_small(const program_view& view, const step_entry& step);

    numbered<std::int64_t> wanted_; // per node
    std::unique_ptr<double[]> copies_;
};

#if TG_DEFINES_FOR_HOST(graph)

TG_DEFINITION void spread_numbers::spread(const program_view& view, numbered<buffer_view>& values) {
    if (wanted_.empty()) wanted_.resize(values.size());
    for (int id = 0; id < view.nodes.size(); ++id) wanted_[id] = 0, values[id].copies = 1;
    std::int64_t numbers = 0;
    for (const step_entry& step : view.steps) {
        if (!may_be_small(view, step)) continue;
        const std::int64_t elements = values[step.domain].elements();
        for (int k = 0; k < step.inputs; ++k) {
            const int id = view.values[step.first_value + k];
            const entry& e = view.nodes[id];
            if (!e.is(descriptor_of<constant_op>) && !e.is(descriptor_of<extent_op>)) continue;
            numbers += wanted_[id] == 0 ? 1 : 0;
            wanted_[id] = std::max({wanted_[id], std::int64_t{1}, elements <= most_elements ? elements : 1});
        }
    }
    if (numbers == 0) return;
    if (copies_ == nullptr)
        copies_ = std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(numbers * most_elements));
    double* to = copies_.get(); // wide enough for every element type
    for (int id = 0; id < view.nodes.size(); ++id) {
        if (wanted_[id] < 2) continue;
        buffer_view& number = values[id];
        auto* const bytes = reinterpret_cast<std::byte*>(to);
        const std::size_t size = size_of(number.type);
        for (std::int64_t i = 0; i < wanted_[id]; ++i)
            std::memcpy(bytes + static_cast<std::size_t>(i) * size, number.data, size);
        number.data = to;
        number.copies = static_cast<std::int16_t>(wanted_[id]);
        to += wanted_[id];
    }
}

TG_DEFINITION bool spread_numbers::may_be_small(const program_view& view, const step_entry& step) {
    if (view.kernels[step.kernel].kind == static_cast<int>(kernel_kind::operation)) return false;
    const entry& domain = view.nodes[step.domain];
    std::int64_t least = 1;
    for (int axis = 0; axis < domain.rank; ++axis)
        if (const std::int64_t extent = view.pool[domain.dims + axis]; !is_symbolic(extent)) least *= extent;
    return least <= most_elements;
}

#endif

} // namespace tapegraph::ir
