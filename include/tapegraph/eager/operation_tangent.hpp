#pragma once

#include <tapegraph/eager/jvp.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/expr/apply.hpp>
#include <tapegraph/ir/gradient.hpp>

#include <cstring>
#include <optional>
#include <tuple>

/// Forward mode through operations that are not elementwise. A record has `attributes`, `inputs` (a tuple) and `output`.

namespace tapegraph::detail {

inline any_tensor zeros_of(dtype type, const shape& dims) {
    any_tensor zero(type, dims);
    if (zero.size() > 0) std::memset(zero.write(), 0, static_cast<std::size_t>(zero.size()) * size_of(type));
    return zero;
}

/// The contribution of one operand to the tangent. The operand's adjoint is a linear function of
/// the value's adjoint. That function is recorded with a placeholder for the value's adjoint;
/// pulling the operand's tangent back through the recording applies its transpose, which gives the
/// tangent. Empty where the operand has no derivative.
template <class Tensor>
std::optional<Tensor> transposed_flow(tape_record& record, const Tensor& operand, const Tensor& output,
                                      const Tensor& direction) {
    tape_storage& tape = tape_storage::instance();
    Tensor adjoint = zeros_of(output.type(), output.shape());
    const int first = tape.length();
    tape.start();
    adjoint.set_tape_index(tape.watch());
    backward_pass there(operand.tape_index().index,
                        operand.tape_index().index + 1); // other operands are constants
    record.backward(record, there, adjoint);
    tape.close(true);
    std::optional<Tensor> found;
    backward_pass back(first, tape.length());
    if (const Tensor* const flow = there.find(operand.tape_index()); flow != nullptr && back.wants(*flow)) {
        back.add(*flow, direction);
        back.run(flow->tape_index().index, first);
        if (const Tensor* const at = back.find(adjoint.tape_index())) found = *at;
    }
    if (!tape.recording()) tape.clear(first);
    return found;
}

/// Implements forward_kernels::transposed: the sum over all operands that have a tangent.
template <class Tensor>
bool transposed_tangent(tape_record& record, const Tensor* const* operands, int count, const Tensor& output,
                        const jvp_pass& walk, Tensor& tangent) {
    bool any = false;
    for (int k = 0; k < count; ++k) {
        const Tensor* const direction = walk.find(*operands[k]);
        if (direction == nullptr) continue;
        bool repeated = false; // a tensor that is several operands has one adjoint, the sum over all of them
        for (int before = 0; before < k; ++before) repeated = repeated || walk.find(*operands[before]) == direction;
        if (repeated) continue;
        const std::optional<Tensor> term = transposed_flow(record, *operands[k], output, *direction);
        if (!term) continue;
        tangent = any ? walk.kernels.add(tangent, *term) : *term;
        any = true;
    }
    return any;
}
/// Calls forward_kernels::transposed with the operands and the value of a record that has `inputs` and `output`.
template <class Record>
bool tangent_by_going_back(Record& record, const jvp_pass& walk, any_tensor& tangent) {
    return std::apply(
        [&](const auto&... in) {
            const any_tensor* const operands[]{&in...};
            return walk.kernels.transposed(record, operands, static_cast<int>(sizeof...(in)), record.output, walk,
                                           tangent);
        },
        record.inputs);
}

/// The tangent of a linear operation: the operation is applied to the tangents of its operands.
template <class Op, class Record>
class linear_tangents {
public:
    linear_tangents(const Record& record, const jvp_pass& walk) : self_(record), walk_(walk) {}

    bool run(any_tensor& tangent) const { return run(tangent, std::make_index_sequence<std::tuple_size_v<inputs>>{}); }

private:
    using inputs = std::remove_cvref_t<decltype(std::declval<Record>().inputs)>;
    using result = std::remove_cvref_t<decltype(std::declval<Record>().output)>;
    template <std::size_t I>
    using input = std::tuple_element_t<I, inputs>;

    template <std::size_t... I>
    bool run(any_tensor& tangent, std::index_sequence<I...>) const {
        static_assert(differentiable<Op, 0, typename Op::attributes, result, input<I>..., result>,
                      "an operation that says it is linear has a derivative");
        bool any = false;
        if constexpr (linearity_of<Op> == linearity::joint) {
            any = (... || (walk_.find(std::get<I>(self_.inputs)) != nullptr));
            if (any) tangent = applied(inputs(direction<I>()...));
        } else {
            const auto add_along = [&]<std::size_t Operand>() {
                const any_tensor* const found = walk_.find(std::get<Operand>(self_.inputs));
                if (found == nullptr) return;
                inputs operands = self_.inputs;
                std::get<Operand>(operands) = input<Operand>(*found);
                const result term = applied(operands);
                tangent = any ? walk_.kernels.add(tangent, term) : any_tensor(term);
                any = true;
            };
            (add_along.template operator()<I>(), ...);
        }
        return any;
    }

    result applied(const inputs& operands) const {
        const shape target = self_.output.shape();
        return std::apply(
            [&](const auto&... each) {
                return tapegraph::invoke<Op>(self_.attributes, &target, std::source_location{}, each...);
            },
            operands);
    }
    // The tangent of operand I: zeros if it has none, and the operand itself if it is of integers
    // or bool.
    template <std::size_t I>
    input<I> direction() const {
        const input<I>& at = std::get<I>(self_.inputs);
        if constexpr (!ir::detail::is_floating(dtype_of<typename input<I>::element_type>)) {
            return at;
        } else {
            const any_tensor* const found = walk_.find(at);
            return found != nullptr ? input<I>(*found) : zeros<typename input<I>::element_type>(at.shape());
        }
    }

    const Record& self_;
    const jvp_pass& walk_;
};

/// The tangent of a record's value. A linear operation is applied to tangents; for any other
/// operation the vjp is transposed. Returns false when no operand has a tangent.
template <class Op, class Record>
bool operation_tangent(Record& record, const jvp_pass& walk, any_tensor& tangent) {
    using result = std::remove_cvref_t<decltype(record.output)>;
    if constexpr (!ir::detail::is_floating(dtype_of<typename result::element_type>)) {
        return false; // positions and comparisons
    } else if constexpr (linearity_of<Op> != linearity::none) {
        return linear_tangents<Op, Record>(record, walk).run(tangent);
    } else {
        return tangent_by_going_back(record, walk, tangent);
    }
}

} // namespace tapegraph::detail
