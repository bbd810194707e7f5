#pragma once

#include <tapegraph/io/onnx/graph.hpp>

/// Run-time extents as values of the graph, and shapes composed of them.

namespace tapegraph::onnx {

inline std::string graph::extent_tensor(std::int64_t extent) {
    if (!is_symbolic(extent)) return integers({extent});
    std::string& name = known_["?" + std::to_string(extent)];
    if (!name.empty()) return name;
    const auto atom_tensor = [&](int index) {
        const extent_table::atom& atom = t.extents.atoms[index];
        if (atom.divisor != 0) return emit("Div", {extent_tensor(atom.dividend), integers({atom.divisor})});
        for (const ir::input_entry& input : t.inputs)
            for (int axis = 0; axis < rank(input.node); ++axis)
                if (t.extents.symbol_of(extent_of(input.node, axis)) == index)
                    return emit("Shape", {std::string(input.name)},
                                attributes().set("start", axis).set("end", axis + 1));
        return std::string();
    };
    std::string sum;
    const extent_table::polynomial p = t.extents.polynomials[tapegraph::detail::symbolic_index(extent)];
    for (int i = p.first; i < p.first + p.count; ++i) {
        const extent_table::monomial term = t.extents.monomials[i];
        std::string product = term.coefficient == 1 && term.atoms != 0 ? std::string() : integers({term.coefficient});
        for (std::uint64_t rest = term.atoms; rest != 0; rest <<= extent_table::atom_bits) {
            const std::string factor = atom_tensor(extent_table::first_atom(rest));
            product = product.empty() ? factor : emit("Mul", {product, factor});
        }
        sum = sum.empty() ? product : emit("Add", {sum, product});
    }
    return name = sum;
}

inline std::string graph::shape_tensor(const std::vector<std::int64_t>& extents) {
    if (std::none_of(extents.begin(), extents.end(), is_symbolic)) return integers(extents);
    std::vector<std::string> parts;
    for (const std::int64_t e : extents) parts.push_back(extent_tensor(e));
    return parts.size() == 1 ? parts[0] : emit("Concat", parts, attributes().set("axis", 0));
}

inline std::string graph::reshape(const std::string& x, const std::vector<std::int64_t>& from,
                                  const std::vector<std::int64_t>& to) {
    if (from == to) return x;
    // 0 means the operand's extent at the same position, -1 the remaining one.
    std::vector<std::int64_t> target = to;
    int open = 0;
    for (std::size_t i = 0; i < to.size(); ++i) {
        if (!is_symbolic(to[i])) continue;
        target[i] = i < from.size() && from[i] == to[i] ? 0 : -1;
        open += target[i] < 0 ? 1 : 0;
    }
    const bool empty = std::count(to.begin(), to.end(), 0) > 0;
    return emit("Reshape", {x, open > 1 || empty ? shape_tensor(to) : integers(target)},
                empty ? attributes().set("allowzero", 1) : attributes());
}

} // namespace tapegraph::onnx
