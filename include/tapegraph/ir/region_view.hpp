#pragma once

#include <tapegraph/expr/region.hpp>
#include <tapegraph/ir/operation.hpp>

#include <string>
#include <utility>

/// A region encoded as words: the form of kernels in frozen programs and formulas, before they
/// become types.

namespace tapegraph::ir {

/// One instruction of a region: an index into the operations stored with the words, the type of the
/// result, and the registers of the operands, -1 after the last.
struct region_instruction {
    static constexpr int words = 6;
    int op;
    dtype type;
    int operand[4];

    constexpr int operands() const {
        int count = 0;
        while (count < 4 && operand[count] >= 0) ++count;
        return count;
    }
};

/// Reads a region's words: the numbers of slots, instructions and results; the type of each slot; the instructions; the
/// register of each result. Registers are numbered slots first, then instructions.
struct region_view {
    const int* words;

    constexpr int slots() const { return words[0]; }
    constexpr int instructions() const { return words[1]; }
    constexpr int results() const { return words[2]; }
    constexpr dtype slot_type(int s) const { return static_cast<dtype>(words[3 + s]); }
    constexpr region_instruction instruction(int i) const {
        const int* const w = words + 3 + slots() + region_instruction::words * i;
        return {w[0], static_cast<dtype>(w[1]), {w[2], w[3], w[4], w[5]}};
    }
    constexpr int result(int r) const { return words[size(slots(), instructions(), r)]; }
    constexpr dtype type_of(int reg) const { return reg < slots() ? slot_type(reg) : instruction(reg - slots()).type; }

    /// The number of words of such a region.
    static constexpr int size(int slots, int instructions, int results) {
        return 3 + slots + region_instruction::words * instructions + results;
    }
};

/// The type of the region that begins at word First of a constant with `kernel_words` and `ops`: a
/// frozen program or the code of a formula.
template <class Constant, int First>
struct decoded_region {
    static constexpr region_view code{&Constant::value.kernel_words[First]};

    template <int I>
    static constexpr region_instruction at = code.instruction(I);
    template <int I>
    using instruction_at = instruction<operation_type<Constant::value.ops[at<I>.op]>, at<I>.type, at<I>.operand[0],
                                       at<I>.operand[1], at<I>.operand[2], at<I>.operand[3]>;

    template <int... S, int... I, int... R>
    static auto make(std::integer_sequence<int, S...>, std::integer_sequence<int, I...>,
                     std::integer_sequence<int, R...>)
        -> region<slots<code.slot_type(S)...>, results<code.result(R)...>, instruction_at<I>...>;

    using type = decltype(make(std::make_integer_sequence<int, code.slots()>{},
                               std::make_integer_sequence<int, code.instructions()>{},
                               std::make_integer_sequence<int, code.results()>{}));
};

/// The operations of a region: "multiply, add, tanh". `ops` is the list that its instructions
/// index.
template <class Operations>
std::string operation_names(const region_view& region, const Operations& ops) {
    std::string names;
    for (int i = 0; i < region.instructions(); ++i)
        names.append(i > 0 ? ", " : "").append(ops[region.instruction(i).op]->name);
    return names.empty() ? "copy" : names;
}

} // namespace tapegraph::ir
