#pragma once

#include "training.hpp"

#include "../models/text_classifier.hpp"

/// Training for any mode. One source per mode includes this.

namespace text_classification {

template <class Mode>
auto make_model(const options& o) {
    namespace tg = tapegraph;
    return tg::compile<Mode>(models::text_classifier<model_vocabulary>{}, tg::spec<float, tg::dyn, tg::dyn>{},
                             tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = o.learning_rate},
                             {.seed = o.seed});
}

template <class Mode>
tapegraph::history train(const options& o, const text_sets& sets) {
    auto model = make_model<Mode>(o);
    return model.fit(sets.train, {.epochs = o.epochs,
                                  .batch_size = o.batch_size,
                                  .validation_data = sets.validation,
                                  .steps_per_epoch = o.steps});
}

} // namespace text_classification
