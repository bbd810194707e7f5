#pragma once

#include <tapegraph/eager/forward.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/expr/apply.hpp>
#include <tapegraph/graph/gradient.hpp>

#include <optional>
#include <tuple>

/// Forward mode through operations that are not elementwise. A record has `attributes`, `inputs` (a tuple) and `output`.

namespace tapegraph::detail {

/// A vjp is linear in the adjoint: recorded for a placeholder of the value's shape and pulled back, it gives its transpose,
/// here applied to the tangent of one operand. `vjp(adjoint)` is what flows to that operand.
template <class Result, class Vjp>
std::optional<Result> transposed_vjp(const shape& of_value, const any_tensor& tangent, const Vjp& vjp) {
    tape_storage& tape = tape_storage::instance();
    auto adjoint = zeros<typename Result::element_type>(of_value);
    const int first = tape.length();
    tape.start();
    adjoint.set_place(tape.watch());
    const auto pulled = vjp(adjoint);
    tape.close(true);
    sweep back(tape.length());
    std::optional<Result> found;
    if (back.wants(pulled)) {
        back.add(pulled, tangent);
        std::vector<char> keep(static_cast<std::size_t>(tape.length()));
        keep[static_cast<std::size_t>(first)] = 1;
        back.run(pulled.place().index, first, keep);
        if (const any_tensor* const at = back.find(adjoint.place())) found = Result(*at);
    }
    if (!tape.recording()) tape.clear(first);
    return found;
}

template <class Op, class Record>
class operation_tangents {
public:
    operation_tangents(const Record& record, const forward_sweep& walk) : self_(record), walk_(walk) {}

    bool run(any_tensor& tangent) const { return run(tangent, std::make_index_sequence<std::tuple_size_v<inputs>>{}); }

private:
    using inputs = std::remove_cvref_t<decltype(std::declval<Record>().inputs)>;
    using result = std::remove_cvref_t<decltype(std::declval<Record>().output)>;
    template <std::size_t I>
    using input = std::tuple_element_t<I, inputs>;
    template <class Handle>
    static constexpr bool differentiable_handle = ir::detail::is_floating(dtype_of<typename Handle::element_type>);

    template <std::size_t... I>
    bool run(any_tensor& tangent, std::index_sequence<I...>) const {
        bool any = false;
        if constexpr (!differentiable_handle<result>) {
            // positions and answers
        } else if constexpr (linearity_of<Op> == linearity::joint) {
            any = (... || (walk_.find(std::get<I>(self_.inputs)) != nullptr));
            if (any) tangent = applied(inputs(direction<I>()...));
        } else {
            const auto term = [&](const std::optional<result>& t) {
                if (!t) return;
                tangent = any ? walk_.kernels.add(tangent, *t) : any_tensor(*t);
                any = true;
            };
            (term(along<I>()), ...);
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
    // What stands for operand I when all of them are replaced by their tangents.
    template <std::size_t I>
    input<I> direction() const {
        const input<I>& at = std::get<I>(self_.inputs);
        if constexpr (!differentiable_handle<input<I>>) {
            return at;
        } else {
            const any_tensor* const found = walk_.find(at);
            return found != nullptr ? input<I>(*found) : zeros<typename input<I>::element_type>(at.shape());
        }
    }
    // What the tangent of operand I alone contributes.
    template <std::size_t I>
    std::optional<result> along() const {
        const any_tensor* const found = walk_.find(std::get<I>(self_.inputs));
        if (found == nullptr) return {};
        inputs operands = self_.inputs;
        if constexpr (linearity_of<Op> == linearity::each) {
            std::get<I>(operands) = input<I>(*found);
            return applied(operands);
        } else {
            return transposed<I>(*found, operands);
        }
    }
    template <std::size_t I>
    std::optional<result> transposed(const any_tensor& tangent, inputs& operands) const {
        if (!tape_storage::instance().recording()) // derivatives by the operands are of no interest then
            std::apply([](auto&... each) { (each.set_place({}), ...); }, operands);
        return transposed_vjp<result>(self_.output.shape(), tangent, [&](const result& adjoint) {
            return std::apply(
                [&](const auto&... in) {
                    if constexpr (requires { Op::template vjp<int(I)>(self_.attributes, adjoint, in..., self_.output); })
                        return input<I>(eval(Op::template vjp<int(I)>(self_.attributes, adjoint, in..., self_.output)));
                    else
                        return input<I>(); // no derivative passes
                },
                operands);
        });
    }

    const Record& self_;
    const forward_sweep& walk_;
};

/// The tangent of what a record holds: linear operations are applied to tangents, others are known by their vjp. False
/// when no operand has a tangent.
template <class Op, class Record>
bool operation_tangent(const Record& record, const forward_sweep& walk, any_tensor& tangent) {
    return operation_tangents<Op, Record>(record, walk).run(tangent);
}

} // namespace tapegraph::detail
