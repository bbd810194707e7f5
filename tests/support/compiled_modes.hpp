#pragma once

#include <support/graph_runner.hpp>

/// One function compiled into a graph, and run eagerly; the results must be the same bits.

namespace tapegraph::testing {

/// F compiled once for specs, compared with itself run eagerly. F is a generic function without captures. For what only a compiled graph
/// can prove: its fused kernels, and that it is the graph that is made at run time (both_modes), with which all else is tested.
template <class F, class... Specs>
class compiled_modes {
public:
    compiled_modes(const F&, Specs...) {}

    /// Runs both on the same arguments and says what differs.
    std::string compare(const tensor<typename Specs::element_type>&... x) {
        results_ = flattened(graph_(x...));
        return difference(results_, flattened(eager_(x...)));
    }
    double distance(const tensor<typename Specs::element_type>&... x) {
        results_ = flattened(graph_(x...));
        return distance_between(results_, flattened(eager_(x...)));
    }
    const std::vector<any_tensor>& results() const { return results_; }

private:
    graph_function<F, Specs...> graph_;
    eager_function<F, Specs...> eager_;
    std::vector<any_tensor> results_;
};

} // namespace tapegraph::testing
