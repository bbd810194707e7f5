#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

/// Functions made of several operations check what no single one of them sees. What does not fit is reported as the
/// operations report it: by the compiler in graph mode and as shape_error in eager mode, with operands and place.

namespace tapegraph::detail {

/// Never succeeds. `Texts::text(reason)` is a literal that says what does not fit.
template <class Texts, int Arity>
struct refused_op {
    static constexpr std::string_view name = "refused";
    static constexpr operation_kind kind = operation_kind::view; // no kernel
    static constexpr int arity = Arity;
    struct attributes {
        std::int64_t reason = 0;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[0].dims;
        io.fail(Texts::text(a.reason));
    }
};

template <class Texts, tensor_like... Args>
constexpr auto refuse(std::int64_t reason, std::source_location where, const Args&... args) {
    return invoke<refused_op<Texts, static_cast<int>(sizeof...(Args))>>({reason}, nullptr, where, args...);
}

} // namespace tapegraph::detail
