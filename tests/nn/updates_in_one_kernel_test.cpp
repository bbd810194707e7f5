#include <tapegraph/nn/optimizers/all.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

/// In eager mode an elementwise update of an optimizer is one kernel, which writes in place.

namespace updates_in_one_kernel_test {

namespace tg = tapegraph;

/// The same optimizer, whose functions the compiler cannot run: its update is a kernel per assignment.
template <class Optimizer>
struct not_constexpr : Optimizer {
    static void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        Optimizer::update(slots, w, g, n);
    }
};
/// Updates that depend on more than elements.
struct by_rank : tg::sgd {
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        if (shape_of(w).rank() == 2)
            slots.assign(w, w - n[0] * g);
        else
            slots.assign(w, w + n[0] * g);
    }
};
struct by_extent : tg::sgd {
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        slots.assign(w, w - n[0] * g * static_cast<double>(shape_of(w).elements()));
    }
};
struct twice : tg::sgd { // the second assignment counts
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        slots.assign(w, w + n[0] * g);
        slots.assign(w, w - n[0] * g);
    }
};
struct of_tensors : tg::sgd { // no model in graph mode takes it
    static void update(const auto& slots, const tg::tensor<float>& w, const tg::tensor<float>& g, const auto& n) {
        slots.assign(w, w - n[0] * g);
    }
};

template <class Optimizer>
constexpr bool elementwise = tg::detail::updates_elementwise<Optimizer, float>;

TEST_CASE("updates in one kernel: which are") {
    CHECK(elementwise<tg::sgd>);
    CHECK(elementwise<tg::nesterov_momentum>);
    CHECK(elementwise<tg::adam>);
    CHECK(elementwise<tg::adamw>);
    CHECK(elementwise<tg::rmsprop>);
    CHECK(tg::detail::updates_elementwise<tg::adam, double>);
    CHECK_FALSE(elementwise<tg::basic_adamw<tg::except<"*/bias">>>); // depends on the path
    CHECK_FALSE(elementwise<tg::lamb>);                              // has norms
    CHECK_FALSE(elementwise<tg::muon>);
    CHECK_FALSE(elementwise<by_rank>);
    CHECK_FALSE(elementwise<by_extent>);
    CHECK_FALSE(elementwise<twice>);
    CHECK_FALSE(elementwise<of_tensors>);
    CHECK_FALSE(elementwise<not_constexpr<tg::adam>>);
}

template <class T>
tg::tensor<T> values(const tg::shape& dims, double scale) {
    auto t = tg::tensor<T>::uninitialized(dims);
    for (std::int64_t i = 0; i < t.size(); ++i)
        t.mutable_data()[i] = static_cast<T>(scale * (static_cast<double>(i * 37 % 101) - 50));
    return t;
}
template <class T>
bool same_bits(const tg::tensor<T>& a, const tg::tensor<T>& b) {
    return a.shape() == b.shape() &&
           std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}

template <class Optimizer, class T>
void check_bits() {
    for (const tg::shape& dims : {tg::shape{}, tg::shape{0}, tg::shape{1}, tg::shape{7, 5}, tg::shape{513},
                                  tg::shape{3, 11003}}) { // more than a tile, and than threads share out
        CAPTURE(to_string(dims));
        tg::tensor<T> w = values<T>(dims, 0.01), other = values<T>(dims, 0.01);
        tg::applied one(Optimizer{}, w);
        tg::applied several(not_constexpr<Optimizer>{}, other);
        for (int step = 0; step < 4; ++step) {
            tg::tensor<T> g = values<T>(dims, 0.003 * (step - 1)); // one of them zero
            if (g.size() > 3 && step == 3) {                       // awkward values
                g.mutable_data()[0] = std::numeric_limits<T>::infinity();
                g.mutable_data()[1] = std::numeric_limits<T>::denorm_min();
                g.mutable_data()[2] = std::numeric_limits<T>::quiet_NaN();
            }
            one.apply_gradients({g});
            several.apply_gradients({g});
            CHECK(same_bits(w, other));
        }
        for (tg::variable& v : one.state())
            CHECK(same_bits(v.value<T>(), several.state()[v.path()].template value<T>()));
    }
}

