#include <nn/mlp_in_both_modes.hpp>

namespace mlp_float_test {

// One element type per file: each compiles a training step for either mode.
TEST_CASE("an MLP of float trains to the same bits in both modes") { nn_test::check_mlp_modes<float>(); }

} // namespace mlp_float_test
