#pragma once

#include <tapegraph/scalar/program/symbol.hpp>
#include <tapegraph/scalar/program/symbol_functions.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Derivatives of recorded programs, which are operations added to them: the operations' own vjps on symbols, backward
/// from results or forward from inputs. Node 0 stands for a derivative that is 0 whatever the inputs are.

namespace tapegraph::scalars {

template <class T>
class graph_differentiation {
public:
    /// Adds to `graph` the derivatives of its nodes before `end`.
    explicit graph_differentiation(symbol_graph<T>& graph)
        : graph_(graph), scope_(graph), end_(static_cast<std::uint32_t>(graph.size())) {}

    /// Carries seeds of nodes back to all nodes: `adjoints`, of as many nodes as there were, and only of those that
    /// depend on an input.
    void backward(std::vector<std::uint32_t>& adjoints) {
        const std::vector<bool> moves = depending_on_inputs();
        std::vector<bool> selected(end_, false); // adjoints that are 0 where a condition took another operand
        for (std::uint32_t at = end_; at-- > 1;) {
            if (adjoints[at] == 0 || !moves[at] || graph_[at].operation == nullptr) continue;
            const auto n = graph_[at];
            // The operand that comes last in the graph comes last here, too, since its adjoint is what is needed next.
            const int operands = n.operation->operands, later = operands == 2 && n.operand[0] > n.operand[1] ? 1 : 0;
            for (int i = 0; i < operands; ++i) {
                const int k = later == 1 ? 1 - i : i;
                const std::uint32_t x = n.operand[static_cast<std::size_t>(k)];
                if (!n.operation->differentiable[static_cast<std::size_t>(k)] || !moves[x]) continue;
                const std::uint32_t amount = contribution(at, k, adjoints[at], selected[at]);
                selected[x] = selected[x] || selected[at] || is_choice(amount);
                add(adjoints[x], amount);
            }
        }
    }
    /// Carries seeds of inputs forward to all nodes.
    void forward(std::vector<std::uint32_t>& tangents) {
        for (std::uint32_t at = 1; at < end_; ++at) {
            const auto n = graph_[at];
            if (n.operation == nullptr) continue;
            for (int k = 0; k < n.operation->operands; ++k) {
                const std::uint32_t x = n.operand[static_cast<std::size_t>(k)];
                if (!n.operation->differentiable[static_cast<std::size_t>(k)] || tangents[x] == 0) continue;
                add(tangents[at], contribution(at, k, tangents[x], false));
            }
        }
    }
    std::vector<std::uint32_t> seeds() const { return std::vector<std::uint32_t>(end_, 0); }
    void add(std::uint32_t& to, std::uint32_t amount) {
        if (amount == 0) return;
        to = to == 0 ? amount : graph_.template operation<add_op>(to, amount);
    }

private:
    std::vector<bool> depending_on_inputs() const {
        std::vector<bool> moves(end_, false);
        for (const std::uint32_t at : graph_.inputs()) moves[at] = true;
        for (std::uint32_t at = 1; at < end_; ++at) {
            const auto& n = graph_[at];
            if (n.operation == nullptr) continue;
            for (std::size_t k = 0; k < n.operation->operands; ++k)
                if (n.operation->differentiable[k] && moves[n.operand[k]]) moves[at] = true;
        }
        return moves;
    }
    symbol<T> symbol_at(std::uint32_t at) const {
        if (at == 0) return {};
        if (graph_.is_constant(at)) return {graph_.constant_value(at), 0, 0};
        return {T(0), at, graph_.number()};
    }
    bool is_choice(std::uint32_t at) const {
        return graph_[at].operation != nullptr && graph_[at].operation->code == program_code::choose;
    }
    // seed times the derivative of node `at` by its operand k; 0 if that is 0 for all inputs. A product's slope is
    // infinite only where a value is, which is no derivative of a function that selects another operand there.
    std::uint32_t contribution(std::uint32_t at, int k, std::uint32_t seed, bool selected) {
        const auto n = graph_[at];
        const operation_row<T>& op = *n.operation;
        const std::array<symbol<T>, 3> x{symbol_at(n.operand[0]), symbol_at(n.operand[1]), symbol_at(n.operand[2])};
        const symbol<T> slope = op.slope(k, symbol_at(seed), x.data(), symbol_at(at));
        if (slope.at == 0) return slope.number == T(0) ? 0 : graph_.constant(slope.number);
        const bool kept = op.zero == zero_seed::is_kept ||
                          (selected && op.code == program_code::multiply && !graph_.is_constant(n.operand[0]) &&
                           !graph_.is_constant(n.operand[1])) ||
                          (op.zero == zero_seed::is_kept_unless_number && !graph_.is_constant(n.operand[1]));
        return kept ? graph_.template operation<unless_zero_op>(seed, slope.at) : slope.at;
    }

    symbol_graph<T>& graph_;
    active_graph_scope<T> scope_;
    std::uint32_t end_;
};

/// Which inputs each of some nodes depends on through derivatives, 64 inputs at a time: see(first input, masks of nodes).
template <class T, class See>
void for_dependences(const symbol_graph<T>& graph, std::uint32_t end, const See& see) {
    const std::size_t inputs = graph.inputs().size();
    std::vector<std::uint64_t> masks(end);
    for (std::size_t first = 0; first < inputs; first += 64) {
        std::fill(masks.begin(), masks.end(), 0);
        for (std::size_t i = first; i < inputs && i < first + 64; ++i)
            masks[graph.inputs()[i]] = std::uint64_t{1} << (i - first);
        for (std::uint32_t at = 1; at < end; ++at) {
            const auto& n = graph[at];
            if (n.operation == nullptr) continue;
            std::uint64_t mask = 0;
            for (std::size_t k = 0; k < n.operation->operands; ++k)
                if (n.operation->differentiable[k]) mask |= masks[n.operand[k]];
            masks[at] = mask;
        }
        see(first, masks);
    }
}
/// The other way: which of the nodes `results` each node is needed by, 64 results at a time.
template <class T, class See>
void for_influences(const symbol_graph<T>& graph, const std::vector<std::uint32_t>& results, std::uint32_t end,
                    const See& see) {
    std::vector<std::uint64_t> masks(end);
    for (std::size_t first = 0; first < results.size(); first += 64) {
        std::fill(masks.begin(), masks.end(), 0);
        for (std::size_t i = first; i < results.size() && i < first + 64; ++i)
            masks[results[i]] |= std::uint64_t{1} << (i - first);
        for (std::uint32_t at = end; at-- > 1;) {
            const auto& n = graph[at];
            if (n.operation == nullptr || masks[at] == 0) continue;
            for (std::size_t k = 0; k < n.operation->operands; ++k)
                if (n.operation->differentiable[k]) masks[n.operand[k]] |= masks[at];
        }
        see(first, masks);
    }
}

} // namespace tapegraph::scalars
