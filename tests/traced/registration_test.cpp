#include "shared_operations.hpp"

#include <nn/models.hpp>

#include <tapegraph/traced.hpp>

namespace traced_registration_test {

/// Operations that are in no list register, whatever the program's other sources know of them.

using namespace nn_test;

namespace {

// Made before main().
const auto early = tg::compile<tg::traced>(traced_shared::recurrent_model{}, traced_shared::spec{}, {.seed = 3});

} // namespace

TEST_CASE("run-time graphs: operations that another source has without the registry find their kernels") {
    const auto x = noise<float>({4, 5, 2}, 1);
    const auto expected = traced_shared::predicted_elsewhere(x);
    CHECK(same_bits(early.predict(x), expected));
    auto model = tg::compile<tg::traced>(traced_shared::recurrent_model{}, traced_shared::spec{},
                                         tg::mean_squared_error{}, tg::sgd{.learning_rate = 0.1}, {.seed = 3});
    CHECK(same_bits(model.predict(x), expected));
    const auto y = noise<float>({4, 3}, 2);
    const double before = model.train_on_batch(x, y).loss; // the derivatives' operations, too
    CHECK(model.evaluate(x, y).loss < before);
}

} // namespace traced_registration_test
