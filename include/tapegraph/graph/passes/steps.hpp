#pragma once

#include <tapegraph/ir/region_code.hpp>
#include <tapegraph/ir/rewrite.hpp>

/// The parts of a schedule: steps, and the kernels they call.

namespace tapegraph::ir {

/// `sums`: a region whose first results are summed over the same axes; the others are written (runtime/several_reductions.hpp).
enum class kernel_kind : int { operation, region, reduction, sums };

struct kernel_entry {
    int kind;              // kernel_kind
    int op;                // index in schedule::ops (operation, reduction and sums)
    int type;              // dtype the kernel is instantiated for
    // A region's code, followed by the number of sums; the node of an operation with a kernel per
    // node
    int first_word, words;
};

struct step_entry {
    int kernel;
    int node;        // the (first) result
    int domain;      // a node of the shape over which a region or reduction runs
    int first_value; // in schedule::values: inputs, then results
    int inputs, outputs;
};

/// The maximum number of operands of a fused kernel (cpu::most_slots).
inline constexpr int most_region_slots = 24;

struct schedule {
    list<const operation*> ops;
    list<kernel_entry> kernels;
    list<int> kernel_words;
    list<step_entry> steps;
    list<int> values;
    list<int> alias; // per node: the node whose buffer it views, or itself
};

/// The number of results of a kernel that are reduced.
constexpr int reductions_of(const kernel_entry& k, const int* kernel_words) {
    if (k.kind == static_cast<int>(kernel_kind::sums)) return kernel_words[k.first_word + k.words - 1];
    return k.kind == static_cast<int>(kernel_kind::reduction) ? 1 : 0;
}

namespace detail {

/// Finds operations and kernels that a schedule already contains. It uses chains of hash buckets: a
/// schedule has thousands of steps, and a linear search for each would exceed the compiler's
/// budget.
class schedule_index {
public:
    constexpr explicit schedule_index(schedule& s) : s_(&s), op_head_(64, -1), kernel_head_(256, -1) {
        for (int i = 0; i < s.ops.size(); ++i) enter(s.ops[i], i);
    }

    constexpr int operation_index(const operation* op) {
        for (int i = head_of(op); i >= 0; i = op_next_[i])
            if (same_operation(s_->ops[i], op)) return i;
        return enter(op, s_->ops.push_back(op));
    }

    constexpr int kernel_index(kernel_kind kind, int op, dtype type, const list<int>& words) {
        auto hash = static_cast<unsigned>(op + 1) * 31u + static_cast<unsigned>(type);
        for (const int word : words) hash = hash * 31u + static_cast<unsigned>(word + 1);
        int& head = kernel_head_[static_cast<int>((hash ^ hash >> 8) % 256)];
        for (int i = head; i >= 0; i = kernel_next_[i])
            if (same(s_->kernels[i], kind, op, type, words)) return i;
        const int first = s_->kernel_words.size();
        for (const int word : words) s_->kernel_words.push_back(word);
        kernel_next_.push_back(head);
        return head = s_->kernels.push_back({static_cast<int>(kind), op, static_cast<int>(type), first, words.size()});
    }

private:
    constexpr int& head_of(const operation* op) {
        const std::string_view name = op->name; // addresses cannot be hashed in constant evaluation
        const auto hash = static_cast<unsigned>(name.size()) + 5u * static_cast<unsigned char>(name.front()) +
                          11u * static_cast<unsigned char>(name.back());
        return op_head_[static_cast<int>(hash % 64)];
    }
    constexpr int enter(const operation* op, int i) {
        int& head = head_of(op);
        op_next_.push_back(head);
        return head = i;
    }
    constexpr bool same(const kernel_entry& k, kernel_kind kind, int op, dtype type, const list<int>& words) const {
        bool equal = k.kind == static_cast<int>(kind) && k.op == op && k.type == static_cast<int>(type) &&
                     k.words == words.size();
        for (int w = 0; equal && w < words.size(); ++w) equal = s_->kernel_words[k.first_word + w] == words[w];
        return equal;
    }

    schedule* s_;
    list<int> op_head_, op_next_, kernel_head_, kernel_next_;
};

/// Rewrites a schedule without the steps that have moved into others. `merged(at, step, k)` builds
/// the merged step and appends its values to schedule::values, or returns false for an unchanged
/// step. Kernels without calls are dropped, because each would be compiled.
template <class Merged>
constexpr void rewrite_steps(schedule& s, schedule_index& index, const list<int>& moved, const Merged& merged) {
    const schedule old = s;
    list<int> kernel(old.kernels.size(), -1);
    s.kernels.clear();
    s.kernel_words.clear();
    s.steps.clear();
    s.values.clear();
    index = schedule_index(s);
    for (int at = 0; at < old.steps.size(); ++at) {
        if (moved[at] != 0) continue;
        step_entry step = old.steps[at];
        const kernel_entry k = old.kernels[step.kernel];
        const int first_value = step.first_value;
        step.first_value = s.values.size();
        if (!merged(at, step, k)) {
            for (int v = 0; v < step.inputs + step.outputs; ++v) s.values.push_back(int{old.values[first_value + v]});
            int& number = kernel[step.kernel];
            if (number < 0) {
                list<int> words;
                for (int w = 0; w < k.words; ++w) words.push_back(int{old.kernel_words[k.first_word + w]});
                number = index.kernel_index(static_cast<kernel_kind>(k.kind), k.op, static_cast<dtype>(k.type), words);
            }
            step.kernel = number;
        }
        s.steps.push_back(step);
    }
}

} // namespace detail

} // namespace tapegraph::ir
