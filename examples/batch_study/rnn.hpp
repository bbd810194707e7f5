#pragma once

#include "training.hpp"

#include "../models/text_classifier.hpp"

namespace batch_study {

template <class Mode>
auto make_rnn(const options& o) {
    namespace tg = tapegraph;
    return tg::compile<Mode>(models::text_classifier<model_vocabulary>{}, tg::spec<float, tg::dyn, tg::dyn>{},
                             tg::sparse_softmax_cross_entropy{}, optimizer(o), compile_options_of(o));
}

} // namespace batch_study
