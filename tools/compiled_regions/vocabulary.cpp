// Formulas that many programs use. tapegraph::kernels holds the regions that they become: see
// collect.py in this folder.
#include <tapegraph/tapegraph.hpp>

#include <tapegraph/nn/layers/sequence.hpp>

namespace tg = tapegraph;
using tensor = tg::tensor<float>;

namespace {

const tensor x = tg::ones<float>({2, 3}), y = tg::ones<float>({2, 3});

template <class F>
void one(const F& f) {
    tensor a = x;
    tg::gradient_tape tape;
    tape.watch(a);
    const tensor value = f(a);
    (void)tape.gradient(value, a);
}
template <class F>
void two(const F& f) {
    tensor a = x, b = y;
    tg::gradient_tape tape;
    tape.watch(a, b);
    const tensor value = f(a, b);
    (void)tape.gradient(value, a, b);
}

// An operation alone, after a bias, and under the reductions that end a loss.
template <class F>
void activation(const F& f) {
    one(f);
    two([&](const auto& a, const auto& b) { return f(a + b); });
}

void formulas() {
    one([](const auto& a) { return tg::exp(a); });
    one([](const auto& a) { return tg::log(a); });
    one([](const auto& a) { return tg::sqrt(a); });
    one([](const auto& a) { return tg::rsqrt(a); });
    one([](const auto& a) { return tg::abs(a); });
    one([](const auto& a) { return tg::sin(a); });
    one([](const auto& a) { return tg::cos(a); });
    one([](const auto& a) { return -a; });
    one([](const auto& a) { return tg::square(a); });
    one([](const auto& a) { return 1 - a; });
    one([](const auto& a) { return 1 / a; });
    one([](const auto& a) { return a * 2; });
    one([](const auto& a) { return a + 1; });
    one([](const auto& a) { return a - 1; });
    one([](const auto& a) { return a / 2; });
    activation([](const auto& a) { return tg::relu(a); });
    activation([](const auto& a) { return tg::tanh(a); });
    activation([](const auto& a) { return tg::sigmoid(a); });
    activation([](const auto& a) { return tg::gelu(a); });
    activation([](const auto& a) { return tg::swish(a); });
    activation([](const auto& a) { return tg::softplus(a); });
    activation([](const auto& a) { return tg::leaky_relu(a); });
    activation([](const auto& a) { return tg::elu(a); });
    two([](const auto& a, const auto& b) { return a + b; });
    two([](const auto& a, const auto& b) { return a - b; });
    two([](const auto& a, const auto& b) { return a * b; });
    two([](const auto& a, const auto& b) { return a / b; });
    two([](const auto& a, const auto& b) { return tg::maximum(a, b); });
    two([](const auto& a, const auto& b) { return tg::minimum(a, b); });
    two([](const auto& a, const auto& b) { return tg::square(a - b); });
}

void reductions() {
    one([](const auto& a) { return tg::sum(a); });
    one([](const auto& a) { return tg::mean(a); });
    one([](const auto& a) { return tg::max(a); });
    one([](const auto& a) { return tg::sum(tg::square(a)); });
    one([](const auto& a) { return tg::mean(tg::square(a)); });
    one([](const auto& a) { return tg::mean(tg::abs(a)); });
    one([](const auto& a) { return tg::sum(tg::exp(a)); });
    two([](const auto& a, const auto& b) { return tg::mean(tg::square(a - b)); });
    two([](const auto& a, const auto& b) { return tg::sum(a * b); });
    one([](const auto& a) { return tg::softmax(a); });
    one([](const auto& a) { return tg::log_softmax(a); });
}

// The formulas of a loss, an optimizer and common layers in training, in one mode.
struct classifier {
    constexpr auto operator()(auto scope, auto in) const {
        auto rectified = tg::relu(tg::dense(scope / "first", in, {.units = 4}));
        auto bent = tg::tanh(tg::dense(scope / "second", rectified, {.units = 4}));
        auto normalized = tg::layer_normalization(scope / "third", bent);
        return tg::dense(scope / "last", tg::dropout(scope / "fourth", normalized, {.rate = 0.5}), {.units = 3});
    }
};
struct score {
    constexpr auto operator()(auto scope, auto in) const {
        auto h = tg::sigmoid(tg::dense(scope / "first", in, {.units = 4}));
        return tg::dense(scope / "last", tg::batch_normalization(scope / "norm", h), {.units = 1});
    }
};
struct linear {
    constexpr auto operator()(auto scope, auto in) const { return tg::dense(scope / "only", in, {.units = 1}); }
};

struct picture {
    constexpr auto operator()(auto scope, auto image) const {
        auto h = tg::relu(tg::conv2d(scope / "first", image, {.filters = 4}));
        h = tg::max_pooling2d(tg::batch_normalization(scope / "norm", h), {.pool_size = {2, 2}});
        return tg::dense(scope / "last", tg::flatten(h), {.units = 1});
    }
};

template <class Mode, class Model, class Loss, class Optimizer>
void train(const Model& model, const Loss& loss, const Optimizer& optimizer) {
    auto compiled = tg::compile<Mode>(model, tg::spec<float, tg::dyn, 3>{}, loss, optimizer);
    tg::data::dataset set;
    set.add("x", std::vector<float>(6), {3});
    if constexpr (std::is_same_v<Loss, tg::sparse_softmax_cross_entropy>)
        set.add("y", std::vector<std::int32_t>(2), {});
    else
        set.add("y", std::vector<float>(2), {1});
    (void)compiled.fit(set, {.epochs = 1, .batch_size = 2});
    (void)compiled.predict(x);
}

template <class Mode>
void training() {
    train<Mode>(classifier{}, tg::sparse_softmax_cross_entropy{}, tg::adam{});
    train<Mode>(score{}, tg::sigmoid_cross_entropy{}, tg::momentum{});
    train<Mode>(linear{}, tg::mean_squared_error{}, tg::sgd{});
    train<Mode>(linear{}, tg::binary_cross_entropy{}, tg::nesterov_momentum{});
}

} // namespace

int main() {
    formulas();
    reductions();
    training<tg::eager>();
    training<tg::graph>();
    auto pictures =
        tg::compile<tg::graph>(picture{}, tg::spec<float, tg::dyn, 8, 8, 3>{}, tg::sigmoid_cross_entropy{}, tg::adam{});
    (void)pictures.train_on_batch(tg::zeros<float>({2, 8, 8, 3}), tg::zeros<float>({2, 1}));
}
