#include "words.hpp"

#include <nn/every_loss.hpp>

#include <tapegraph/nn.hpp>

#include <type_traits>

namespace training_words_test {

/// Every loss and metric, with derivatives, and every optimizer: the graph made at run time is the compiler's, word for word.

using namespace nn_test;
using words_test::check_words;
using words_test::with_derivative;

namespace {

/// Every loss, of scores of its own that are a variable; weighed by records where it can be. A third of the list.
template <int Part>
struct losses_trace {
    static constexpr void build(tg::ir::model_trace& t) {
        t.training = true;
        const tg::graph_scope scope(&t, 0);
        const tg::graph_node like(&t, t.input("like", tg::dtype::f32, {}));
        auto total = tg::eval(like * 1);
        int number = 0;
        every_loss::for_every_loss([&]<class Loss>(const Loss&) {
            if (number++ % 3 != Part) return;
            const tg::shape dims = std::is_same_v<Loss, tg::ctc> ? tg::shape{3, 3, 4} : tg::shape{3, 4};
            const auto scores = (scope / number).variable_like(like, "scores", dims, {.initializer = tg::init::ones{}});
            tg::ir::trace_objective<Loss>(t, scores);
            const tg::graph_node loss(&t, t.outputs[0].node);
            t.outputs.clear();
            total = tg::eval(total + loss);
        });
        t.outputs.push_back({"loss", total.id()});
    }
};

/// What every metric accumulates.
struct metrics_trace {
    static constexpr void build(tg::ir::model_trace& t) {
        const tg::graph_scope scope(&t, 0);
        const tg::graph_node like(&t, t.input("like", tg::dtype::f32, {}));
        const auto scores = scope.variable_like(like, "scores", {3, 4}, {.initializer = tg::init::ones{}});
        every_loss::for_every_metric([&]<class Metric>(const Metric&, every_loss::labels_of_metric labels) {
            const bool again = std::is_same_v<Metric, tg::basic_auc<3>>; // another one has its name
            if (labels == every_loss::labels_of_metric::elements && !again)
                tg::ir::trace_objective<tg::measured<tg::mean_squared_error, Metric>>(t, scores);
        });
    }
};

struct two_layers {
    static constexpr auto get() { return two_layers{}; }
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::dense(scope / "hidden", x, {.units = 4});
        return tg::dense(scope / "out", tg::eval(tanh(h)), {.units = 3});
    }
};
template <class Optimizer>
using optimizer_trace =
    tg::ir::training_trace<two_layers, mlp_spec<float>, tg::sparse_softmax_cross_entropy, Optimizer>;
template <class... Optimizers>
void check_optimizers(const Optimizers&...) {
    (check_words<optimizer_trace<Optimizers>>(), ...);
}

} // namespace

TEST_CASE("run-time graphs: every loss, word for word") {
    check_words<with_derivative<losses_trace<0>>>();
    check_words<with_derivative<losses_trace<1>>>();
    check_words<with_derivative<losses_trace<2>>>();
}

TEST_CASE("run-time graphs: metrics of every element, word for word") { check_words<metrics_trace>(); }

TEST_CASE("run-time graphs: every optimizer, word for word") {
    check_optimizers(tg::sgd{}, tg::momentum{}, tg::nesterov_momentum{}, tg::adam{}, tg::adadelta{}, tg::adagrad{},
                     tg::adamax{}, tg::adamw{}, tg::amsgrad{}, tg::ftrl{}, tg::lamb{}, tg::lion{}, tg::muon{},
                     tg::nadam{}, tg::proximal_gradient_descent{}, tg::proximal_adagrad{}, tg::rmsprop{},
                     tg::rmsprop_momentum{}, tg::centered_rmsprop{}, tg::centered_rmsprop_momentum{});
}

TEST_CASE("run-time graphs: parts of chains, word for word") {
    check_optimizers(tg::chain{tg::clip_by_value{}, tg::adam{}}, tg::chain{tg::clip_by_norm{}, tg::adam{}},
                     tg::chain{tg::clip_by_global_norm{}, tg::adam{}, tg::weight_average{}},
                     tg::chain{tg::add_weight_decay{}, tg::centralize_gradients{}, tg::sgd{}},
                     tg::chain{tg::accumulate{}, tg::sgd{}}, tg::chain{tg::skip_nonfinite{}, tg::sgd{}},
                     tg::chain{tg::loss_scaling{}, tg::adam{}},
                     tg::chain{tg::sgd{}, tg::keep_within{}, tg::limit_norm{}});
}

} // namespace training_words_test
