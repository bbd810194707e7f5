#pragma once

#include <tapegraph/graph/device_memory.hpp>
#include <tapegraph/graph/lifetimes.hpp>
#include <tapegraph/graph/spread_numbers.hpp>
#include <tapegraph/runtime/scalar.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tapegraph::ir {

/// The numbers in a program's formulas, constants and extents, in memory that kernels read.
class formula_numbers {
public:
    /// Evaluates the numbers for the extents that `value_of` gives to symbols, and sets their
    /// addresses in `values`: in the memory of `device`, or on the CPU if it is null. `spreads`:
    /// small kernels read replicas (graph/spread_numbers.hpp), which only the CPU's do. Returns
    /// whether memory on the device has moved.
    template <class ValueOf>
    bool place(const program_view& view, const extent_table& table, const ValueOf& value_of,
               numbered<buffer_view>& values, runtime::device_runtime* device, bool spreads) {
        bool moved = false;
        words_.resize(static_cast<std::size_t>(view.nodes.size()));
        for (int i = 0; i < view.nodes.size(); ++i) {
            const entry& e = view.nodes[i];
            const bool constant = e.is(descriptor_of<constant_op>);
            if (!constant && !e.is(descriptor_of<extent_op>)) continue;
            const std::int64_t word = view.words[e.words];
            const double value =
                constant ? std::bit_cast<double>(word) : static_cast<double>(table.evaluate(word, value_of));
            values[i].data = &words_[static_cast<std::size_t>(i)];
            runtime::store_scalar(values[i], value);
            if (device == nullptr) continue;
            moved = on_device_.reserve(device, words_.size() * sizeof(double), "constants of a program") || moved;
            values[i].data = on_device_.data() + static_cast<std::size_t>(i) * sizeof(double);
        }
        if (spreads) spread_.spread(view, values);
        if (on_device_.size() > 0) device->upload(on_device_.data(), words_.data(), words_.size() * sizeof(double));
        return moved;
    }

    /// The bytes of a node's number, which has the node's element type.
    std::uint64_t word(int id) const { return std::bit_cast<std::uint64_t>(words_[id]); }

private:
    numbered<double> words_; // per node, wide enough for every element type
    memory_block on_device_;
    spread_numbers spread_;
};

} // namespace tapegraph::ir
