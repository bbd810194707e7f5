#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

/// Error reports of functions that consist of several operations, for conditions that no single
/// operation sees. They are reported like those of operations: by the compiler in graph mode and as
/// shape_error in eager mode, with operands and source line.

namespace tapegraph::detail {

/// Always fails. `Texts::text(reason)` is a literal with the error.
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
