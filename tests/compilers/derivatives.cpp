#include <tapegraph/ops/operation_list.hpp>
#include <tapegraph/tapegraph.hpp>

/// Whether the compiler finds the derivatives of the library's operations on the nodes of a graph
/// that it finds on tensors. A vjp's return type is deduced, which instantiates the descriptors of
/// the operations that it calls, and those ask whether these have a vjp. clang answers no about the
/// one whose type is being deduced, keeps that answer, and the operation has no derivative in any
/// graph. So no operation may inherit or call another's vjp, unless that one calls no third.
///
/// Compiled, not run, as the component's part `operations` (tests/compilers/CMakeLists.txt).

namespace tapegraph {
namespace {

template <class Op, int I, class Handle, std::size_t... K>
constexpr bool found(std::index_sequence<K...>) {
    return detail::has_indexed_vjp<Op, I, typename Op::attributes, Handle, std::enable_if_t<K == K, Handle>..., Handle>;
}
template <class Op, int I>
constexpr bool found_on_nodes() {
    return found<Op, I, ir::node>(std::make_index_sequence<static_cast<std::size_t>(Op::arity)>{});
}
template <class Op, int I>
constexpr bool found_on_tensors() {
    return found<Op, I, tensor<double>>(std::make_index_sequence<static_cast<std::size_t>(Op::arity)>{});
}

template <class Op, int I>
struct derivative_of_operand {
    static_assert(found_on_nodes<Op, I>() == found_on_tensors<Op, I>(), "the operation's derivative is lost on nodes");
    static constexpr bool agrees = true;
};
template <class Op, int... I>
constexpr bool agrees(std::integer_sequence<int, I...>) {
    return (derivative_of_operand<Op, I>::agrees && ...);
}
template <class Op>
constexpr bool operation_agrees() {
    if constexpr (Op::arity > 0) return agrees<Op>(std::make_integer_sequence<int, Op::arity>{});
    return true;
}

// As where a program or the component names them, in the order of their list.
#define TG_BOUND(...) static_assert(ir::operation_binding<__VA_ARGS__>::bound);
#define TG_BOUND_OPERATION(part, types, device_part, device_types, tensors, ...) TG_BOUND(__VA_ARGS__)
TG_VIEW_OPERATIONS(TG_BOUND)
TG_OPERATIONS(TG_BOUND_OPERATION)

#define TG_CHECKED(...) static_assert(operation_agrees<__VA_ARGS__>());
#define TG_CHECKED_OPERATION(part, types, device_part, device_types, tensors, ...) TG_CHECKED(__VA_ARGS__)
TG_VIEW_OPERATIONS(TG_CHECKED)
TG_OPERATIONS(TG_CHECKED_OPERATION)

} // namespace
} // namespace tapegraph
