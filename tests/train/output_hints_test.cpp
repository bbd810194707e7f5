#include <nn/every_loss.hpp>
#include <nn/models.hpp>
#include <support/captured_stderr.hpp>
#include <support/messages.hpp>

#include <algorithm>
#include <string>
#include <utility>

/// What `compile` says of outputs under losses that apply the same once more, and that it says nothing of others.

namespace output_hints_test {

using namespace nn_test;

namespace {

enum class last { nothing, softmax, log_softmax, sigmoid, relu };

/// Each has a type of its own, so that each is told; Unit is the number of outputs.
template <last Last, int Units = 3>
struct ending {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::dense(scope / "block" / "score", x, {.units = Units});
        if constexpr (Last == last::softmax)
            return softmax(h);
        else if constexpr (Last == last::log_softmax)
            return log_softmax(h);
        else if constexpr (Last == last::sigmoid)
            return tg::eval(sigmoid(h));
        else if constexpr (Last == last::relu)
            return tg::eval(relu(h));
        else
            return h;
    }
};
struct two_outputs {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::outputs{tg::output<"class">(softmax(tg::dense(scope / "class", x, {.units = 3}))),
                           tg::output<"box">(tg::dense(scope / "box", x, {.units = 2}))};
    }
};

using input = tg::spec<float, tg::dyn, 4>;

template <class Mode, class Model, class... More>
std::string hints_from(const Model& model, const More&... more) {
    return test::captured_stderr([&] { static_cast<void>(tg::compile<Mode>(model, input{}, more...)); });
}
long lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

/// Two layers over one input.
template <tg::fixed_string First, tg::fixed_string Second, int Units = 3>
struct two_layers {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::eval(tg::dense(scope / "block" / First.view(), x, {.units = 3}) +
                        sum(tg::dense(scope / "block" / Second.view(), x, {.units = Units})));
    }
};

} // namespace

TEST_CASE("hints: an activation that the loss applies itself is reported once, in graph and in eager mode") {
    const std::string first = hints_from<tg::graph>(ending<last::softmax>{}, tg::softmax_cross_entropy{}, tg::sgd{});
    CHECK(
        first ==
        "tapegraph: hint: the output is softmax of layer 'block/score', and softmax_cross_entropy takes logits: it "
        "applies "
        "softmax itself. Return what softmax is given, or train with categorical_cross_entropy (TAPEGRAPH_HINTS=0: no "
        "hints)\n");
    CHECK(hints_from<tg::graph>(ending<last::softmax>{}, tg::softmax_cross_entropy{}, tg::sgd{}).empty());
    CHECK(hints_from<tg::eager>(ending<last::softmax>{}, tg::softmax_cross_entropy{}, tg::sgd{})
              .empty()); // the same words

    const std::string second = hints_from<tg::eager>(ending<last::sigmoid>{}, tg::sigmoid_cross_entropy{}, tg::sgd{});
    CHECK(support::contains(second,
                            "the output is sigmoid of layer 'block/score', and sigmoid_cross_entropy takes logits"));
    CHECK(support::contains(second, "or train with binary_cross_entropy"));
    CHECK(lines(second) == 1);
    CHECK(hints_from<tg::eager>(ending<last::sigmoid>{}, tg::sigmoid_cross_entropy{}, tg::sgd{}).empty());

    const std::string sparse =
        hints_from<tg::eager>(ending<last::softmax>{}, tg::weighted{tg::sparse_softmax_cross_entropy{}}, tg::sgd{},
                              tg::metrics{tg::sparse_categorical_accuracy{}});
    CHECK(support::contains(sparse, "or train with sparse_categorical_cross_entropy"));
    CHECK(lines(sparse) == 1);
    const std::string logarithm =
        hints_from<tg::eager>(ending<last::log_softmax>{}, tg::categorical_cross_entropy{}, tg::sgd{});
    CHECK(support::contains(logarithm,
                            "takes probabilities: it applies the logarithm itself. Return what log_softmax is given "
                            "and train with softmax_cross_entropy"));
    const std::string named = hints_from<tg::eager>(
        two_outputs{},
        tg::losses{tg::on<"class">(tg::smoothed<tg::softmax_cross_entropy>{}), tg::on<"box">(tg::huber{})}, tg::sgd{});
    CHECK(support::contains(named, "output 'class' is softmax of layer 'class', and softmax_cross_entropy"));
    CHECK(lines(named) == 1);
}

