#include "shared_operations.hpp"

/// A source without tapegraph/traced.hpp whose operations another source has in graphs that are made when the program runs
/// (registration_test.cpp). It compiles no kernels for those.

namespace traced_shared {

tg::tensor<float> predicted_elsewhere(const tg::tensor<float>& x) {
    return tg::compile<tg::graph>(recurrent_model{}, spec{}, {.seed = 3}).predict(x);
}

} // namespace traced_shared
