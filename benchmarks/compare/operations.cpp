#include "operation.hpp"

#include <tapegraph/compile/training_step.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/optimizers/applied.hpp>

#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

/// Single operations; operations.py has their operands in Python.

namespace {

using namespace compare;

/// A layer of the CNN, valid padding.
template <int Side, int From, int Taps, int To>
prepared convolution(const row& r) {
    constexpr auto f = [](const auto& x, const auto& w) { return conv2d(x, w); };
    using images = tg::spec<float, dyn, Side, Side, From>;
    using filters = tg::spec<float, Taps, Taps, From, To>;
    const auto x = noise({r.size, Side, Side, From}, 1), w = noise({Taps, Taps, From, To}, 0.1f);
    return r.kind == "gradient" ? gradient<images, filters>(f, x, w) : forward<images, filters>(f, x, w);
}

/// An elementwise function of one operand.
template <class F>
prepared activation(F f, const row& r) {
    const auto x = noise({r.size}, 1);
    return r.kind == "gradient" ? gradient<vector>(f, x) : forward<vector>(f, x);
}

/// Additions of eight numbers, one after the other, in eager mode; recorded and differentiated with
/// "gradient".
prepared tiny(const row& r) {
    tg::tensor<float> a = noise({r.size}, 1);
    const auto b = noise({r.size}, 0.01f);
    const bool differentiated = r.kind == "gradient";
    constexpr int count = 1000;
    const auto result = std::make_shared<tg::tensor<float>>();
    prepared p;
    p.operations = count;
    p.step = [=]() mutable {
        if (differentiated) {
            tg::gradient_tape tape;
            tape.watch(a);
            tg::tensor<float> z = a;
            for (int i = 0; i < count; ++i) z = tg::tensor<float>(z + b);
            *result = tape.gradient(z, a);
        } else {
            tg::tensor<float> z = a;
            for (int i = 0; i < count; ++i) z = tg::tensor<float>(z + b);
            *result = z;
        }
    };
    p.numbers = [step = p.step, result](std::int64_t) {
        step();
        return digest(*result);
    };
    return p;
}

/// Adam with a given gradient: a step whose loss is the sum of the products of both. Returns its
/// second input, so that the loss itself is not computed.
struct adam_step {
    static constexpr std::int64_t size = 10'000'000;
    constexpr auto operator()(auto step, auto gradient, auto number) const {
        const auto w = step.variable_like(gradient, "w", {size}, {.initializer = tg::init::zeros{}});
        step.minimize(sum(w * gradient));
        return tg::outputs{tg::output<"number">(tg::eval(number + 1))};
    }
};

/// Updates of ten million numbers by Adam whose gradient is given: a compiled step, or in eager mode
/// an optimizer of a custom loop.
prepared adam_update(const row& r) {
    if (r.size != adam_step::size) throw tg::argument_error("adam: of 10000000 numbers");
    const auto gradient = noise({r.size}, 0.01f);
    std::function<void()> update;
    std::function<std::vector<double>()> digest_of_weight;
    if constexpr (std::is_same_v<tg::COMPARE_MODE, tg::graph>) {
        constexpr tg::inputs inputs{tg::input<"gradient">(tg::spec<float, adam_step::size>{}),
                                    tg::input<"number">(tg::spec<float, 1>{})};
        const auto step = shared(tg::compile_step<tg::graph>(adam_step{}, inputs, tg::adam{}));
        step->variables()["w"].assign(noise({r.size}, 1));
        update = [step, gradient, number = tg::ones<float>({1})] { (*step)(gradient, number); };
        digest_of_weight = [step] { return digest(tg::tensor<float>(step->variables()["w"].data())); };
    } else {
        const auto weight = shared(noise({r.size}, 1));
        const auto optimizer = std::make_shared<tg::applied<tg::adam>>(tg::adam{}, *weight);
        update = [optimizer, weight, all = std::vector<tg::any_tensor>{gradient}] { optimizer->apply_gradients(all); };
        digest_of_weight = [weight] { return digest(*weight); };
    }
    prepared p;
    p.step = update;
    p.numbers = [=](std::int64_t) {
        for (int i = 0; i < 3; ++i) update();
        return digest_of_weight();
    };
    return p;
}

prepared operation(const row& r) {
    if (r.work == "adam") return adam_update(r);
    if (r.work == "add") return tiny(r);
    if (r.work == "conv1") return convolution<50, 3, 3, 150>(r);
    if (r.work == "conv2") return convolution<24, 150, 5, 300>(r);
    if (r.work == "conv3") return convolution<10, 300, 3, 200>(r);
    if (r.work == "matmul")
        return forward<matrix, matrix>([](const auto& x, const auto& w) { return matmul(x, w); },
                                       noise({r.size, r.size}, 1), noise({r.size, r.size}, 0.1f));
    if (r.work == "chain")
        return forward<vector>([](const auto& x) { return tanh(x * 2 + 1) * 3; }, noise({r.size}, 1));
    if (r.work == "gelu") return activation([](const auto& x) { return gelu(x); }, r);
    if (r.work == "gelu_tanh") return activation([](const auto& x) { return gelu(x, tg::approximate); }, r);
    if (r.work == "swish") return activation([](const auto& x) { return swish(x); }, r);
    if (r.work == "softmax") return of_matrix([](const auto& x) { return softmax(x); }, r);
    if (r.work == "sum_of_rows") return of_matrix([](const auto& x) { return sum(x, {1}); }, r);
    if (r.work == "sum_of_columns") return of_matrix([](const auto& x) { return sum(x, {0}); }, r);
    if (r.work == "sum") return forward<vector>([](const auto& x) { return sum(x); }, noise({r.size}, 1));
    if (r.work == "cumulative_sum") return of_matrix([](const auto& x) { return cumulative_sum(x); }, r);
    if (r.work == "sort")
        return forward<matrix>([](const auto& x) { return sort(x); }, noise({r.size / 1000, 1000}, 1));
    if (r.work == "sort_whole") return forward<vector>([](const auto& x) { return sort(x); }, noise({r.size}, 1));
    if (r.work == "top_k")
        return forward<matrix>([](const auto& x) { return top_k(x, 10).values; }, noise({r.size / 1000, 1000}, 1));
    if (r.work == "cross_entropy") {
        static constexpr std::int64_t classes = 50'000;
        constexpr auto f = [](const auto& x) {
            const auto row = tg::arange<std::int32_t>(x, tg::shape_of(x)[0], 0, 7919);
            return tg::sparse_softmax_cross_entropy_with_logits(x, tg::eval(row % classes));
        };
        const auto x = noise({std::max<std::int64_t>(1, r.size / classes), classes}, 1);
        return r.kind == "gradient" ? gradient<matrix>(f, x) : forward<matrix>(f, x);
    }
    if (r.work == "layer_normalization") {
        constexpr auto f = [](const auto& x) {
            return tg::detail::normalized(x, {.first = 1, .last = 1, .epsilon = 1e-3}, false, x, false, x,
                                          std::source_location::current());
        };
        return of_matrix(f, r);
    }
    if (r.work == "lstm") {
        constexpr auto f = [](const auto& x, const auto& w, const auto& u, const auto& b) {
            return tg::lstm(x, w, u, b);
        };
        return gradient<tg::spec<float, dyn, 40, 128>, tg::spec<float, 128, 512>, tg::spec<float, 128, 512>,
                        tg::spec<float, 512>>(f, noise({r.size, 40, 128}, 1), noise({128, 512}, 0.05f),
                                              noise({128, 512}, 0.05f), noise({512}, 0.1f));
    }
    throw tg::argument_error("no operation '" + r.work + "'");
}

} // namespace

int main(int argc, char** argv) {
    return serve(argc, argv, [](const row& r, bool, const std::string&) { return operation(r); });
}
