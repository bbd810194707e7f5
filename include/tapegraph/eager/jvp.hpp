#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/tape.hpp>

#include <string>

/// Forward-mode differentiation in eager mode: one walk over the tape, in recording order.

namespace tapegraph::detail {

/// The arithmetic that the walk needs. The caller passes these functions in, so that programs that
/// never use forward mode do not compile them.
struct forward_kernels {
    /// sum + a * b, broadcast; a * b when `sum` is null
    any_tensor (*multiply_add)(const any_tensor* sum, const any_tensor& a, const any_tensor& b);
    any_tensor (*add)(const any_tensor& a, const any_tensor& b);
    any_tensor (*converted)(const any_tensor& a, dtype type);
    /// Computes the tangent of a record's value only from the record's backward function; returns
    /// false when there is none.
    bool (*transposed)(tape_record&, const any_tensor* const* operands, int count, const any_tensor& output,
                       const jvp_pass&, any_tensor& tangent);
    /// The tangents of a formula's record and of an interpreted node's.
    bool (*formula)(tape_record&, const jvp_pass&, any_tensor& tangent);
    bool (*node)(tape_record&, const jvp_pass&, any_tensor& tangent);
};

/// The tangents of tracked tensors, indexed by their places on the tape.
class jvp_pass {
public:
    const forward_kernels& kernels;

    jvp_pass(int base, int end, const forward_kernels& functions)
        : kernels(functions),
          base_(base),
          tangents_(static_cast<std::size_t>(end - base)),
          present_(static_cast<std::size_t>(end - base)) {}

    /// The tangent of a recorded or watched tensor; null when it has none.
    const any_tensor* find(const any_tensor& t) const;
    void set(int index, any_tensor tangent) {
        tangents_[static_cast<std::size_t>(index - base_)] = std::move(tangent);
        present_[static_cast<std::size_t>(index - base_)] = 1;
    }

    void run(int first, int end);

private:
    int base_;
    std::vector<any_tensor> tangents_;
    std::vector<char> present_;
};

#if TG_DEFINES_FOR_HOST(eager)

TG_DEFINITION void jvp_pass::run(int first, int end) {
    tape_storage& tape = tape_storage::instance();
    for (int i = first; i < end; ++i) {
        tape_record* const r = tape.record(i);
        if (r == nullptr) continue;
        if (r->jvp == nullptr) throw argument_error("jvp: an operation on the tape has no forward mode");
        any_tensor tangent;
        if (r->jvp(*r, *this, tangent)) set(i, std::move(tangent));
    }
}

TG_DEFINITION const any_tensor* jvp_pass::find(const any_tensor& t) const {
    const tape_index p = t.tape_index();
    if (!tape_storage::instance().knows(p) || p.index < base_) return nullptr;
    const auto at = static_cast<std::size_t>(p.index - base_);
    return at < present_.size() && present_[at] ? &tangents_[at] : nullptr;
}

#endif

} // namespace tapegraph::detail