TEST_CASE("hints: one class is none") {
    CHECK(support::contains(
        hints_from<tg::eager>(ending<last::nothing, 1>{}, tg::softmax_cross_entropy{}, tg::sgd{}),
        "the output has one class, of which softmax_cross_entropy is always 0: give as many outputs as there "
        "are classes, or train with sigmoid_cross_entropy"));
    CHECK(support::contains(hints_from<tg::eager>(ending<last::nothing, 1>{}, tg::mean_squared_error{}, tg::sgd{},
                                                  tg::metrics{tg::categorical_accuracy{}}),
                            "the output has one class, of which categorical_accuracy is always 1"));
}

TEST_CASE("hints: none for correct models, for prediction alone, and where hints are off") {
    CHECK(hints_from<tg::eager>(ending<last::nothing>{}, tg::softmax_cross_entropy{}, tg::sgd{}).empty());
    CHECK(hints_from<tg::eager>(ending<last::log_softmax>{}, tg::sparse_softmax_cross_entropy{}, tg::sgd{})
              .empty()); // changes nothing
    CHECK(hints_from<tg::eager>(ending<last::softmax>{}, tg::categorical_cross_entropy{}, tg::sgd{}).empty());
    CHECK(hints_from<tg::eager>(ending<last::sigmoid>{}, tg::binary_cross_entropy{}, tg::sgd{}).empty());
    CHECK(hints_from<tg::eager>(ending<last::sigmoid>{}, tg::mean_squared_error{}, tg::sgd{},
                                tg::metrics{tg::binary_accuracy{}, tg::categorical_accuracy{}})
              .empty());
    CHECK(hints_from<tg::eager>(ending<last::relu>{}, tg::poisson{}, tg::sgd{}).empty());
    CHECK(hints_from<tg::graph>(ending<last::sigmoid, 2>{}).empty());
    tg::show_hints(false);
    const std::string off = hints_from<tg::eager>(ending<last::softmax>{}, tg::sigmoid_cross_entropy{}, tg::sgd{});
    tg::show_hints(true);
    CHECK(off.empty());
    CHECK(support::contains(hints_from<tg::eager>(ending<last::softmax>{}, tg::sigmoid_cross_entropy{}, tg::sgd{}),
                            "applies sigmoid"));
}

TEST_CASE("hints: what every loss does with its output is known") {
    every_loss::for_every_loss([]<class Loss>(const Loss&) {
        INFO(Loss::name);
        CHECK(tg::detail::use_of(tg::detail::name_in_hints<Loss>()) != nullptr);
    });
}

TEST_CASE("hints: two names that look like one and a misspelling") {
    const std::string first =
        hints_from<tg::eager>(two_layers<"encoder", "encodre">{}, tg::mean_squared_error{}, tg::sgd{});
    CHECK(support::contains(first,
                            "layers 'block/encoder' and 'block/encodre' have weights of the same shapes, and each "
                            "its own: to share them, make the scope once and give it to both"));
    CHECK(lines(first) == 1);
    CHECK(hints_from<tg::eager>(two_layers<"decoder", "decodre", 2>{}, tg::mean_squared_error{}, tg::sgd{}).empty());
    CHECK(hints_from<tg::eager>(two_layers<"left", "right">{}, tg::mean_squared_error{}, tg::sgd{}).empty());

    using tg::detail::look_misspelt;
    CHECK(look_misspelt("embedding", "embeding"));
    CHECK(look_misspelt("embed", "embedd"));
    CHECK(look_misspelt("shared", "shsred"));
    CHECK(look_misspelt("hidden", "ihdden"));
    for (const auto& [a, b] :
         {std::pair("encoder", "encoder"), std::pair("q_proj", "k_proj"), std::pair("hidden1", "hidden2"),
          std::pair("encode", "encoder"), std::pair("block_a", "block_b"), std::pair("gate", "gats"),
          std::pair("conv12", "conv21"), std::pair("input", "output"), std::pair("", "a")}) {
        const std::string name = a;
        INFO(name);
        CHECK(!look_misspelt(a, b));
        CHECK(!look_misspelt(b, a));
    }
    CHECK(tg::detail::paths_look_misspelt("a/encoder/out", "a/encodre/out"));
    CHECK(!tg::detail::paths_look_misspelt("a/encoder/out", "a/encodre/in"));
    CHECK(!tg::detail::paths_look_misspelt("encoder", "encoder/encoder"));
}

} // namespace output_hints_test
