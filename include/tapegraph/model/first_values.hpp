#pragma once

#include <tapegraph/graph/lower.hpp>
#include <tapegraph/model/variables.hpp>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

/// Computes the initial values of a variable from what a trace records of it.

namespace tapegraph::detail {

/// "block/3/kernel"
template <class View>
std::string path_of_variable(const View& view, int i) {
    std::string path = path_of(view.scopes, view.variables[i].scope);
    if (!path.empty()) path += '/';
    return path.append(view.variables[i].name);
}

/// The functions that draw variables of each element type that occurs; null for types that do not.
struct first_value_functions {
    void (*of_float)(float*, const shape&, const initializer&, std::uint64_t, std::string_view) = nullptr;
    void (*of_double)(double*, const shape&, const initializer&, std::uint64_t, std::string_view) = nullptr;
    any_tensor (*project)(const constraint&, const any_tensor&) = nullptr; ///< applies a variable's constraint
};

/// The initial values of variable i. init::value_of draws those of the other variable again,
/// whatever that one's current value is.
template <class View>
any_tensor first_value(const View& view, int i, std::uint64_t seed, const first_value_functions& draw) {
    const ir::entry& e = view.nodes[view.variables[i].node];
    any_tensor data(e.type, shape(e.rank, view.pool.begin() + e.dims));
    while (static_cast<initializer_kind>(view.definitions[i].initializer) == initializer_kind::value_of)
        i = static_cast<int>(view.definitions[i].a);
    const ir::variable_definition& v = view.definitions[i];
    const initializer how{static_cast<initializer_kind>(v.initializer), v.a, v.b};
    if (how.kind == initializer_kind::values) {
        for (std::int64_t k = 0; k < data.size(); ++k) {
            const double value = std::bit_cast<double>(view.words[static_cast<int>(v.a) + static_cast<int>(k)]);
            if (e.type == dtype::f64)
                static_cast<double*>(data.overwrite())[k] = value;
            else
                static_cast<float*>(data.overwrite())[k] = static_cast<float>(value);
        }
        return data;
    }
    if (how.kind == initializer_kind::stored) { // of any element type; the graph of a file keeps them
        const void* const from =
            reinterpret_cast<const void*>(static_cast<std::uintptr_t>(view.words[static_cast<int>(v.a)]));
        if (data.size() > 0) std::memcpy(data.overwrite(), from, data.view().bytes());
        return data;
    }
    const std::string path = path_of_variable(view, i);
    if (e.type == dtype::f64)
        draw.of_double(static_cast<double*>(data.overwrite()), data.shape(), how, seed, path);
    else
        draw.of_float(static_cast<float*>(data.overwrite()), data.shape(), how, seed, path);
    return data;
}
template <class View>
any_tensor first_value(const View& view, int i, std::uint64_t seed) {
    return first_value(view, i, seed, {&initialize<float>, &initialize<double>});
}

} // namespace tapegraph::detail
