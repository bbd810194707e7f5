#pragma once

#include "training.hpp"

#include "../models/cats_and_dogs.hpp"

namespace batch_study {

template <class Mode>
auto make_cnn(const options& o) {
    namespace tg = tapegraph;
    return tg::compile<Mode>(models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{},
                             tg::sigmoid_cross_entropy{}, optimizer(o), compile_options_of(o));
}

} // namespace batch_study
