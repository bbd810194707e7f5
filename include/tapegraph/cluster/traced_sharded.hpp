#pragma once

#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/compile/traced_model.hpp>

#include <memory>
#include <type_traits>

/// Sharded training steps (cluster/sharded.hpp) whose graphs are made at run time. Not part of
/// traced.hpp.

namespace tapegraph {

/// A model whose batches are sharded: one graph computes a shard, another one updates variables.
template <class Model, class Spec, class Loss, class Optimizer>
class compiled_model<detail::sharded_mode<traced>, Model, Spec, Loss, Optimizer>
    : public detail::basic_traced_model<compiled_model<detail::sharded_mode<traced>, Model, Spec, Loss, Optimizer>,
                                        detail::sharded_trainer_of<Optimizer>, Model, Spec, Loss, Optimizer> {
    using whole =
        detail::basic_traced_model<compiled_model, detail::sharded_trainer_of<Optimizer>, Model, Spec, Loss, Optimizer>;
    using typename whole::base;
    using typename whole::model;
    static constexpr bool sliced = detail::keeps_slices<Optimizer>;
    using shard = ir::shard_trace<model, Spec, Loss, detail::scales_loss<Optimizer>()>;
    using unscaled = ir::shard_trace<model, Spec, Loss, false>;
    using update = std::conditional_t<sliced, ir::slice_update_trace<model, Spec, Loss, Optimizer>,
                                      ir::shard_update_trace<model, Spec, Loss, Optimizer>>;
    friend base;

public:
    /// Throws argument_error if with_device gives parts of the model to devices.
    compiled_model(const Model& m, const sharded& how, const Loss& loss, const Optimizer& optimizer)
        : whole(m, how, loss, optimizer) {
        if (this->on_devices_)
            throw argument_error("shards: a step is cut by records; with_device cannot place parts of it, too");
    }

    /// As those of the model in graph mode.
    std::size_t arena_bytes() const {
        return (this->training_ ? this->training_->arena_bytes() : 0) + this->bytes_beside() +
               (this->update_ ? this->update_->arena_bytes() : 0) + this->shard_sum_bytes();
    }
    const ir::program_view& training_view() const { return sharded_->of_shard.template view<shard>(this->model_); }
    const ir::program_view& update_view() const {
        return detail::made_once<update>(sharded_->update, this->model_).view();
    }

private:
    /// A shard's program, with the calls in the order in which gradients are wanted.
    struct shard_program {
        std::unique_ptr<ir::traced_program> traced;
        std::unique_ptr<detail::reordered_view> ordered;

        template <class Trace>
        const ir::program_view& view(const Model& m) {
            if (!ordered) {
                const ir::program_view& made = detail::made_once<Trace>(traced, m).view();
                ordered = std::make_unique<detail::reordered_view>(made, detail::gradients_first(made));
            }
            return ordered->view();
        }
    };
    struct sharded_programs {
        shard_program of_shard, of_unscaled;
        std::unique_ptr<ir::traced_program> update;
    };

    step_result step_once(detail::batch_columns columns) {
        const auto numbers = this->optimizer_.numbers(this->step_);
        ir::program& p = this->training_program_of(training_view());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        if constexpr (sliced) this->leave_slices(!this->takes_whole(update_view()));
        this->add_shards(p, columns);
        ir::program& u = this->update_program_of(update_view());
        base::set_numbers(u, "optimizer", numbers);
        return this->update_with(u);
    }
    gradient_list gradients_once(detail::batch_columns columns) {
        static_assert(!std::is_same_v<Optimizer, none>, "gradients: this model has no loss");
        ir::program& p = gradient_program();
        base::set_numbers(p, "loss", this->numbers_of_loss());
        if constexpr (sliced) this->leave_slices(false);
        this->add_shards(p, columns);
        return this->summed_gradients(p);
    }
    ir::program& gradient_program() {
        if constexpr (std::is_same_v<shard, unscaled>)
            return this->training_program_of(training_view());
        else
            return this->gradient_program_of(sharded_->of_unscaled.template view<unscaled>(this->model_));
    }

    std::unique_ptr<sharded_programs> sharded_ = std::make_unique<sharded_programs>();
};

} // namespace tapegraph
