#pragma once

#include <tapegraph/eager/any_tensor.hpp>
#include <tapegraph/graph/program.hpp>

#include <functional>
#include <memory>
#include <vector>

/// Graphs that tests make at run time: differentiated, simplified, fused, planned and run by the library's own functions. How a graph
/// is made is a function object and element types are values, so that a test instantiates its formulas once, on nodes, and nothing else.

namespace tapegraph::testing {

class run_time_graph {
public:
    /// `build` traces; what it leaves in the trace's outputs is computed. Throws shape_error for what does not fit together.
    explicit run_time_graph(const std::function<void(ir::trace&)>& build);
    ~run_time_graph();
    run_time_graph(run_time_graph&&) noexcept;

    /// The outputs for these inputs, by ir::program: bound, planned, in one arena.
    std::vector<any_tensor> run(const std::vector<any_tensor>& inputs, const random_state& random = {});
    const ir::program_view& view() const;
    ir::program& program();

private:
    struct parts;
    std::unique_ptr<parts> parts_;
};

} // namespace tapegraph::testing
