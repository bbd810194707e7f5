#pragma once

#include <tapegraph/train/trainable_model.hpp>

/// The result of tg::compile where it cannot create a model and has reported the reason. Its
/// members are those of models, so that using it is not another error. They are not defined,
/// because no program that has one is ever linked.

namespace tapegraph {

namespace detail {
template <class Mode>
struct untraced {};
} // namespace detail

template <class Mode, class Model, class Spec, class Loss, class Optimizer>
class compiled_model<detail::untraced<Mode>, Model, Spec, Loss, Optimizer>
    : public trainable_model<compiled_model<detail::untraced<Mode>, Model, Spec, Loss, Optimizer>, Spec, Loss,
                             detail::trainer_base> {
    using base = trainable_model<compiled_model, Spec, Loss, detail::trainer_base>;

public:
    compiled_model(const compiled_model&);
    compiled_model(const auto&...);
    Optimizer& optimizer();
    std::size_t arena_bytes() const;
    const ir::program_view& training_view() const;
    ir::program& training_program();

private:
    friend base;
    step_result step_once(detail::batch_columns);
    step_result measure_once(detail::batch_columns);
    gradient_list gradients_once(detail::batch_columns);
    template <class... T>
    tensor<typename detail::value_type_of<Spec>::type> predict_once(const tensor<T>&...) const;
};

} // namespace tapegraph
