#include <nn/loss_model.hpp>

#include <support/temporary_folder.hpp>

namespace losses_softmax_test {

using namespace nn_test;

namespace {

const tg::tensor<double> logits{{0.5, -1.25, 3, -2}, {0.125, -0.0625, 7, -9}, {1, -1, 0.75, 0.5}};

double softmax(const tg::tensor<double>& x, int i, int k) {
    double sum = 0;
    for (int j = 0; j < 4; ++j) sum += std::exp(x(i, j));
    return std::exp(x(i, k)) / sum;
}

} // namespace

TEST_CASE("softmax cross-entropy: value, gradient and accuracy") {
    const tg::tensor<double> z{{0, 0, 1, 0}, {0.25, 0.5, 0.125, 0.125}, {1, 0, 0, 0}};
    double value = 0;
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 4; ++k) value -= z(i, k) * std::log(softmax(logits, i, k)) / 3;
    const auto gradient = table([&](int i, int k) { return (softmax(logits, i, k) - z(i, k)) / 3; });
    each_mode([&](auto mode) {
        check_loss<decltype(mode), tg::softmax_cross_entropy>(logits, z, value, gradient, 2.0 / 3);
    });
}

TEST_CASE("sparse softmax cross-entropy: value, gradient and accuracy") {
    const tg::tensor<std::int32_t> z{2, 0, 3};
    double value = 0;
    for (int i = 0; i < 3; ++i) value -= std::log(softmax(logits, i, z(i))) / 3;
    const auto gradient = table([&](int i, int k) { return (softmax(logits, i, k) - (k == z(i))) / 3; });
    each_mode([&](auto mode) {
        check_loss<decltype(mode), tg::sparse_softmax_cross_entropy>(logits, z, value, gradient, 1.0 / 3);
    });
}

TEST_CASE("softmax cross-entropy does not overflow") {
    const tg::tensor<double> x{{1000, 0, 0, 0}, {-1000, -1000, -1000, -1000}, {0, 0, 0, 1000}};
    const tg::tensor<std::int32_t> z{1, 2, 3};
    const double value = (1000 + std::log(4)) / 3;
    const auto gradient = table([](int i, int k) {
        const double p[3][4]{{1, -1, 0, 0}, {0.25, 0.25, -0.75, 0.25}, {0, 0, 0, 0}};
        return p[i][k] / 3;
    });
    // A row of equal logits counts as its first class: wrong.
    each_mode([&](auto mode) {
        check_loss<decltype(mode), tg::sparse_softmax_cross_entropy>(x, z, value, gradient, 1.0 / 3);
    });
}

TEST_CASE("softmax cross-entropy keeps what little the largest logit loses") {
    // With floats exp(-10) is off by half an epsilon of the 1 beside it, which is 0.13 % of the loss and no more.
    const float small = static_cast<float>(std::log1p(std::exp(-10.0))), half_epsilon = 0x1p-24f;
    const auto losses = [](auto x, auto z) {
        return std::tuple{tg::sparse_softmax_cross_entropy{}(x, z),
                          tg::softmax_cross_entropy{}(x, tg::one_hot<float>(z, 2))};
    };
    each_mode([&](auto mode) {
        auto f = tg::function<decltype(mode)>(losses, tg::spec<float, 1, 2>{}, tg::spec<std::int32_t, 1>{});
        for (const float shift : {0.f, 990.f}) {
            const auto [sparse, full] = f(tg::tensor<float>{{10 + shift, shift}}, tg::tensor<std::int32_t>{0});
            CHECK(std::abs(sparse.item() - small) <= 1.01f * half_epsilon);
            CHECK(full.item() == sparse.item());
        }
        const auto [sparse, full] = f(tg::tensor<float>{{1e8f, 1e8f}}, tg::tensor<std::int32_t>{0});
        CHECK(sparse.item() == static_cast<float>(std::log(2.0)));
        CHECK(full.item() == sparse.item());
    });
}

TEST_CASE("a label that is no class is named") {
    each_mode([&](auto mode) {
        auto model = tg::compile<decltype(mode)>(output_model{}, tg::spec<double, 3, 4>{}, tg::sparse_softmax_cross_entropy{},
                                                 tg::sgd{});
        for (const std::int32_t wrong : {4, -1}) {
            const std::string message = support::message_of<tg::range_error>(
                [&] { model.train_on_batch(logits, tg::tensor<std::int32_t>{0, wrong, 1}); });
            CAPTURE(message);
            CHECK(support::contains(message, "index " + std::to_string(wrong) + " at position 1"));
        }
        CHECK(model.variables()["w"].template value<double>().to_vector() == std::vector<double>(12, 0.0));
        CHECK(model.step() == 0);
        CHECK(std::isfinite(model.train_on_batch(logits, tg::tensor<std::int32_t>{0, 3, 1}).loss));
    });
}

} // namespace losses_softmax_test
