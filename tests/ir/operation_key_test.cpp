#include <support/builders.hpp>

#include <doctest/doctest.h>

#include <type_traits>
#include <utility>

// The way from the address of a descriptor back to the type of its operation is a friend function that is declared by
// operation_key and defined where the operation is first used. Compilers may come to differ in that (CWG 2118), so this asks
// them about every node of a program and its gradient, about operations of a user, and twice.

namespace operation_key_test {

namespace tg = tapegraph;
using namespace builders;
using tg::ir::descriptor_of;
using tg::ir::operation_type;

namespace {

// Two operations of a user that differ in nothing but their type.
struct twice_op : tg::map_op<1> {
    static constexpr std::string_view name = "twice";
    template <class V>
    static constexpr V value(V x) {
        return x + x;
    }
    static constexpr auto vjp(auto dy, auto, auto) { return dy + dy; }
};
struct other_op : tg::map_op<1> {
    static constexpr std::string_view name = "twice";
    template <class V>
    static constexpr V value(V x) {
        return x + x;
    }
    static constexpr auto vjp(auto dy, auto, auto) { return dy + dy; }
};

struct program {
    static constexpr void build(trace& t) {
        const node x = input(t, "x", {4, 3}), w = variable(t, "w", {3, 2});
        const node h = relu(matmul(x, w));
        const node y = tg::apply<twice_op>(h) + tg::apply<other_op>(tg::softmax(h)) * tg::where(h > 0.5, exp(h), 1.0);
        const node loss = sum(tg::concat(y, tg::transpose(tg::reshape(y, {2, 4})), 1));
        output(t, "loss", loss);
        const tg::list<int> gradient = tg::ir::gradient(t, loss.id(), {w.id()});
        output(t, "dw", node(&t, gradient[0]));
    }
};
using stage = tg::ir::traced_stage<program>;

template <const tg::ir::operation* Record>
constexpr bool maps_back() {
    if constexpr (Record->kind == tg::operation_kind::leaf) { // no kernel ever asks for its type
        return true;
    } else {
        using op = operation_type<Record>;
        return &descriptor_of<op> == Record && op::name == Record->name && std::is_same_v<operation_type<Record>, op>;
    }
}
template <std::size_t... I>
constexpr bool all_map_back(std::index_sequence<I...>) {
    return (maps_back<stage::value.nodes[I].op>() && ...);
}

} // namespace

TEST_CASE("operation_key: every node of a program names the type of its operation") {
    constexpr int nodes = stage::value.used.nodes;
    static_assert(nodes > 25);
    static_assert(all_map_back(std::make_index_sequence<nodes>()));
}

TEST_CASE("operation_key: operations that differ in their type alone stay two") {
    static_assert(&descriptor_of<twice_op> != &descriptor_of<other_op>);
    static_assert(std::is_same_v<operation_type<&descriptor_of<twice_op>>, twice_op>);
    static_assert(std::is_same_v<operation_type<&descriptor_of<other_op>>, other_op>);
}

} // namespace operation_key_test
