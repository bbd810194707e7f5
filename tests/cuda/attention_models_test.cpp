#include <cuda/whole_programs.hpp>

#include <tapegraph/nn/layers/grouped_attention.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace attention_models_test {

/// A model with attention, its masks and its dropout on a device, in both modes, as on the CPU.

namespace tg = tapegraph;

namespace {

struct attentive {
    constexpr auto operator()(auto scope, auto x) const {
        const auto seen = tg::eval(tg::expand_dims(tg::take(x, 0, -1), 1) > -0.5);
        const auto h = tg::multi_head_attention(
            scope / "look", x, x, {.num_heads = 2, .key_dim = 3, .dropout = 0.25, .use_causal_mask = true},
            tg::attention_mask{seen});
        const auto y = tg::grouped_query_attention(scope / "group", h, x,
                                                   {.head_dim = 2, .num_query_heads = 4, .num_key_value_heads = 2});
        return tg::dense(scope / "score", mean(y, 1), {.units = 1});
    }
};

template <class Mode>
std::vector<double> losses(tg::device where, tg::math_mode mode = tg::math_mode::fp32) {
    auto model = tg::compile<Mode>(attentive{}, tg::spec<float, tg::dyn, 19, 4>{}, tg::mean_squared_error{},
                                   tg::sgd{.learning_rate = 0.1}, {.seed = 5, .device = where, .math_mode = mode});
    std::vector<double> all;
    const auto x = tg::random::normal<float>({3, 19, 4}, {.seed = 1}),
               y = tg::random::normal<float>({3, 1}, {.seed = 2});
    for (int s = 0; s < 5; ++s) all.push_back(model.train_on_batch(x, y).loss);
    return all;
}

} // namespace

TEST_CASE("a model with attention trains on a device as on the CPU, in both modes") {
    const auto there = losses<tg::graph>(tg::device::cuda(0)), here = losses<tg::graph>(tg::device::cpu());
    for (std::size_t i = 0; i < here.size(); ++i) CHECK(there[i] == doctest::Approx(here[i]).epsilon(1e-4));
    CHECK(there == losses<tg::eager>(tg::device::cuda(0)));
    CHECK(here == losses<tg::eager>(tg::device::cpu()));
}

TEST_CASE("in TF32, too, whose factors are rounded by up to 2^-11") {
    const auto there = losses<tg::graph>(tg::device::cuda(0), tg::math_mode::tf32),
               here = losses<tg::graph>(tg::device::cpu());
    for (std::size_t i = 0; i < here.size(); ++i) CHECK(there[i] == doctest::Approx(here[i]).epsilon(1e-2));
    CHECK(there == losses<tg::eager>(tg::device::cuda(0), tg::math_mode::tf32));
    CHECK(there != losses<tg::graph>(tg::device::cuda(0)));
}

} // namespace attention_models_test
