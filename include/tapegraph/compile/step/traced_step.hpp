#pragma once

#include <tapegraph/compile/traced_model.hpp>
#include <tapegraph/compile/training_step.hpp>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace tapegraph {

/// A custom step whose graph is made at run time.
template <class Step, class Spec, class Optimizers>
class compiled_step<traced, Step, Spec, Optimizers>
    : public detail::trainable_step<compiled_step<traced, Step, Spec, Optimizers>, Spec, Optimizers,
                                    detail::graph_trainer> {
    using base = detail::trainable_step<compiled_step, Spec, Optimizers, detail::graph_trainer>;
    using traced_call = detail::at_run_time<Step>;
    using forward = ir::step_trace<traced_call, Spec>;
    using training = ir::step_updates<traced_call, Spec, Optimizers>;
    friend base;

public:
    compiled_step(const Step& s, const compile_options& options, const Optimizers& them)
        : base(options, them), own_(s) {
        const detail::traced_now<Step> now(own_);
        const auto layers = ir::traced_program::of<forward>(false);
        const auto whole = ir::traced_program::of<training>(false);
        placed_ = detail::has_places(whole->view());
        detail::model_base::read_traces(*this, layers->view(), whole->view(),
                                        detail::first_values_at_run_time<traced_call>(), true);
        this->set_first_values_of_all(whole->view());
    }
    const ir::program_view& training_view() const { return detail::made_once<training>(program_, own_).view(); }

private:
    using value_type = typename detail::value_type_of<Spec>::type;

    template <class... T>
    auto step_once(const tensor<T>&... x) {
        const buffer_view columns[]{x.view()...};
        constexpr int count = detail::output_pack<typename forward::result>::count;
        std::vector<any_tensor> results(count);
        if (placed_) {
            const auto run = this->template run_in_parts<detail::placed_run>(true);
            detail::run_parts(parts_->programs, parts_->template of<training>(own_), run, columns,
                              [&](ir::program& p) { base::set_numbers(p, "optimizer", this->next_numbers()); });
            detail::copy_results(parts_->programs, results);
            detail::change_variables(parts_->programs, run);
            return typed(std::move(results));
        }
        ir::program& p = this->prepared_step(training_view());
        base::set_numbers(p, "optimizer", this->next_numbers());
        this->launch(p, columns, this->options_.check_finite);
        for (int k = 0; k < count; ++k) results[static_cast<std::size_t>(k)] = detail::output_copy(p, k);
        return typed(std::move(results));
    }
    static auto typed(std::vector<any_tensor> results) {
        return detail::typed_results<typename forward::result, value_type>(std::move(results), "step");
    }

    Step own_;
    mutable std::unique_ptr<ir::traced_program> program_;
    std::unique_ptr<detail::placed_part_programs> parts_ = std::make_unique<detail::placed_part_programs>();
    bool placed_ = false; // whether parts are on devices or tasks of their own
};

} // namespace tapegraph
