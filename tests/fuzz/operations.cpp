#include <fuzz/operations.hpp>

#include <tapegraph/core/error.hpp>

namespace tapegraph::fuzz {

namespace {

std::vector<operation>& table() {
    static std::vector<operation> drawn = [] {
        std::vector<operation> all;
        const auto add = [&](const std::vector<operation>& part) {
            for (const operation& op : part) {
                if (op.weight == 0) continue; // for its rows alone
                if (op.domains.size() != op.types.size())
                    throw argument_error("operation '" + op.name + "' has not one domain per operand");
                all.push_back(op);
            }
        };
#define TG_ADD_FILE(file, text, drawn)                                                                                 \
    if (drawn) add(testing::file##_operations());
        TG_OPERATION_FILES(TG_ADD_FILE)
#undef TG_ADD_FILE
        add(testing::constant_operations());
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
