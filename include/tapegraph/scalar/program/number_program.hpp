#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/scalar/program/differentiation.hpp>
#include <tapegraph/scalar/program/interpreter.hpp>
#include <tapegraph/scalar/program/program_code.hpp>
#include <tapegraph/scalar/program/symbol_graph.hpp>
#include <tapegraph/scalar/structures.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph {

/// A comparison that has another answer at new inputs than it had when the program was recorded.
struct changed_branch {
    std::size_t comparison;  ///< of the program's comparisons, in order
    std::uint64_t statement; ///< of the recorded operations, counted from 1
    std::string text;        ///< `x < y`
    double left, right;      ///< what is compared now
    bool recorded;           ///< the answer when it was recorded
    std::size_t input = 0;   ///< of a batch, the input
};

/// Thrown where a program would go another way than the one that was recorded.
struct branch_error : error {
    branch_error(const std::string& what, changed_branch which) : error(what), branch(std::move(which)) {}
    changed_branch branch;
};

namespace scalars {
template <class T>
class program_builder;
} // namespace scalars

/// A function of numbers, recorded once (tg::record), as straight-line code for new inputs. Its derivatives are programs,
/// too. Programs do not change, are copied cheaply, and may run in several threads at once.
///
/// A program stands for the branches that were taken when it was recorded. Each comparison that was branched on is checked
/// in every run; where one has another answer, functions throw branch_error and what they have written is not to be used.
/// Inputs and results are in the order of the recorded function's.
template <class T = double>
class number_program {
public:
    /// The program of some nodes of a graph.
    number_program(std::shared_ptr<const scalars::symbol_graph<T>> graph, std::vector<std::uint32_t> results)
        : graph_(std::move(graph)),
          nodes_(std::move(results)),
          code_(std::make_shared<scalars::compiled_program<T>>(scalars::program_compiler<T>(*graph_, nodes_).take())) {}

    /// Numbers that a call takes.
    std::size_t inputs() const { return code_->inputs; }
    /// Numbers that a call returns.
    std::size_t results() const { return nodes_.size(); }
    /// How much a run executes, and the numbers that it keeps at once.
    std::size_t instructions() const { return code_->instructions.size() - 1; } // without the end
    /// Numbers that a call needs for itself.
    std::size_t slots() const { return code_->slots; }
    /// The comparisons that are checked.
    std::size_t comparisons() const { return graph_->guards().size(); }

    /// The results at x.
    std::vector<T> operator()(std::span<const T> x) const {
        std::vector<T> y(results());
        run(x, y);
        return y;
    }
    /// The same into y; nothing is allocated once a thread has run a program of this size.
    void run(std::span<const T> x, std::span<T> y) const {
        require(x.size(), inputs(), "run: inputs");
        require(y.size(), results(), "run: results");
        T* const slots = scalars::slots_of_thread<T>(code_->slots);
        if (const auto broken = run(slots, x)) refuse(branch_of(broken, 0));
        for (std::size_t i = 0; i < y.size(); ++i) y[i] = slots[code_->results[i]];
    }
    /// The result of a program that has one.
    T value(std::span<const T> x) const {
        T y;
        run(x, {&y, 1});
        return y;
    }
    /// The first comparison that has another answer at x; none if the program stands for x.
    std::optional<changed_branch> check(std::span<const T> x) const {
        require(x.size(), inputs(), "check: inputs");
        const auto broken = run(scalars::slots_of_thread<T>(code_->slots), x);
        if (!broken) return std::nullopt;
        return branch_of(broken, 0);
    }

    /// The results of `count` inputs in vector lanes: x has shape [count, inputs()], y [count, results()]. Functions like
    /// sin are the library's here, which differ from the standard library's in the last bits; results do not depend on
    /// an input's place. branch_error names the first input that takes another branch.
    void run_batch(std::size_t count, std::span<const T> x, std::span<T> y) const {
        batch(count, x, y, [this](std::size_t input, const scalars::broken_guard<T>& broken) {
            if (broken) refuse(branch_of(broken, input));
        });
    }
    /// The same without an exception: stands[i] is 1 if the program stands for input i, otherwise 0, and the results of i
    /// are not to be used.
    void run_batch(std::size_t count, std::span<const T> x, std::span<T> y, std::span<std::uint8_t> stands) const {
        require(stands.size(), count, "run_batch: flags");
        batch(count, x, y,
              [&](std::size_t input, const scalars::broken_guard<T>& broken) { stands[input] = broken ? 0 : 1; });
    }

