#include <nn/layer_bench.hpp>
#include <nn/loss_seams.hpp>

#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/nn/layers/weight_normalization.hpp>
#include <tapegraph/nn/metrics/mean.hpp>

namespace normalization_seams_test {

/// Normalizations where a variance or a length is 0: equal rows, zeros, one number beside zeros. With an epsilon of 1, so that their roots are
/// smooth over the steps of the differences.

using namespace nn_test;

namespace {

using matrix = tg::tensor<double>;

/// Of layer(scope, x), times the labels, summed.
template <class Layer>
void check_layer(const char* name, const Layer& layer, int at_least) {
    layer_bench bench;
    const auto loss = [&](const matrix& x, const matrix& z) {
        return matrix(sum(matrix(layer(bench.scope(), x)) * (z + 0.25)));
    };
    const matrix z{{1, -0.5, 0.25, 2}, {0.5, 1, -1, 0.75}, {-2, 0.5, 1, 0.25}};
    seam_counts counted;
    for (const matrix& x :
         {matrix(tg::zeros<double>({3, 4})), matrix(tg::ones<double>({3, 4})),
          matrix{{1, 1, 1, 1}, {0, 0, 0, 0}, {-2, -2, -2, -2}}, matrix{{1, 1, 2, 2}, {0, 0, 3, 3}, {0, 0, 0, 1}},
          matrix{{0, 0, 0, 3}, {0, 1, 0, 1}, {0, 0, 2, 0}}, matrix{{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}}})
        check_seam(name, loss, x, z, 1.0 / 16, counted);
    MESSAGE(std::string(name) << ": " << counted.smooth << " derivatives, " << counted.kinks << " kinks");
    CHECK(counted.smooth >= at_least);
}

} // namespace

// Two directions, three orders: 36 derivatives.
TEST_CASE("seams: normalizations") {
    check_layer(
        "batch_normalization",
        [](auto s, const auto& x) { return tg::batch_normalization(s / "b", x, {.epsilon = 1}); }, 36);
    check_layer(
        "layer_normalization",
        [](auto s, const auto& x) { return tg::layer_normalization(s / "l", x, {.epsilon = 1}); }, 36);
    check_layer(
        "group_normalization",
        [](auto s, const auto& x) { return tg::group_normalization(s / "g", x, {.groups = 2, .epsilon = 1}); }, 36);
    check_layer(
        "rms_normalization", [](auto s, const auto& x) { return tg::rms_normalization(s / "r", x, {.epsilon = 1}); },
        36);
    // Rows of zeros are kinks.
    check_layer(
        "unit_normalization", [](auto, const auto& x) { return tg::unit_normalization(x); }, 18);
    check_layer(
        "stddev", [](auto, const auto& x) { return tg::stddev(x, -1, {.keepdims = true}); }, 6);
}

TEST_CASE("seams: the layer of weight_normalized weights") {
    check_layer(
        "weight_normalized",
        [](auto s, const auto& x) { return tg::dense(tg::weight_normalized(s / "w"), x, {.units = 4}); }, 36);
}

} // namespace normalization_seams_test
