#include <nn/models.hpp>

namespace modes_refusals_test {

/// What was promised in specs is asked for in both modes: what one refuses the other refuses, with the same words.

using namespace nn_test;

namespace {

template <class F>
std::string message(const F& f) {
    try {
        f();
    } catch (const tg::error& e) {
        return e.what();
    }
    return "accepted";
}

/// One function in both modes.
template <class F, class... Specs>
struct refusing {
    refusing(const F&, Specs...) {}

    std::string operator()(const tg::tensor<typename Specs::element_type>&... x) {
        const std::string in_graph = message([&] { graph(x...); }), in_eager = message([&] { eager(x...); });
        CHECK(in_graph == in_eager);
        CHECK(in_graph.find('\n') == std::string::npos);
        return in_eager;
    }
    tg::graph_function<F, Specs...> graph;
    tg::eager_function<F, Specs...> eager;
};

tg::tensor<float> ones(const tg::shape& dims) { return tg::ones<float>(dims); }

} // namespace

TEST_CASE("functions: ranks, extents and symbols of arguments") {
    refusing sum_of([](auto x, auto y) { return sum(x, 1) + y; }, tg::spec<float, tg::dyn, 3>{},
                    tg::spec<float, tg::dyn>{});
    CHECK(sum_of(ones({2, 3}), ones({2})) == "accepted");
    CHECK(sum_of(ones({2, 3}), ones({3})).ends_with("extent of axis 0 is 3, but another input has 2 there"));
    CHECK(sum_of(ones({2, 3}), ones({1})).ends_with("extent of axis 0 is 1, but another input has 2 there"));
    CHECK(sum_of(ones({2, 4}), ones({2})).ends_with("extent of axis 1 is 4, expected 3"));
    CHECK(sum_of(ones({2, 1}), ones({2})).ends_with("extent of axis 1 is 1, expected 3"));
    CHECK(sum_of(ones({3}), ones({3})).ends_with("has shape [?, 3], fed with [3]"));
    CHECK(sum_of(ones({2, 3}), ones({2, 1})).ends_with("has shape [?], fed with [2, 1]"));
    CHECK(sum_of(ones({2, 3}), ones({2})) == "accepted"); // and goes on

    refusing named([](auto x, auto y) { return x * y; }, tg::spec<float, tg::dyn, tg::dim<"n">>{},
                   tg::spec<float, tg::dim<"n">>{});
    CHECK(named(ones({2, 3}), ones({3})) == "accepted");
    CHECK(named(ones({2, 3}), ones({1})).ends_with("extent of axis 0 is 1, but another input has 3 there"));
}

TEST_CASE("functions: what operations require of symbolic extents") {
    refusing cut([](auto x) { return slice(x, {{0, 3}}); }, tg::spec<float, tg::dyn>{});
    CHECK(cut(ones({3})) == "accepted");
    CHECK(cut(ones({2})) ==
          "slice: extent batch is 2, at least 3 is needed"); // not clipped: the result has three elements
    refusing known([](auto x) { return slice(x, {{0, 3}}); }, tg::spec<float, 2>{});
    CHECK(known(ones({2})) == "accepted"); // an extent that is known clips, as in NumPy
    refusing taken([](auto x) { return take(x, 3); }, tg::spec<float, tg::dyn>{});
    CHECK(taken(ones({3})) == "slice: extent batch is 3, at least 4 is needed");
    refusing added([](auto x, auto y) { return x + y; }, tg::spec<float, tg::dim<"a">>{},
                   tg::spec<float, tg::dim<"b">>{});
    CHECK(added(ones({3}), ones({3})) == "accepted");
    CHECK(added(ones({1}), ones({3})) == "extents that must be equal differ: a is 1, b is 3"); // a symbol does not broadcast
    refusing halves([](auto x) { return tg::split<2>(x)[0]; }, tg::spec<float, tg::dyn>{});
    CHECK(halves(ones({4})) == "accepted");
    CHECK(halves(ones({5})).starts_with("extents that must be equal differ"));
    refusing rows([](auto x) { return reshape(x, {-1, 4}); }, tg::spec<float, tg::dyn, 2>{});
    CHECK(rows(ones({2, 2})) == "accepted");
    CHECK(rows(ones({3, 2})) != "accepted");
    refusing windows([](auto x) { return tg::max_pooling1d(x, {.pool_size = 3}); }, tg::spec<float, 1, tg::dyn, 1>{});
    CHECK(windows(ones({1, 2, 1})).starts_with("pooling: extent "));
    CHECK(windows(ones({1, 2, 1})).ends_with(" is 0, at least 1 is needed"));
    refusing looked_up([](auto x, auto i) { return gather(x, i); }, tg::spec<float, 3>{},
                       tg::spec<std::int32_t, tg::dyn>{});
    CHECK(looked_up(ones({3}), tg::tensor<std::int32_t>{0, 3}) == "gather: index 3 at position 1 is outside [0, 3)");
    refusing largest([](auto x) { return argmax(x, 0); }, tg::spec<float, tg::dyn, 2>{});
    CHECK(largest(ones({0, 2})) == "argmax: axis 0 has no elements");
}

namespace {

struct windowed {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "out", slice(x, {tg::all, {0, 4}}), {.units = 2});
    }
};