    /// The derivatives of the one result by all inputs.
    number_program gradient() const { return reverse(false); }
    /// The result, then its derivatives.
    number_program with_gradient() const { return reverse(true); }
    /// The derivatives of all results by all inputs, [results(), inputs()], row by row.
    number_program jacobian() const;
    /// The second derivatives of the one result, [inputs(), inputs()].
    number_program hessian() const { return gradient().jacobian(); }
    /// Of inputs x and t, one after the other: the derivatives of all results along t.
    number_program jvp() const;
    /// Of inputs x and u: the derivatives of the results, weighted with u, by all inputs.
    number_program vjp() const;
    /// Of inputs x and v: the product of the one result's second derivatives with v.
    number_program hvp() const { return gradient().jvp(); }

    /// What was recorded, for transforms of programs (scalar/sparse).
    const std::shared_ptr<const scalars::symbol_graph<T>>& graph() const { return graph_; }
    /// The results' nodes in the graph.
    const std::vector<std::uint32_t>& nodes() const { return nodes_; }

private:
    static void require(std::size_t given, std::size_t expected, const char* what) {
        scalars::require_as_many(given, expected, (std::string("number_program::") + what).c_str());
    }
    scalars::broken_guard<T> run(T* slots, std::span<const T> x) const {
        std::copy(x.begin(), x.end(), slots);
        std::copy(code_->constants.begin(), code_->constants.end(), slots + x.size());
        return scalars::run_program(*code_, slots);
    }
    template <class Report>
    void batch(std::size_t count, std::span<const T> x, std::span<T> y, const Report& report) const {
        constexpr std::size_t lanes = static_cast<std::size_t>(scalars::program_lanes<T>);
        const std::size_t n = inputs(), m = results();
        require(x.size(), count * n, "run_batch: inputs");
        require(y.size(), count * m, "run_batch: results");
        T* const slots = scalars::slots_of_thread<T>(code_->slots * lanes);
        for (std::size_t i = 0; i < code_->constants.size(); ++i)
            std::fill_n(slots + (n + i) * lanes, lanes, code_->constants[i]);
        for (std::size_t first = 0; first < count; first += lanes) {
            const std::size_t used = std::min(lanes, count - first);
            for (std::size_t lane = 0; lane < lanes; ++lane) { // lanes without an input repeat the last
                const T* const from = x.data() + (first + std::min(lane, used - 1)) * n;
                for (std::size_t i = 0; i < n; ++i) slots[i * lanes + lane] = from[i];
            }
            scalars::broken_guard<T> broken[lanes];
            scalars::run_program_block(*code_, slots, broken);
            for (std::size_t lane = 0; lane < used; ++lane) {
                report(first + lane, broken[lane]);
                T* const to = y.data() + (first + lane) * m;
                for (std::size_t i = 0; i < m; ++i) to[i] = slots[code_->results[i] * lanes + lane];
            }
        }
    }

    changed_branch branch_of(const scalars::broken_guard<T>& broken, std::size_t input) const;
    [[noreturn, gnu::cold]] void refuse(changed_branch which) const;
    number_program reverse(bool with_value) const;

    std::shared_ptr<const scalars::symbol_graph<T>> graph_;
    std::vector<std::uint32_t> nodes_; ///< of the results
    std::shared_ptr<const scalars::compiled_program<T>> code_;
};

