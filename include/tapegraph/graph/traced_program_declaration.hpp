#pragma once

#include <tapegraph/graph/kernel_registry.hpp>
#include <tapegraph/graph/lower.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// Declares the class that traces a graph at run time and lowers it. graph/traced_program.hpp
/// defines it.

namespace tapegraph::ir {

struct scan_cells;

namespace detail {

/// Formats the error of a trace as one line: the problem, both operands, the scope and the line.
std::string error_line(const trace& t);

using trace_builder = void (*)(model_trace&);

/// Counts the stages of a builder, each of which continues the trace of the one before.
template <class Builder>
constexpr std::size_t count_stages() {
    if constexpr (requires { typename Builder::previous; })
        return 1 + count_stages<typename Builder::previous>();
    else
        return 1;
}
template <class Builder, std::size_t Count>
constexpr void list_stages(std::array<trace_builder, Count>& to, std::size_t last) {
    to[last] = [](model_trace& t) { Builder::build(t); };
    if constexpr (requires { typename Builder::previous; }) list_stages<typename Builder::previous>(to, last - 1);
}
template <class Builder>
constexpr auto stages_of() {
    std::array<trace_builder, count_stages<Builder>()> stages{};
    list_stages<Builder>(stages, stages.size() - 1);
    return stages;
}

} // namespace detail

/// Calls `build` to trace into `t` what is not lowered: its scans keep their cells only meanwhile.
void trace_alone(model_trace& t, detail::trace_builder build);

/// A trace, its schedule and its kernels, made by a builder at run time. Views of it stay valid as
/// long as it lives.
class traced_program {
public:
    /// Traces with `Builder`, and lowers the graph if `lowers`. Throws shape_error, with the
    /// compiler's message, for a model whose parts do not fit together.
    template <class Builder>
    static std::unique_ptr<traced_program> of(bool lowers = true) {
        return make(detail::stages_of<Builder>(), lowers);
    }

    /// The same for a callable that traces: f(model_trace&).
    template <class F>
    static std::unique_ptr<traced_program> made_by(const F& f, bool lowers = true) {
        return make_by([](const void* callable, model_trace& t) { (*static_cast<const F*>(callable))(t); }, &f, lowers);
    }

    /// Continues a copy of the trace of `before`, which is not lowered, with f(model_trace&), and lowers it.
    template <class F>
    static std::unique_ptr<traced_program> continued(const traced_program& before, const F& f) {
        const auto build = [&](model_trace& t) {
            t = before.trace_;
            begin_stage(t);
            f(t);
        };
        return make_by([](const void* callable, model_trace& t) { (*static_cast<decltype(&build)>(callable))(t); },
                       &build, true, before.cells_);
    }
    /// Lowers a graph that was traced without.
    void lower_now() { finish(true); }

    traced_program();
    ~traced_program();
    traced_program(const traced_program&) = delete;
    traced_program& operator=(const traced_program&) = delete;

    const model_view& view() const { return view_; }
    const model_trace& traced() const { return trace_; }

private:
    using trace_builder = detail::trace_builder;

    static std::unique_ptr<traced_program> make(std::span<const trace_builder> stages, bool lowers);
    static std::unique_ptr<traced_program> make_by(void (*build)(const void* callable, model_trace&),
                                                   const void* callable, bool lowers,
                                                   std::shared_ptr<scan_cells> cells = nullptr);
    void finish(bool lowers);
    static void begin_stage(model_trace& t);
    void throw_if_ill_formed() const;
    void lower();
    runtime::kernel_pair function_of(const kernel_entry& k);
    runtime::kernel_pair function_of_node(const operation& op, int number);
    const registered_kernel& registered(const operation& op, dtype type) const;
    runtime::interpreted_kernel& assemble(const region_view& code, const std::vector<int>& wanted);
    void look();

    model_trace trace_;
    std::shared_ptr<scan_cells> cells_; // shared with the parts that are cut out of it
    schedule schedule_;
    std::vector<runtime::kernel_pair> functions_;
    std::vector<const cpu::interpreted_region*> interpreted_;
    std::vector<std::unique_ptr<runtime::interpreted_kernel>> regions_;
    struct scan_step;
    std::vector<std::unique_ptr<scan_step>> scans_;
    model_view view_;
};

} // namespace tapegraph::ir