template <class Mode>
auto trained(const tg::compile_options& options = {}) {
    return tg::compile<Mode>(windowed{}, tg::spec<float, tg::dyn, tg::dyn>{}, tg::sparse_softmax_cross_entropy{},
                             tg::sgd{}, options);
}

} // namespace

TEST_CASE("models: batches and labels that do not fit") {
    auto graph = trained<tg::graph>();
    auto eager = trained<tg::eager>();
    const auto refused = [&](const auto& f) {
        const std::string in_graph = message([&] { f(graph); }), in_eager = message([&] { f(eager); });
        CHECK(in_graph == in_eager);
        return in_eager;
    };
    const tg::tensor<std::int32_t> labels{0, 1};
    const auto step = [&](const auto& x, const auto& y) {
        const std::string text = refused([&](auto& model) { (void)model.train_on_batch(x, y); });
        CHECK(refused([&](auto& model) { (void)model.evaluate(x, y); }) == text);
        return text;
    };
    CHECK(step(ones({2, 4}), labels) == "accepted");
    CHECK(step(ones({2, 5}), labels) == "accepted");
    CHECK(step(ones({2, 3}), labels) == "slice: extent axis 1 of 'input' is 3, at least 4 is needed");
    CHECK(step(ones({3, 4}), labels) == "input 'labels of sparse_softmax_cross_entropy': extent of axis 0 is 2, but another input has 3 there");
    CHECK(step(ones({2, 4}), reshape(labels, {2, 1})) == "input 'labels of sparse_softmax_cross_entropy' has shape [?], fed with [2, 1]");
    CHECK(step(ones({2, 4}), ones({2})) == "input 'labels of sparse_softmax_cross_entropy' is i32, fed with f32");
    CHECK(step(ones({2}), labels) == "input has rank 1, the model takes rank 2");
    CHECK(step(ones({0, 4}), tg::tensor<std::int32_t>{}) == "input: the batch is empty");
    CHECK(step(ones({2, 4}), tg::tensor<std::int32_t>{0, 2}) != "accepted"); // no such class
    CHECK(refused([](auto& model) {
              (void)model.predict(ones({2, 3}));
          }) == "slice: extent axis 1 of 'input' is 3, at least 4 is needed");
    CHECK(refused([](auto& model) {
              (void)model.predict(ones({2, 4, 1}));
          }) == "input has rank 3, the model takes rank 2");
    CHECK(graph.step() == eager.step()); // what was refused was no step
}

namespace {

/// Arithmetic of the step's numbers with one another, functions and questions of them.
struct tuned {
    double rate = 0.1, beta = 0.9;
    static constexpr int count = 2;
    std::array<double, count> numbers(std::int64_t step) const { return {rate / static_cast<double>(step), beta}; }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto [rate, beta] = n;
        const auto average = slots.state(w, "average");
        const auto kept = eval(1 - n[1]);
        const auto next = eval(beta * average + kept * square(g) * n.size() / 2);
        slots.assign(average, next);
        const auto step = -rate * sqrt(beta + 0.3) / (2 + exp(rate) * rate);
        slots.assign(w, where(rate > 0.03, w + step * g / (sqrt(next) + 0.001 * maximum(rate, beta)), w - rate * g));
    }
};

template <class Mode, class T>
std::vector<T> weights_after(int steps) {
    auto model = tg::compile<Mode>(small_mlp{}, mlp_spec<T>{}, tg::mean_squared_error{}, tuned{}, {.seed = 3});
    for (int s = 0; s < steps; ++s) model.train_on_batch(noise<T>({4, 6}, 5), noise<T>({4, 3}, 6));
    return model.variables()["hidden/kernel"].template value<T>().to_vector();
}

} // namespace

TEST_CASE_TEMPLATE("optimizers calculate with their numbers alike in both modes", T, float, double) {
    const std::vector<T> graph = weights_after<tg::graph, T>(6); // rates on both sides of the question
    CHECK(graph == weights_after<tg::eager, T>(6));
    CHECK(graph != weights_after<tg::graph, T>(5));
}

} // namespace modes_refusals_test