namespace scalars {

/// "0.25 < 0.5"
inline std::string comparison_text(std::string_view name, const std::string& left, const std::string& right) {
    constexpr std::pair<std::string_view, const char*> signs[]{{"less", "<"},    {"less_equal", "<="},
                                                               {"greater", ">"}, {"greater_equal", ">="},
                                                               {"equal", "=="},  {"not_equal", "!="}};
    for (const auto& [word, sign] : signs)
        if (word == name) return left + " " + sign + " " + right;
    return std::string(name) + "(" + left + ")";
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_results(const char* what, std::size_t results) {
    throw argument_error(std::string("number_program::") + what + ": the program has " + std::to_string(results) +
                         " results, where one is expected; take jacobian() or vjp()");
}

/// The number of pairs of nodes and inputs (of results and nodes) that carry a derivative: what a Jacobian by forward (by
/// reverse) mode computes.
template <class T>
std::pair<std::uint64_t, std::uint64_t> costs_of_jacobian(const symbol_graph<T>& graph,
                                                          const std::vector<std::uint32_t>& results) {
    const auto end = static_cast<std::uint32_t>(graph.size());
    std::uint64_t forward = 0, reverse = 0;
    const auto count = [](std::uint64_t& to) {
        return [&to](std::size_t, const std::vector<std::uint64_t>& masks) {
            for (const std::uint64_t mask : masks) to += static_cast<std::uint64_t>(std::popcount(mask));
        };
    };
    for_dependences(graph, end, count(forward));
    for_influences(graph, results, end, count(reverse));
    return {forward, reverse};
}

} // namespace scalars

template <class T>
changed_branch number_program<T>::branch_of(const scalars::broken_guard<T>& broken, std::size_t input) const {
    const scalars::program_guard& guard = graph_->guards()[broken.guard];
    const double left = static_cast<double>(broken.left), right = static_cast<double>(broken.right);
    return {broken.guard,
            guard.statement,
            scalars::comparison_text((*graph_)[guard.condition].operation->name, number_text(broken.left),
                                     number_text(broken.right)),
            left,
            right,
            guard.expected,
            input};
}

template <class T>
void number_program<T>::refuse(changed_branch which) const {
    std::string text = "tg::number_program: comparison " + std::to_string(which.comparison) + " (statement " +
                       std::to_string(which.statement) + "), " + which.text + ", is " +
                       (which.recorded ? "false, and was true" : "true, and was false") +
                       " when the program was recorded";
    if (which.input != 0) text += "; input " + std::to_string(which.input) + " of the batch";
    throw branch_error(text + "; record the function at this input", std::move(which));
}

template <class T>
number_program<T> number_program<T>::reverse(bool with_value) const {
    if (results() != 1) scalars::refuse_results("gradient", results());
    auto graph = std::make_shared<scalars::symbol_graph<T>>(*graph_, false);
    scalars::graph_differentiation<T> derivatives(*graph);
    std::vector<std::uint32_t> adjoints = derivatives.seeds();
    adjoints[nodes_[0]] = graph->constant(T(1));
    derivatives.backward(adjoints);
    std::vector<std::uint32_t> nodes;
    if (with_value) nodes.push_back(nodes_[0]);
    for (const std::uint32_t x : graph->inputs())
        nodes.push_back(adjoints[x] != 0 ? adjoints[x] : graph->constant(T(0)));
    return {std::move(graph), std::move(nodes)};
}

template <class T>
number_program<T> number_program<T>::jacobian() const {
    auto graph = std::make_shared<scalars::symbol_graph<T>>(*graph_, false);
    scalars::graph_differentiation<T> derivatives(*graph);
    const std::size_t n = inputs(), m = results();
    std::vector<std::uint32_t> nodes(m * n, graph->constant(T(0)));
    const std::uint32_t one = graph->constant(T(1));
    const auto [forward, backward] = scalars::costs_of_jacobian(*graph_, nodes_);
    if (forward <= backward) {
        for (std::size_t j = 0; j < n; ++j) {
            std::vector<std::uint32_t> tangents = derivatives.seeds();
            tangents[graph->inputs()[j]] = one;
            derivatives.forward(tangents);
            for (std::size_t i = 0; i < m; ++i)
                if (const std::uint32_t t = tangents[nodes_[i]]) nodes[i * n + j] = t;
        }
    } else {
        for (std::size_t i = 0; i < m; ++i) {
            std::vector<std::uint32_t> adjoints = derivatives.seeds();
            adjoints[nodes_[i]] = one;
            derivatives.backward(adjoints);
            for (std::size_t j = 0; j < n; ++j)
                if (const std::uint32_t a = adjoints[graph->inputs()[j]]) nodes[i * n + j] = a;
        }
    }
    return {std::move(graph), std::move(nodes)};
}

template <class T>
number_program<T> number_program<T>::jvp() const {
    auto graph = std::make_shared<scalars::symbol_graph<T>>(*graph_, false);
    scalars::graph_differentiation<T> derivatives(*graph);
    std::vector<std::uint32_t> tangents = derivatives.seeds(), nodes;
    for (std::size_t i = 0; i < inputs(); ++i) tangents[graph_->inputs()[i]] = graph->add_input();
    derivatives.forward(tangents);
    for (const std::uint32_t y : nodes_) nodes.push_back(tangents[y] != 0 ? tangents[y] : graph->constant(T(0)));
    return {std::move(graph), std::move(nodes)};
}

template <class T>
number_program<T> number_program<T>::vjp() const {
    auto graph = std::make_shared<scalars::symbol_graph<T>>(*graph_, false);
    scalars::graph_differentiation<T> derivatives(*graph);
    std::vector<std::uint32_t> adjoints = derivatives.seeds(), nodes;
    for (const std::uint32_t y : nodes_) derivatives.add(adjoints[y], graph->add_input()); // a result may occur twice
    derivatives.backward(adjoints);
    for (const std::uint32_t x : graph_->inputs())
        nodes.push_back(adjoints[x] != 0 ? adjoints[x] : graph->constant(T(0)));
    return {std::move(graph), std::move(nodes)};
}

} // namespace tapegraph