TEST_CASE("updates in one kernel: the bits of separate ones") {
    check_bits<tg::sgd, float>();
    check_bits<tg::nesterov_momentum, double>();
    check_bits<tg::adam, float>();
    check_bits<tg::rmsprop, float>();
}

TEST_CASE("updates in one kernel: they write in place, where nobody else sees it") {
    tg::tensor<float> w = values<float>({5, 3}, 0.1);
    const tg::tensor<float> g = values<float>({5, 3}, 0.2);
    tg::applied optimizer(tg::momentum{}, w);
    optimizer.apply_gradients({g});
    const float* const elements = w.data();
    const float* const state = static_cast<const float*>(optimizer.state()["0/momentum"].data().read());
    optimizer.apply_gradients({g});
    CHECK(w.data() == elements);
    CHECK(optimizer.state()["0/momentum"].data().read() == state);

    const tg::tensor<float> copy = w;
    const float before = copy.data()[1];
    optimizer.apply_gradients({g});
    CHECK(copy.data() == elements);
    CHECK(copy.data()[1] == before);
    CHECK(w.data()[1] != before);

    // A tensor on a tape may not be written to: it gets other memory, too.
    tg::gradient_tape tape;
    tape.watch(w);
    const auto y = tg::eval(sum(w * 2));
    const float* const followed = w.data();
    optimizer.apply_gradients({g});
    CHECK(w.data() != followed);
    CHECK(w.tape_index().serial == 0);
}

/// Two layers, so that there are several variables.
struct network {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = relu(tg::dense(scope / "first", x, {.units = 37}));
        return tg::dense(scope / "second", h, {.units = 3});
    }
};
template <class Mode, class Optimizer>
auto compiled(const Optimizer& optimizer, bool check_finite = false) {
    return tg::compile<Mode>(network{}, tg::spec<float, tg::dyn, 11>{}, tg::mean_squared_error{}, optimizer,
                             tg::compile_options{.seed = 3, .check_finite = check_finite});
}

TEST_CASE("updates in one kernel: both modes have the same bits, also where a variable is frozen") {
    auto graph = compiled<tg::graph>(tg::adam{.learning_rate = 0.01});
    auto eager = compiled<tg::eager>(tg::adam{.learning_rate = 0.01});
    const auto x = values<float>({5, 11}, 0.1), y = values<float>({5, 3}, 0.05);
    for (int step = 0; step < 6; ++step) {
        if (step == 2 || step == 4)
            for (tg::variable_list* v : {&graph.variables(), &eager.variables()})
                v->set_trainable("first/kernel", step == 4);
        CHECK(graph.train_on_batch(x, y).loss == eager.train_on_batch(x, y).loss);
    }
    for (tg::variable& v : graph.variables())
        CHECK(same_bits(v.value<float>(), eager.variables()[v.path()].value<float>()));
}

TEST_CASE("updates in one kernel: an update that is not finite changes nothing") {
    auto model = compiled<tg::eager>(tg::adam{.learning_rate = std::numeric_limits<double>::max()}, true);
    const auto before = model.variables()["first/kernel"].value<float>();
    const auto x = values<float>({5, 11}, 0.1), y = values<float>({5, 3}, 0.05);
    CHECK_THROWS_AS(model.train_on_batch(x, y), tg::numeric_error);
    CHECK(same_bits(before, model.variables()["first/kernel"].value<float>()));
    for (tg::variable& v : model.variables())
        if (v.optimizer_state()) CHECK(same_bits(v.value<float>(), tg::eval(zeros_like(v.value<float>()))));
}

} // namespace updates_in_one_kernel_test
