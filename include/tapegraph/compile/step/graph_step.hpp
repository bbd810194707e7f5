#pragma once

#include <tapegraph/compile/graph_trainer.hpp>
#include <tapegraph/compile/placed/placed_programs.hpp>
#include <tapegraph/compile/step/trainable.hpp>

namespace tapegraph {

template <class Step, class Spec, class Optimizers>
class compiled_step<graph, Step, Spec, Optimizers>
    : public detail::trainable_step<compiled_step<graph, Step, Spec, Optimizers>, Spec, Optimizers,
                                    detail::graph_trainer> {
    using base = detail::trainable_step<compiled_step, Spec, Optimizers, detail::graph_trainer>;
    using forward = ir::step_trace<Step, Spec>;
    using training = ir::step_updates<Step, Spec, Optimizers>;

public:
    compiled_step(const compile_options& options, const Optimizers& them) : base(options, them) {
        this->template set_up_traces<forward, training>(true);
        this->set_first_values_of_all(ir::stage_view<ir::traced_stage<training>>());
    }
    const ir::program_view& training_view() const { return ir::compile_program<training>(); }

private:
    friend base;
    template <class... T>
    auto step_once(const tensor<T>&... x) {
        using stage = ir::compile_stage<ir::detail::traced<forward>>;
        const buffer_view columns[]{x.view()...};
        if constexpr (detail::is_placed<training>) {
            const auto run = this->template run_in_parts<detail::placed_run>(true);
            detail::run_parts(placed_, detail::parts_of<training>::all, run, columns,
                              [&](ir::program& p) { base::set_numbers(p, "optimizer", this->next_numbers()); });
            auto results = detail::result_tensors<typename forward::result, stage>(
                [&](std::span<any_tensor> to) { detail::copy_results(placed_, to); });
            detail::change_variables(placed_, run);
            return results;
        } else {
            return step_on_one_device<stage>(columns);
        }
    }
    template <class Stage>
    auto step_on_one_device(detail::batch_columns columns) {
        using stage = Stage;
        ir::program& p = this->prepared_step(ir::compile_program<training>());
        base::set_numbers(p, "optimizer", this->next_numbers());
        this->launch(p, columns, this->options_.check_finite);
        return detail::result_tensors<typename forward::result, stage>([&](std::span<any_tensor> to) {
            for (std::size_t k = 0; k < to.size(); ++k) to[k] = detail::output_copy(p, static_cast<int>(k));
        });
    }

    std::conditional_t<detail::is_placed<training>, detail::part_programs, none> placed_;
};

} // namespace tapegraph
