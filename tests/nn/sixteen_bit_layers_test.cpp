#include <tapegraph/nn/layers/affine_augmentation.hpp>
#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/masking.hpp>
#include <tapegraph/nn/metrics/accumulator.hpp>
#include <tapegraph/nn/metrics/mean.hpp>
#include <tapegraph/nn/mixed_precision.hpp>

#include <nn/layer_bench.hpp>

#include <support/storage.hpp>

namespace sixteen_bit_layers_test {

/// Layers on 16-bit values: places and indices are exact, statistics stay in range, what is masked out is finite.

using namespace nn_test;

namespace {

/// Pictures of numbers that differ from each other and reach the ends of half.
template <class T>
tg::tensor<T> pictures(std::int64_t size) {
    auto x = tg::tensor<T>::uninitialized({2, size, size, 3});
    for (std::int64_t i = 0; i < x.size(); ++i)
        x.mutable_data()[i] = T::from_bits(static_cast<std::uint16_t>(i * 7919 % 0x7B00 + i % 2 * 0x8000));
    return x;
}
template <class T>
bool same(const tg::tensor<T>& a, const tg::tensor<T>& b) {
    return a.shape() == b.shape() &&
           std::equal(a.data(), a.data() + a.size(), b.data(), [](T x, T y) { return x.bits == y.bits; });
}

/// The case of the report: padding under attention, whose rows see nothing.
struct tagger {
    constexpr auto operator()(auto scope, auto words) const {
        const auto h = tg::embedding(scope / "words", words, {.input_dim = 5, .output_dim = 4}, tg::mask_zero);
        const auto y = tg::multi_head_attention(scope / "look", h, h, {.num_heads = 2, .key_dim = 3});
        return tg::dense(scope / "tag", y, {.units = 2});
    }
};

} // namespace

TEST_CASE_TEMPLATE("16-bit pictures: places are not computed in 16 bits", T, tg::half, tg::bfloat16) {
    layer_bench b;
    const auto x = pictures<T>(64); // 4,096 pixels: half has every other number from 2,048 on
    // Moved by nothing a picture is itself.
    CHECK(same(x, tg::tensor<T>(tg::random_translation(b.scope() / "t", x, {.height_factor = 0, .width_factor = 0}))));
    CHECK(same(x, tg::tensor<T>(tg::random_rotation(b.scope() / "r", x, {.factor = 0}))));
    CHECK(same(x, tg::tensor<T>(tg::random_zoom(b.scope() / "z", x, {.height_factor = 0}))));
    // By whole pixels it is its pixels. A share of 5 / 64 is exact.
    constexpr double five = 5.0 / 64;
    const tg::tensor<T> moved = tg::random_translation(
        b.scope() / "t", x,
        {.height_factor = {five, five}, .width_factor = {-five, -five}, .fill_mode = tg::fill_mode::wrap});
    CHECK(same(moved, tg::tensor<T>(roll(roll(x, 5, 1), -5, 2))));
    // A crop begins at any place: 250 of a line of 500, of which bfloat16 has 256 numbers in [0, 1) and few of them whole.
    auto line = tg::tensor<T>::uninitialized({200, 1, 500, 1});
    for (std::int64_t i = 0; i < line.size(); ++i)
        line.mutable_data()[i] = T::from_bits(static_cast<std::uint16_t>(i % 500));
    const tg::tensor<T> parts = tg::random_crop(b.scope() / "c", line, {.height = 1, .width = 1});
    int odd = 0;
    for (std::int64_t i = 0; i < 200; ++i) odd += parts.data()[i].bits % 2;
    CHECK(odd > 65); // five deviations below the half
    CHECK(odd < 135);
}

TEST_CASE("16-bit attention: padding sees nothing and is finite") {
    const auto check = [](auto type, double tolerance) {
        using T = decltype(type);
        auto model =
            tg::compile<tg::eager>(tg::mixed<T>(tagger{}), tg::spec<std::int32_t, tg::dyn, tg::dyn>{},
                                   tg::sparse_softmax_cross_entropy{}, tg::sgd{.learning_rate = 0.1}, {.seed = 1});
        auto wide =
            tg::compile<tg::eager>(tagger{}, tg::spec<std::int32_t, tg::dyn, tg::dyn>{},
                                   tg::sparse_softmax_cross_entropy{}, tg::sgd{.learning_rate = 0.1}, {.seed = 1});
        const tg::tensor<std::int32_t> x{{1, 2, 3}, {4, 1, 0}}, z{{0, 1, 0}, {1, 0, 0}};
        for (int step = 0; step < 4; ++step) {
            const double loss = model.train_on_batch(x, z).loss, exact = wide.train_on_batch(x, z).loss;
            CHECK(std::abs(loss - exact) < tolerance);
        }
    };
    // Three layers of a few roundings each; a loss of 0.7.
    check(tg::half{}, 0.004);
    check(tg::bfloat16{}, 0.03);
}

TEST_CASE("half: statistics of layers stay in range") {
    using T = tg::half;
    auto x = tg::tensor<T>::uninitialized({2, 1000, 3});
    for (std::int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = T(300 + i % 2 * 8);
    const tg::tensor<bool> steps(tg::tensor<bool>(tg::sequence_mask(tg::tensor<std::int32_t>{1000, 0}, 1000)));
    const tg::tensor<T> middle =
        tg::global_average_pooling1d(tg::masked<tg::tensor<T>, tg::tensor<bool>>{x, steps, true});
    CHECK(static_cast<float>(middle(0, 0)) == 304);
    CHECK(static_cast<float>(middle(1, 0)) == 0); // no step counts
}

TEST_CASE("half: metrics by hand are those of floats") {
    const tg::tensor<float> x{{1, 500}, {3, 4}}, z{{1, 0}, {0, 4}};
    tg::metric_accumulator<tg::root_mean_squared_error> wide, narrow;
    wide.update(x, z);
    narrow.update(tg::tensor<tg::half>(tg::cast<tg::half>(x)), tg::tensor<tg::half>(tg::cast<tg::half>(z)));
    CHECK(wide.result() == narrow.result()); // the numbers are halfs, the square of 500 is none
}

} // namespace sixteen_bit_layers_test
