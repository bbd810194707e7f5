#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/model/eager_scope.hpp>
#include <tapegraph/nn/layers/dense.hpp>
#include <tapegraph/nn/losses/basic.hpp>
#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/nn/optimizers/eager_slots.hpp>

/// Eager layers, losses and updates that the component (core/component.hpp) contains: those on
/// float tensors that most programs use. Others are compiled where they are used.

namespace tapegraph {

#define TG_COMPILED_LOSS(loss, label)                                                                                  \
    TG_COMPILED(nn, auto loss::operator()<tensor<float>, tensor<label>>(tensor<float>, tensor<label>) const)
#define TG_COMPILED_ACCURACY(loss, label)                                                                              \
    TG_COMPILED(nn, auto loss::accuracy<tensor<float>, tensor<label>>(tensor<float>, tensor<label>))
#define TG_COMPILED_UPDATE(optimizer) TG_COMPILED(nn, const detail::update_view& detail::update_of<optimizer, float>())

TG_COMPILED_LOSS(sigmoid_cross_entropy, float)
TG_COMPILED_LOSS(softmax_cross_entropy, float)
TG_COMPILED_LOSS(sparse_softmax_cross_entropy, std::int32_t)
TG_COMPILED_LOSS(mean_squared_error, float)
TG_COMPILED_ACCURACY(sigmoid_cross_entropy, float)
TG_COMPILED_ACCURACY(softmax_cross_entropy, float)
TG_COMPILED_ACCURACY(sparse_softmax_cross_entropy, std::int32_t)
TG_COMPILED_UPDATE(sgd)
TG_COMPILED_UPDATE(momentum)
TG_COMPILED_UPDATE(adam)
TG_COMPILED(nn, auto dense<eager_scope, tensor<float>>(const eager_scope&, const tensor<float>&, const dense_options&,
                                                       std::source_location))

#undef TG_COMPILED_LOSS
#undef TG_COMPILED_ACCURACY
#undef TG_COMPILED_UPDATE

} // namespace tapegraph
