#pragma once

#include <tapegraph/io/onnx_import/walk.hpp>
#include <tapegraph/model/outputs.hpp>
#include <tapegraph/model/taped_program.hpp>
#include <tapegraph/model/variables.hpp>

/// A program of a file's graph, or of a part of it, and how it runs.

namespace tapegraph::io::onnx_import {

inline array array_of_tensor(const any_tensor& t, dtype type) {
    buffer_view v = t.outline_view();
    v.data = const_cast<void*>(t.read());
    return detail::array_of(v, type);
}
/// The same numbers in the element type that nodes have for it.
inline any_tensor in_carrier(const any_tensor& t, dtype type) {
    if (t.type() == type) return t;
    const array narrow = array_of_tensor(t, t.type());
    any_tensor wide(type, t.shape());
    for (std::int64_t i = 0; i < t.size(); ++i)
        if (type == dtype::i32)
            static_cast<std::int32_t*>(wide.overwrite())[i] = static_cast<std::int32_t>(narrow.integer(i));
        else
            static_cast<std::int64_t*>(wide.overwrite())[i] = narrow.integer(i);
    return wide;
}

struct program {
    std::unique_ptr<ir::traced_program> traced;
    std::vector<binding> bindings;
    std::vector<any_tensor> constants; ///< in the places of bindings; the store's list may grow meanwhile
    std::vector<dtype> types;          ///< of the outputs, as in the file
    tapegraph::detail::program_pool pool;

    void bind(std::vector<binding> own, const store& shared) {
        bindings = std::move(own);
        for (const binding& b : bindings)
            constants.push_back(b.of != nullptr ? any_tensor() : shared.constants[b.constant]);
    }
    /// The outputs, in the file's element types, of inputs in those of nodes.
    std::vector<any_tensor> run(const variable_list& weights, const std::vector<any_tensor>& x,
                                const random_state& random) {
        std::vector<any_tensor> results;
        if (types.empty()) return results;
        pool.with(traced->view(), [&](ir::program& run) {
            for (std::size_t i = 0; i < bindings.size(); ++i) {
                const binding& b = bindings[i];
                const any_tensor& from = b.of != nullptr ? weights[b.of->path].data() : constants[i];
                static std::byte nothing[1];
                run.set_variable(static_cast<int>(i), from.size() > 0 ? from.view_on(run.device()).data : nothing,
                                 from.content());
            }
            for (std::size_t i = 0; i < x.size(); ++i) run.set_input(static_cast<int>(i), x[i].view());
            tapegraph::detail::call_results made(run);
            run.run(random);
            for (std::size_t k = 0; k < types.size(); ++k) {
                const any_tensor result = made.take(static_cast<int>(k));
                results.push_back(result.type() == types[k] ? result : array_of_tensor(result, types[k]).tensor());
            }
        });
        return results;
    }
};

} // namespace tapegraph::io::onnx_import
