#include <nn/models.hpp>

#include <cmath>

namespace stored_test {

/// Losses and optimizers against the values PyTorch 2.15 (float64) gives; each comment is the snippet that made what
/// follows, with F = torch.nn.functional.

using namespace nn_test;

namespace {

// Digits are all there: what is left are the roundings of a few operations.
bool close(double x, double y) { return std::abs(x - y) <= 1e-14 * std::max(1.0, std::abs(y)); }

const tg::tensor<double> logits{{2, -1, 0.5}, {0, 0, 0}, {1000, 998, -1000}, {-3, 1, 4}};

template <class Loss, class Labels>
void check_loss(const tg::tensor<double>& x, const Labels& labels, double value, const std::vector<double>& gradient) {
    const auto [loss, slope] = tg::value_and_gradient([&](const auto& at) { return Loss{}(at, labels); })(x);
    CHECK(close(loss.item(), value));
    for (std::size_t i = 0; i < gradient.size(); ++i) {
        CAPTURE(i);
        CHECK(close(slope.data()[i], gradient[i]));
    }
}

/// A scalar weight whose gradient is given: its loss is w z.
struct weight {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::eval(x + scope.variable_like(x, "w", {1}, {.initializer = tg::init::constant{1}}));
    }
};
struct given_gradient {
    constexpr auto operator()(auto x, auto z) const { return sum(x * z); }
    static constexpr tg::tensor_spec labels(tg::dtype type, const tg::shape& output) { return {type, output}; }
};

template <class Optimizer>
void check_steps(const Optimizer& optimizer, const std::vector<double>& expected) {
    auto model = tg::compile<tg::eager>(weight{}, tg::spec<double, 1, 1>{}, given_gradient{}, optimizer);
    const double gradients[]{1, 0.5, -2};
    for (std::size_t step = 0; step < 3; ++step) {
        model.train_on_batch(tg::zeros<double>({1, 1}), tg::full<double>({1, 1}, gradients[step]));
        CAPTURE(step);
        CHECK(close(model.variables()["w"].template value<double>().data()[0], expected[step]));
    }
}

} // namespace

TEST_CASE("stored: cross-entropy of class numbers is the mean over the batch, also of large logits") {
    // l = F.cross_entropy(logits, torch.tensor([0, 2, 1, 1])); l.backward(); l, logits.grad
    check_loss<tg::sparse_softmax_cross_entropy>(logits, tg::tensor<std::int32_t>{0, 2, 1, 1}, 1.6290768015159713,
                                                 {-0.05360074135268103, 0.009778143317671862, 0.04382259803500917,
                                                  0.08333333333333333, 0.08333333333333333, -0.16666666666666669,
                                                  0.22019926949447058, -0.2201992694944706, 0, 0.00021697032372240127,
                                                  -0.23815382171266447, 0.23793685138894205});
}

TEST_CASE("stored: cross-entropy of distributions") {
    // F.cross_entropy(logits, q)
    const tg::tensor<double> q{{0.7, 0.2, 0.1}, {0, 1, 0}, {0.5, 0.25, 0.25}, {0.2, 0.3, 0.5}};
    check_loss<tg::softmax_cross_entropy>(logits, q, 126.26657680151598, {});
}

TEST_CASE("stored: binary cross-entropy of logits") {
    // F.binary_cross_entropy_with_logits([-800, -2, 0, 3, 800], [0, 1, 0.5, 0, 1])
    check_loss<tg::sigmoid_cross_entropy>(tg::tensor<double>{-800, -2, 0, 3, 800}, tg::tensor<double>{0, 1, 0.5, 0, 1},
                                          1.1737325086353319, {0, -0.1761594155955765, 0, 0.19051482536448666, 0});
}

TEST_CASE("stored: three steps of each optimizer") {
    // opt = torch.optim.SGD([w], lr=0.1, momentum=0.9) with gradients 1, 0.5, -2 from w = 1; and with nesterov=True.
    // PyTorch's velocity is ours over -lr, so the steps are the same for a constant rate.
    check_steps(tg::momentum{.learning_rate = 0.1, .momentum = 0.9}, {0.9, 0.76, 0.834});
    check_steps(tg::nesterov_momentum{.learning_rate = 0.1, .momentum = 0.9}, {0.81, 0.634, 0.9006000000000001});
    // Keras adds epsilon to the uncorrected root (PyTorch's third step is 0.8274177590722464):
    //   m += 0.1 * (g - m); v += 0.001 * (g * g - v)
    //   w -= 0.1 * math.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t) * m / (math.sqrt(v) + 1e-7)
    check_steps(tg::adam{.learning_rate = 0.1}, {0.900000316226766, 0.8067826161106244, 0.8274182903444286});
}

} // namespace stored_test
