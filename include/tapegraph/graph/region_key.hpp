#pragma once

#include <tapegraph/ir/node.hpp>
#include <tapegraph/ir/region_view.hpp>

#include <cstdint>
#include <vector>

/// How the kernels of compiled regions are found (graph/kernel_registry.hpp).

namespace tapegraph::ir {

/// Identifies the computation of a region by numbers that do not depend on the program: equal keys
/// mean equal functions.
class region_key {
public:
    /// The key of a program's code, whose results are some of its registers.
    region_key(const region_view& code, const operation* const* ops, const std::vector<int>& results) {
        begin(code.slots(), code.instructions(), results.size());
        for (int s = 0; s < code.slots(); ++s) add(code.slot_type(s));
        for (int i = 0; i < code.instructions(); ++i) {
            const region_instruction step = code.instruction(i);
            add(ops[step.op], step.type, step.operand);
        }
        for (const int r : results) add(static_cast<std::uint64_t>(r));
    }
    /// The key of a region given as a type.
    template <dtype... Slots, int... Results, class... Instructions>
    explicit region_key(region<slots<Slots...>, results<Results...>, Instructions...>) {
        begin(sizeof...(Slots), sizeof...(Instructions), sizeof...(Results));
        (add(Slots), ...);
        (add(Instructions{}), ...);
        (add(static_cast<std::uint64_t>(Results)), ...);
    }

    bool operator==(const region_key&) const = default;
    std::size_t hash() const {
        std::uint64_t h = 0xcbf29ce484222325; // FNV-1a, word by word
        for (const std::uint64_t word : words_) h = (h ^ word) * 0x100000001b3;
        return static_cast<std::size_t>(h ^ h >> 32);
    }

private:
    void add(std::uint64_t word) { words_.push_back(word); }
    void add(dtype type) { add(static_cast<std::uint64_t>(type)); }
    void add(const operation* op, dtype type, const int (&operands)[4]) {
        add(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(op)));
        add(type);
        for (const int o : operands) add(static_cast<std::uint64_t>(o));
    }
    template <class Op, dtype Result, int A, int B, int C, int D>
    void add(instruction<Op, Result, A, B, C, D>) {
        static_assert(operation_binding<Op>::bound);
        add(&descriptor_of<Op>, Result, {A, B, C, D});
    }
    void begin(std::size_t slots, std::size_t instructions, std::size_t results) {
        words_.reserve(3 + slots + 6 * instructions + results);
        words_ = {slots, instructions, results};
    }
    void begin(int slots, int instructions, std::size_t results) {
        begin(static_cast<std::size_t>(slots), static_cast<std::size_t>(instructions), results);
    }

    std::vector<std::uint64_t> words_;
};

} // namespace tapegraph::ir
