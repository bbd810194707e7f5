#pragma once

#include <tapegraph/cluster/sharded/sliced_trainer.hpp>
#include <tapegraph/cluster/sharded/summed_gradients.hpp>
#include <tapegraph/compile/graph_model.hpp>

namespace tapegraph {

namespace detail {
template <class Optimizer>
using sharded_trainer_of = std::conditional_t<keeps_slices<Optimizer>, sliced_trainer, sharded_trainer>;
} // namespace detail

/// A model in graph mode whose batches are sharded: the training program is replaced by one for a
/// shard, with the arena of a shard, and one for the update.
template <class Model, class Spec, class Loss, class Optimizer>
class compiled_model<detail::sharded_mode<graph>, Model, Spec, Loss, Optimizer>
    : public detail::basic_graph_model<compiled_model<detail::sharded_mode<graph>, Model, Spec, Loss, Optimizer>,
                                       detail::sharded_trainer_of<Optimizer>, Model, Spec, Loss, Optimizer> {
    using base =
        detail::basic_graph_model<compiled_model, detail::sharded_trainer_of<Optimizer>, Model, Spec, Loss, Optimizer>;
    static constexpr bool sliced = detail::keeps_slices<Optimizer>;
    using shard = ir::shard_trace<Model, Spec, Loss, detail::scales_loss<Optimizer>()>;
    using unscaled = ir::shard_trace<Model, Spec, Loss, false>;
    using update = std::conditional_t<sliced, ir::slice_update_trace<Model, Spec, Loss, Optimizer>,
                                      ir::shard_update_trace<Model, Spec, Loss, Optimizer>>;

public:
    compiled_model(const sharded& how, const Loss& loss, const Optimizer& optimizer) : base(how, loss, optimizer) {
        static_assert(!base::on_devices, "shards: a step is cut by records; with_device cannot place parts of it, too");
    }

    /// Bytes of a shard's arena (of all shards that run in parallel), the update's and the sums
    /// over shards; known after the first step.
    std::size_t arena_bytes() const {
        return (this->training_ ? this->training_->arena_bytes() : 0) + this->bytes_beside() +
               (this->update_ ? this->update_->arena_bytes() : 0) + this->shard_sum_bytes();
    }
    const ir::program_view& training_view() const { return program_of<shard>(); }
    const ir::program_view& update_view() const { return ir::compile_program<update>(); }

private:
    template <class, class, class, class, class>
    friend class trainable_model;

    template <class Trace>
    static const ir::program_view& program_of() {
        static const detail::reordered_view view(ir::compile_program<Trace>(),
                                                 detail::gradients_first(ir::compile_program<Trace>()));
        return view.view();
    }

    void launch_once() = delete; // a step is several programs, so fit waits for each

    step_result step_once(detail::batch_columns columns) {
        const auto numbers = this->optimizer_.numbers(this->step_);
        ir::program& p = this->training_program_of(program_of<shard>());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        if constexpr (sliced) this->leave_slices(!this->takes_whole(ir::compile_program<update>()));
        this->add_shards(p, columns);
        ir::program& u = this->update_program_of(ir::compile_program<update>());
        base::set_numbers(u, "optimizer", numbers);
        return this->update_with(u);
    }
    gradient_list gradients_once(detail::batch_columns columns) {
        static_assert(!std::is_same_v<Optimizer, none>, "gradients: this model has no loss");
        ir::program& p = std::is_same_v<shard, unscaled> ? this->training_program_of(program_of<unscaled>())
                                                         : this->gradient_program_of(program_of<unscaled>());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        if constexpr (sliced) this->leave_slices(false);
        this->add_shards(p, columns);
        return this->summed_gradients(p);
    }
};

} // namespace tapegraph
