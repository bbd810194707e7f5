#include <nn/models.hpp>

#include <cmath>

namespace gradients_test {

using namespace nn_test;

// Gradients of whole layers in training, both modes, against central differences of the loss in double.

namespace {

struct signals { // [batch, 11, 4]
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::conv1d(scope / "a", x,
                            {.filters = 4, .kernel_size = 3, .stride = 2, .padding = tg::padding::same(), .groups = 2});
        h = tg::batch_normalization(scope / "n", tanh(h));
        h = tg::conv1d(scope / "b", h,
                       {.filters = 3,
                        .kernel_size = 2,
                        .stride = 2,
                        .padding = tg::padding::causal(),
                        .dilation = 3,
                        .use_bias = false});
        return tg::dense(scope / "d", tg::flatten(tanh(h)), {.units = 2});
    }
};
struct pooled_signals { // [batch, 11, 3]
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::average_pooling1d(x, {.pool_size = 3, .stride = 2, .padding = tg::padding::same()});
        h = tg::conv1d(scope / "a", h, {.filters = 3, .kernel_size = 2, .padding = tg::padding::causal()});
        h = tg::max_pooling1d(tanh(h), {.pool_size = 2});
        h = tg::concat(tg::global_average_pooling1d(h), tg::global_max_pooling1d(h));
        return tg::dense(scope / "d", h, {.units = 2});
    }
};
struct images { // [batch, 7, 6, 2]
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::conv2d(scope / "a", x,
                            {.filters = 4, .kernel_size = {3, 2}, .stride = {1, 2}, .padding = tg::padding::same()});
        h = tg::max_pooling2d(h, {.pool_size = {3, 2}, .stride = {2, 1}});
        h = tg::batch_normalization(scope / "n", h, {.center = false});
        h = tg::conv2d(scope / "b", h, {.filters = 2, .kernel_size = {2, 1}, .dilation = {2, 1}, .groups = 2});
        return tg::dense(scope / "d", tg::flatten(tanh(h)), {.units = 2});
    }
};

template <class Mode, class Model, class Spec>
void check_gradients(const Model& model, Spec spec, const tg::tensor<double>& x) {
    const auto y = noise<double>({3, 2}, 6);
    auto m = tg::compile<Mode>(model, spec, tg::mean_squared_error{}, tg::sgd{}, {.seed = 4});
    for (int i = 0; i < m.variables().size(); ++i) { // away from the zeros and ones of the start
        tg::variable& v = m.variables().at(i);
        v.assign(tg::tensor<double>(v.template value<double>() + 0.2 * noise<double>(v.shape(), 60 + static_cast<std::uint64_t>(i))));
    }
    const auto loss = [&] { // a step of length zero: the loss as training sees it
        m.optimizer().learning_rate = 0;
        return m.train_on_batch(x, y).loss;
    };
    constexpr double rate = 4096; // a power of two: the gradient's digits stay
    std::vector<tg::tensor<double>> before, after;
    for (const tg::variable& v : m.variables()) before.push_back(v.template value<double>());
    m.optimizer().learning_rate = rate;
    m.train_on_batch(x, y);
    for (const tg::variable& v : m.variables()) after.push_back(v.template value<double>());
    for (int i = 0; i < m.variables().size(); ++i) m.variables().at(i).assign(before[static_cast<std::size_t>(i)]);

    int checked = 0;
    for (int i = 0; i < m.variables().size(); ++i) {
        tg::variable& v = m.variables().at(i);
        if (!v.trainable()) continue;
        CAPTURE(v.path());
        const auto& start = before[static_cast<std::size_t>(i)];
        for (std::int64_t k = 0; k < v.size(); ++k) {
            CAPTURE(k);
            constexpr double step = 1e-5; // error: step^2 times a third derivative, and 1e-16 / step
            double side[2];
            for (const int s : {0, 1}) {
                auto moved = start;
                moved.mutable_data()[k] += s == 0 ? step : -step;
                v.assign(moved);
                side[s] = loss();
            }
            v.assign(start);
            const double found = (start.data()[k] - after[static_cast<std::size_t>(i)].data()[k]) / rate;
            CHECK(std::abs(found - (side[0] - side[1]) / (2 * step)) < 2e-8);
            ++checked;
        }
    }
    CHECK(checked == m.trainable_parameter_count());
}

} // namespace

TEST_CASE("gradients of conv1d, batch normalization and dense") {
    each_mode([](auto mode) {
        check_gradients<decltype(mode)>(signals{}, tg::spec<double, tg::dyn, 11, 4>{}, noise<double>({3, 11, 4}, 1));
    });
}

TEST_CASE("gradients of a network between poolings of series") {
    each_mode([](auto mode) {
        check_gradients<decltype(mode)>(pooled_signals{}, tg::spec<double, tg::dyn, 11, 3>{},
                                        noise<double>({3, 11, 3}, 3));
    });
}

TEST_CASE("gradients of conv2d, overlapping max pooling, batch normalization without centre") {
    each_mode([](auto mode) {
        check_gradients<decltype(mode)>(images{}, tg::spec<double, tg::dyn, 7, 6, 2>{}, noise<double>({3, 7, 6, 2}, 2));
    });
}

} // namespace gradients_test
