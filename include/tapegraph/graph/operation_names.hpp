#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/kernel_registry.hpp>
#include <tapegraph/ops/operation_list.hpp>

#include <string_view>

/// Names of operations, for files that hold a graph: a name and a number that tells operations of
/// one name apart. Both are part of the format of such files (docs/onnx.md).

namespace tapegraph::ir {

/// An operation as files name it. Of the library's operations, `variant` is the number of earlier
/// ones with this name in ops/operation_list.hpp; of others it is their own (kernel_registry.hpp).
struct operation_name {
    std::string_view name;
    int variant = 0;
    const operation* op = nullptr; ///< null: there is none
};

/// The operation of this name; `op` is null if this program has none, or several.
operation_name operation_named(std::string_view name, int variant);
/// The name of an operation; `op` is null if that name would not lead back to it.
operation_name name_of_operation(const operation* op);

#if TG_DEFINES(registry)

namespace detail {

template <class Op>
consteval operation_name named_operation() {
    return {Op::name, 0, &descriptor_of<Op>};
}

#define TG_NAMED(...) named_operation<__VA_ARGS__>(),
#define TG_NAMED_AFTER_1(a, ...) TG_NAMED(__VA_ARGS__)
#define TG_NAMED_AFTER_2(a, b, ...) TG_NAMED(__VA_ARGS__)
#define TG_NAMED_AFTER_4(a, b, c, d, ...) TG_NAMED(__VA_ARGS__)
#define TG_NAMED_AFTER_5(a, b, c, d, e, ...) TG_NAMED(__VA_ARGS__)
inline const list<operation_name>& library_operations() {
    using namespace runtime;
    static const list<operation_name> all = [] {
        list<operation_name> made;
        for (const operation_name& each : {TG_ELEMENTWISE_OPERATIONS(TG_NAMED) TG_TYPED_ELEMENTWISE_OPERATIONS(
                 TG_NAMED_AFTER_1) TG_VIEW_OPERATIONS(TG_NAMED) TG_FORMULA_REDUCTIONS(TG_NAMED_AFTER_2)
                                               TG_WHOLE_REDUCTIONS(TG_NAMED_AFTER_4) TG_OPERATIONS(TG_NAMED_AFTER_5)}) {
            operation_name numbered = each;
            for (int i = 0; i < made.size(); ++i) numbered.variant += made[i].name == each.name ? 1 : 0;
            made.push_back(numbered);
        }
        return made;
    }();
    return all;
}
#undef TG_NAMED
#undef TG_NAMED_AFTER_1
#undef TG_NAMED_AFTER_2
#undef TG_NAMED_AFTER_4
#undef TG_NAMED_AFTER_5

} // namespace detail

TG_DEFINITION operation_name operation_named(std::string_view name, int variant) {
    const list<operation_name>& library = detail::library_operations();
    for (int i = 0; i < library.size(); ++i)
        if (library[i].name == name && library[i].variant == variant) return library[i];
    const operation* op = waiting_registration::named(name, variant);
    if (op == nullptr && variant == 0) op = kernel_registry::instance().named(name);
    return {name, variant, op};
}
TG_DEFINITION operation_name name_of_operation(const operation* op) {
    const list<operation_name>& library = detail::library_operations();
    for (int i = 0; i < library.size(); ++i)
        if (library[i].op == op) return library[i];
    return operation_named(op->name, waiting_registration::variant_of(op));
}

#endif

} // namespace tapegraph::ir
