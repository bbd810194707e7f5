#pragma once

#include <tapegraph/eager/operation_tangent.hpp>
#include <tapegraph/eager/tape.hpp>
#include <tapegraph/eager/tensor.hpp>

#include <tuple>
#include <vector>

/// Tape records of operations that are not elementwise.

namespace tapegraph::detail {

/// The tape's record of an operation that is not elementwise.
template <class Op, class Result, class... Args>
struct operation_record : tape_record {
    typename Op::attributes attributes;
    std::tuple<Args...> inputs;
    Result output;

    static void destroy(tape_record& base) { static_cast<operation_record&>(base).~operation_record(); }
    static void backward(tape_record& base, backward_pass& walk, const any_tensor& adjoint) {
        auto& self = static_cast<operation_record&>(base);
        const Result dy(adjoint);
        const auto every_flow = [&](const auto& shared) {
            [&]<std::size_t... I>(std::index_sequence<I...>) { (self.template flow<I>(walk, dy, shared), ...); }
            (std::index_sequence_for<Args...>{});
        };
        if constexpr (shares_vjp<Op, typename Op::attributes, Result, Args..., Result>)
            std::apply(
                [&](const auto&... in) {
                    if ((walk.wants(in) || ...)) every_flow(Op::shared(self.attributes, dy, in..., self.output));
                },
                self.inputs);
        else
            every_flow(nullptr);
    }

    static bool jvp(tape_record& base, const jvp_pass& walk, any_tensor& tangent) {
        return operation_tangent<Op>(static_cast<operation_record&>(base), walk, tangent);
    }

private:
    template <std::size_t I, class Shared>
    void flow(backward_pass& walk, const Result& adjoint, [[maybe_unused]] const Shared& shared) {
        const auto& input = std::get<I>(inputs);
        if (!walk.wants(input)) return;
        // Integers and bool have no derivative, so their vjps need not even compile.
        using element = typename std::remove_cvref_t<decltype(input)>::element_type;
        if constexpr (ir::detail::is_floating(dtype_of<element>)) {
            if constexpr (has_indexed_vjp<Op, int(I), typename Op::attributes, Result, Args..., Result>)
                walk.add(input, eval(std::apply(
                                    [&](const auto&... in) {
                                        if constexpr (std::is_null_pointer_v<Shared>)
                                            return Op::template vjp<int(I)>(attributes, adjoint, in..., output);
                                        else
                                            return Op::template flow<int(I)>(attributes, shared, adjoint, in...,
                                                                             output);
                                    },
                                    inputs)));
        }
    }
};

/// The tape's record of an operation with any number of operands. It keeps their shapes; no derivative needs their values.
template <class Op, class T>
struct list_record : tape_record {
    typename Op::attributes attributes;
    std::vector<any_tensor> inputs;
    list<shape> shapes;

    static void destroy(tape_record& base) { static_cast<list_record&>(base).~list_record(); }
    static void backward(tape_record& base, backward_pass& walk, const any_tensor& adjoint) {
        auto& self = static_cast<list_record&>(base);
        for (int k = 0; k < self.shapes.size(); ++k) {
            const any_tensor& input = self.inputs[static_cast<std::size_t>(k)];
            if (walk.wants(input))
                walk.add(input,
                         Op::vjp(self.attributes, tensor<T>(adjoint), self.shapes.begin(), self.shapes.size(), k));
        }
    }
    // These operations join their operands' elements, so the tangent is the operation applied to
    // the tangents.
    static_assert(linearity_of<Op> == linearity::joint, "forward mode of an operation of any number of operands");
    static bool jvp(tape_record& base, const jvp_pass& walk, any_tensor& tangent) {
        auto& self = static_cast<list_record&>(base);
        if constexpr (!ir::detail::is_floating(dtype_of<T>)) return false;
        std::vector<tensor<T>> parts;
        bool any = false;
        for (int k = 0; k < self.shapes.size(); ++k) {
            const any_tensor* const found = walk.find(self.inputs[static_cast<std::size_t>(k)]);
            any = any || found != nullptr;
            parts.push_back(found != nullptr ? tensor<T>(*found) : zeros<T>(self.shapes[k]));
        }
        if (any)
            tangent = tapegraph::invoke_list<Op>(self.attributes, std::source_location{}, parts.data(),
                                                 static_cast<int>(parts.size()));
        return any;
    }
};

template <class T>
tensor<T> outlined(const tensor<T>& t, bool whole) {
    return whole ? t : tensor<T>(t.outline());
}

} // namespace tapegraph::detail
