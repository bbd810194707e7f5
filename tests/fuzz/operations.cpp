#include <fuzz/operations.hpp>

#include <tapegraph/core/error.hpp>

namespace tapegraph::fuzz {

namespace {

std::vector<operation>& table() {
    static std::vector<operation> drawn = [] {
        std::vector<operation> all;
        for (const auto& part :
             {testing::arithmetic_operations(), testing::function_operations(), testing::elementwise_operations(),
              testing::activation_operations(), testing::selection_operations(), testing::reduction_operations(),
              testing::contraction_operations(), testing::convolution_operations(), testing::einsum_operations(),
              testing::pooling_operations(), testing::transposed_operations(), testing::movement_operations(),
              testing::slicing_operations(), testing::padding_operations(), testing::indexing_operations(),
              testing::ordering_operations(), testing::constant_operations()})
            for (const operation& op : part) {
                if (op.weight == 0) continue; // for its rows alone
                if (op.domains.size() != op.types.size())
                    throw argument_error("operation '" + op.name + "' has not one domain per operand");
                all.push_back(op);
            }
        return all;
    }();
    return drawn;
}

} // namespace

const std::vector<operation>& all_operations() { return table(); }

void add_operation(const operation& op) {
    for (operation& existing : table())
        if (existing.name == op.name) {
            existing = op;
            return;
        }
    table().push_back(op);
}

const operation& operation_named(const std::string& name) {
    for (const operation& op : table())
        if (op.name == name) return op;
    throw argument_error("random programs have no operation named '" + name + "'");
}

} // namespace tapegraph::fuzz
