#pragma once

#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/train/traces.hpp>
#include <tapegraph/train/trainer.hpp>

#include <utility>
#include <vector>

namespace tapegraph::detail {

/// The losses and gradients of an instance (compile/instance.hpp), of any mode. `Value`: the
/// element type of its losses; `Regularizes`: whether variables may have regularizers.
template <class Model, class Value, bool Regularizes, class Trainer>
class instance_losses : public Trainer {
public:
    /// The losses that the model adds: scope.add_loss of the calls of `in_training` under this tape
    /// since the last request, and the penalties of regularizers on its variables. `loss +
    /// net.added_losses()`; 0 where there are none.
    tensor<Value> added_losses() {
        tensor<Value> total(Value(0));
        for (const any_tensor& each : losses_) total = eval(total + tensor<Value>(each));
        losses_.clear();
        if constexpr (Regularizes)
            for (const variable& v : this->variables_)
                if (v.regularizer())
                    total = eval(total + detail::penalties<Model>::of(v.regularizer(), tensor<Value>(v.data())));
        penalties_due_ = false;
        return total;
    }

    /// The gradient of a loss by each trainable variable, in their order, in the form that
    /// `applied` takes. A gradient without elements in memory means that the loss does not depend
    /// on this variable. Throws argument_error if the model adds losses that have not been
    /// requested.
    std::vector<any_tensor> gradients(gradient_tape& tape, const any_tensor& loss) {
        if (!losses_.empty() || penalties_due_) {
            losses_.clear();
            penalties_due_ = false;
            throw argument_error("instance: the model adds to its loss (add_loss or regularizers), which this one "
                                 "leaves out: loss + net.added_losses()");
        }
        std::vector<any_tensor> sources, flows;
        for (const variable& v : this->variables_) {
            if (!v.trainable()) continue;
            if (detail::tape_storage::instance().tracks(v.data())) sources.push_back(v.data());
        }
        std::vector<any_tensor> found = tape.gradient(loss, sources);
        std::size_t next = 0;
        for (variable& v : this->variables_) {
            if (!v.trainable()) continue;
            const bool followed = next < sources.size() && sources[next].shares_with(v.data());
            flows.push_back(followed ? std::move(found[next]) : any_tensor{});
            if (followed) ++next;
        }
        return flows;
    }

    template <tensor_like E>
    std::vector<any_tensor> gradients(gradient_tape& tape, const E& loss) {
        const any_tensor sealed = eval(loss);
        return gradients(tape, sealed);
    }

protected:
    static constexpr bool regularizes = Regularizes;
    using Trainer::Trainer;

    /// Adds those of a call in training, and forgets those of earlier tapes.
    void add_losses(std::vector<any_tensor> more, bool penalties) {
        const auto& tape = tape_storage::instance();
        std::erase_if(losses_, [&](const any_tensor& each) { return !tape.tracks(each); });
        for (any_tensor& each : more) losses_.push_back(std::move(each));
        penalties_due_ = penalties;
    }

private:
    std::vector<any_tensor> losses_; // not requested yet
    bool penalties_due_ = false;
};

} // namespace tapegraph::detail
