#include "scan_cells.hpp"

#include <nn/models.hpp>

namespace scan_model_test {

/// A model with a cell of its own: both modes train alike.

using namespace nn_test;

namespace {

// A gated recurrent unit without biases, as in Cho et al. 2014.
struct gated_cell {
    constexpr auto operator()(auto h, auto x, auto w, auto r, auto w_new, auto r_new) const {
        const auto gates = tg::split<2>(tg::eval(tg::sigmoid(matmul(x, w) + matmul(h, r))), 1);
        const auto candidate = tanh(matmul(x, w_new) + matmul(tg::eval(gates[1] * h), r_new));
        const auto next = tg::eval(gates[0] * h + (1 - gates[0]) * candidate);
        return std::pair{next, next};
    }
};
struct gated_model {
    constexpr auto operator()(auto scope, auto x) const {
        const auto make = [&](const char* name, const tg::shape& dims) {
            return scope.variable_like(x, name, dims, {.initializer = tg::init::glorot_uniform{}});
        };
        const auto w = make("kernel", {2, 12}), r = make("recurrent_kernel", {6, 12});
        const auto w_new = make("new_kernel", {2, 6}), r_new = make("new_recurrent_kernel", {6, 6});
        tg::shape state;
        state.push_back(tg::shape_of(x)[0]);
        state.push_back(6);
        const auto [last, sequence] =
            tg::scan(gated_cell{}, tg::fill<double>(x, state, 0), x, {.recompute = false}, w, r, w_new, r_new);
        return tg::dense(scope / "score", last, {.units = 1});
    }
};
using sequences = tg::spec<double, tg::dyn, tg::dyn, 2>;

template <class Mode>
auto make() {
    return tg::compile<Mode>(gated_model{}, sequences{}, tg::sigmoid_cross_entropy{}, tg::adam{.learning_rate = 0.05},
                             {.seed = 3});
}

} // namespace

TEST_CASE("scan: a model with a cell of its own trains, in both modes alike") {
    auto graph = make<tg::graph>();
    auto eager = make<tg::eager>();
    double first = 0, last = 0;
    for (int step = 0; step < 40; ++step) {
        // Whether the first element of the sequence is positive: the state has to carry it.
        const std::int64_t batch = 16, time = 4 + step % 3;
        const auto x = noise<double>({batch, time, 2}, 10 + static_cast<std::uint64_t>(step));
        auto y = tg::zeros<double>({batch, 1});
        for (std::int64_t b = 0; b < batch; ++b) y.set(x(b, 0, 0) > 0, b, 0);
        const double loss = graph.train_on_batch(x, y).loss;
        if (step < 5) CHECK(loss == doctest::Approx(eager.train_on_batch(x, y).loss).epsilon(1e-12));
        (step < 5 ? first : last) = loss;
    }
    CHECK(last < 0.5 * first);
    const auto x = noise<double>({3, 9, 2}, 1);
    CHECK(graph.predict(x).shape() == tg::shape{3, 1});
}

} // namespace scan_model_test
