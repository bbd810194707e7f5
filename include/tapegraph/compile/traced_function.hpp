#pragma once

#include <tapegraph/compile/function.hpp>
#include <tapegraph/compile/traced_calls.hpp>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace tapegraph {

/// A function whose graph is made at run time.
template <class F, class... Specs>
class traced_function {
    using trace = detail::function_trace<detail::at_run_time<F>, Specs...>;

public:
    explicit traced_function(const F& f) : f_(std::make_unique<F>(f)) {
        program_ = std::make_unique<ir::program>(detail::made_once<trace>(traced_, *f_).view());
    }

    /// Runs the graph. Results are tensors of the arguments' floating type, in the structure in
    /// which the function returns nodes; on a gradient_tape as for graph_function.
    auto operator()(const tensor<typename Specs::element_type>&... arguments) {
        const device_scope on(program_->device());
        int index = 0;
        (program_->set_input(index++, arguments.view()), ...);
        const random_state random = random_.next();
        detail::call_results results(*program_);
        program_->run(random);
        const detail::tape_storage& tape = detail::tape_storage::instance();
        tape_index place;
        if constexpr (differentiable)
            if (tape.recording() && (tape.tracks(arguments) || ...)) place = record(random, {arguments...});
        return detail::returned<typename trace::result>::template rebuild<0>(
            detail::tensor_results<detail::elements_at_run_time<value_type>>{results, place});
    }

    /// Makes calls draw from this seed, counted from now, instead of the thread's
    /// (random::set_seed).
    void set_seed(std::uint64_t seed) { random_.set_seed(seed); }

    /// The traced program: its values, calls and memory, for tools that show or time them.
    const ir::program_view& view() const { return program_->view(); }
    /// The program that calls run, for profilers.
    ir::program& program() { return *program_; }

private:
    static constexpr bool differentiable = (is_floating(dtype_of<typename Specs::element_type>) || ...);
    static constexpr bool wide = (std::is_same_v<typename Specs::element_type, double> || ...);
    using value_type = std::conditional_t<wide, double, float>;

    tape_index record(const random_state& random, std::vector<any_tensor> arguments) {
        detail::taped_call call(*program_, random, std::move(arguments));
        if (!gradient_) gradient_ = std::make_shared<detail::traced_gradient>();
        call.gradient = gradient_->of<trace>(*traced_, *f_);
        call.programs = detail::traced_gradient::pool_of(gradient_);
        return detail::record_program(call);
    }

    std::unique_ptr<F> f_;
    std::unique_ptr<ir::traced_program> traced_;
    std::unique_ptr<ir::program> program_;
    std::shared_ptr<detail::traced_gradient> gradient_;
    detail::call_counter random_;
};

} // namespace tapegraph
