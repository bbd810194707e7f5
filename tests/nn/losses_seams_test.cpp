#include <nn/loss_seams.hpp>

namespace losses_seams_test {

/// All losses at their seams.

using namespace nn_test;
using matrix = tg::tensor<double>;

constexpr double near = 1.0 / 16; // bounds and margins are 1/4 and more apart

TEST_CASE("seams: losses of outputs and labels of one shape") {
    check_seams("binary_cross_entropy", tg::binary_cross_entropy{}, near);
    check_seams("softmax_cross_entropy", tg::softmax_cross_entropy{}, near);
    check_seams("categorical_cross_entropy", tg::categorical_cross_entropy{}, near);
    check_seams("mean_squared_error", tg::mean_squared_error{}, near);
    check_seams("mean_absolute_error", tg::mean_absolute_error{}, near);
    check_seams("mean_absolute_percentage_error", tg::mean_absolute_percentage_error{}, near);
    check_seams("mean_squared_logarithmic_error", tg::mean_squared_logarithmic_error{}, near);
    check_seams("huber", tg::huber{}, near);
    check_seams("huber, 0.5", tg::huber{.delta = 0.5}, near);
    check_seams("log_cosh", tg::log_cosh{}, near);
    check_seams("pinball", tg::pinball{.quantile = 0.3}, near);
    check_seams("poisson", tg::poisson{}, near);
    check_seams("kl_divergence", tg::kl_divergence{}, near);
    check_seams("cosine_similarity", tg::cosine_similarity{}, near);
    check_seams("hinge", tg::hinge{}, near);
    check_seams("squared_hinge", tg::squared_hinge{}, near);
    check_seams("categorical_hinge", tg::categorical_hinge{}, near);
    check_seams("binary_focal_cross_entropy", tg::binary_focal_cross_entropy{}, near);
    check_seams("binary_focal_cross_entropy, 3", tg::binary_focal_cross_entropy{.gamma = 3}, near);
    check_seams("categorical_focal_cross_entropy", tg::categorical_focal_cross_entropy{}, near);
    check_seams("sigmoid_focal_cross_entropy, 0.5", tg::sigmoid_focal_cross_entropy{.gamma = 0.5}, near);
    check_seams("dice", tg::dice{}, near);
    check_seams("dice_per_record", tg::dice_per_record{}, near);
    check_seams("tversky", tg::tversky{.alpha = 0.3, .beta = 0.7}, near);
    check_seams("tversky_per_record", tg::tversky_per_record{.alpha = 0.6, .beta = 0.3}, near);
    check_seams("smoothed sigmoid_cross_entropy", tg::smoothed<tg::sigmoid_cross_entropy>{}, near);
    check_seams("smoothed softmax_cross_entropy", tg::smoothed<tg::softmax_cross_entropy>{}, near);
}

TEST_CASE("seams: losses of class numbers") {
    const tg::tensor<std::int32_t> z{2, 0, 2, 0};
    const matrix x{{0, 0, 0}, {1, 1, 1}, {0, 1, 0.5}, {0.5, 0.5, 0}},
        probabilities{{0.5, 0.5, 0.5}, {1, 1, 1}, {0.2, 0.4, 0.2}, {0.5, 1, 0.5}};
    seam_counts counted;
    check_seam("sparse_softmax_cross_entropy", tg::sparse_softmax_cross_entropy{}, x, z, near, counted);
    check_seam("sparse_categorical_cross_entropy", tg::sparse_categorical_cross_entropy{}, probabilities, z, near,
               counted);
    check_seam("smoothed sparse_softmax_cross_entropy", tg::smoothed<tg::sparse_softmax_cross_entropy>{}, x, z, near,
               counted);
    check_seam("triplet_semi_hard", tg::triplet_semi_hard{}, x, z, near, counted);
    check_seam("triplet_hard", tg::triplet_hard{}, x, z, near, counted);
    CHECK(counted.smooth >= 16); // of 30; those of triplets at equal rows are kinks
}

TEST_CASE("seams: sequences of symbols, equal logits, with a label and none, repeated and as long as time allows") {
    const tg::tensor<std::int32_t> z{{1, 2}, {1, 1}, {2, -1}, {-1, -1}};
    seam_counts counted;
    check_seam("ctc", tg::ctc{}, matrix(tg::zeros<double>({4, 3, 3})), z, near, counted);
    check_seam("ctc", tg::ctc{}, matrix(tg::ones<double>({4, 3, 3}) * matrix{0, 1, 1}), z, near, counted);
    CHECK(counted.smooth == 12); // two directions of each, three orders
    CHECK(counted.kinks == 0);
}

} // namespace losses_seams_test
