#include <nn/every_loss.hpp>
#include <support/builders.hpp>
#include <support/messages.hpp>

#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>

/// What labels of another shape than a loss or metric takes come to: never a broadcast. Every function of every loss and metric, on
/// nodes of a trace and on tensors.

namespace label_shapes_test {

namespace tg = tapegraph;
using every_loss::labels_of_metric;
using tg::dtype;

namespace {

// Of every one that is not the right one most broadcast with the outputs below, and gave a number.
const tg::shape candidates[]{{},     {1},    {3},    {4},       {1, 1},    {3, 1},    {1, 3},    {3, 3},
                             {3, 4}, {1, 4}, {4, 3}, {3, 4, 1}, {1, 3, 4}, {3, 1, 4}, {3, 3, 4}, {3, 2}};
const tg::shape outputs[]{{3, 4}, {3, 1}, {3}, {1, 4}, {3, 3, 4}};

/// f(name, call) for each function of a loss; call(x, z).
template <class Loss, class F>
void each_function(const Loss& loss, const F& f) {
    const auto with_numbers = [&](const auto& function) {
        return [&loss, function](const auto& x, const auto& z) {
            if constexpr (tg::detail::numbers_in<Loss>() > 0)
                return function(x, z, loss.numbers());
            else
                return function(x, z);
        };
    };
    f("the call", [&](const auto& x, const auto& z) { return loss(x, z); });
    f("per_record", with_numbers([&](const auto& x, const auto& z, const auto&... n) {
          if constexpr (requires { loss.per_record(x, z, n...); }) return tg::eval(loss.per_record(x, z, n...));
      }));
    f("each", with_numbers([&](const auto& x, const auto& z, const auto&... n) {
          if constexpr (requires { loss.each(x, z, n...); }) return tg::eval(loss.each(x, z, n...));
      }));
    f("right", [&](const auto& x, const auto& z) {
        if constexpr (requires { loss.right(x, z); }) return tg::eval(loss.right(x, z));
    });
    f("accuracy", [&](const auto& x, const auto& z) {
        if constexpr (requires { loss.accuracy(x, z); }) return loss.accuracy(x, z);
    });
}

tg::graph::node input(builders::trace& t, std::string_view name, dtype type, const tg::shape& dims) {
    return {&t, t.input(name, type, dims)};
}
using traced_call = void (*)(const void* call, const tg::graph::node& x, const tg::graph::node& z);
/// Calls a `Call`, of which what follows is compiled once for all.
template <class Call>
constexpr traced_call caller_of = [](const void* call, const tg::graph::node& x, const tg::graph::node& z) {
    (*static_cast<const Call*>(call))(x, z);
};

/// What a trace says of call(x, z) with inputs of these shapes; empty where it is content.
std::string message_from_trace(traced_call run, const void* call, const tg::shape& output, dtype type,
                               const tg::shape& labels) {
    builders::trace t;
    const auto x = input(t, "x", dtype::f32, output), z = input(t, "z", type, labels);
    run(call, x, z);
    return t.error.what == nullptr ? "" : t.error.what;
}
bool is_one_of(const std::string& text, std::initializer_list<const char*> all) {
    for (const char* each : all)
        if (support::contains(text, each)) return true;
    return false;
}

/// A metric's update beside nothing that is kept.
struct nothing_kept {
    static constexpr void add(std::string_view, const tg::shape&, const auto& value) { tg::eval(value); }
};
template <class Metric>
auto updating(const Metric& metric, const auto& weights) {
    return [&metric, weights](const auto& x, const auto& z) {
        static_cast<void>(metric); // of some metrics the type is enough
        if constexpr (tg::detail::numbers_in<Metric>() > 0)
            Metric::update(nothing_kept{}, x, z, weights(x), metric.numbers());
        else
            Metric::update(nothing_kept{}, x, z, weights(x), tg::none{});
    };
}
constexpr auto no_weights = [](const auto&) { return tg::none{}; };

/// One function of a loss; `has`: that the loss has it.
void check_loss(const char* function, bool has, traced_call run, const void* call,
                tg::tensor_spec (*labels_of)(dtype, const tg::shape&), bool is_ctc) {
    INFO(function);
    for (const tg::shape& output : outputs) {
        if (is_ctc && output.rank() != 3) continue;
        const tg::tensor_spec right = labels_of(dtype::f32, output);
        if (right.type == dtype::i32 && output.rank() < 2) continue; // no classes
        for (const tg::shape& labels : candidates) {
            CAPTURE(tg::to_string(output));
            CAPTURE(tg::to_string(labels));
            // Labels of ctc are as long as the longest.
            const bool valid = is_ctc ? labels.rank() == 2 && labels[0] == output[0] : labels == right.dims;
            const std::string message = message_from_trace(run, call, output, right.type, labels);
            if (!has || valid)
                CHECK(message.empty());
            else
                CHECK(is_one_of(message, {"output and labels differ in shape", "labels are not"}));
        }
    }
}

void check_labels(labels_of_metric kind, traced_call update, const void* call) {
    const tg::shape output{3, 4};
    for (const tg::shape& labels : candidates) {
        CAPTURE(tg::to_string(labels));
        const bool alike = labels == output, classes = labels == tg::shape{3};
        for (const dtype type : {dtype::f32, dtype::i32}) {
            const bool valid = kind == labels_of_metric::elements  ? alike
                               : kind == labels_of_metric::classes ? classes
                                                                   : alike || classes;
            if (valid && type == dtype::f32 && !alike) continue; // class numbers are integers
            if (valid && type == dtype::i32 && kind == labels_of_metric::elements) continue;
            const std::string message = message_from_trace(update, call, output, type, labels);
            CHECK(message.empty() == valid);
            if (!valid) CHECK(is_one_of(message, {"output and labels differ in shape", "labels are n"}));
        }
    }
}

/// The update takes weights of the shape that `given` has at that time.
void check_weights(labels_of_metric kind, traced_call update, const void* call, tg::shape& given) {
    const tg::shape output{3, 4};
    const tg::shape right = kind == labels_of_metric::elements ? output : tg::shape{3};
    const dtype type = kind == labels_of_metric::elements ? dtype::f32 : dtype::i32;
    for (const tg::shape& weights : candidates) {
        CAPTURE(tg::to_string(weights));
        given = weights;
        const std::string message = message_from_trace(update, call, output, type, right);
        // Weights of elements stand beside metrics of elements.
        if (weights == tg::shape{} || weights == tg::shape{3})
            CHECK(message.empty());
        else if (!(weights == output))
            CHECK(support::contains(message, "weights must have the first extents"));
    }
}

} // namespace

TEST_CASE("a loss of labels of another shape is refused by a trace, whatever is called") {
    every_loss::for_every_loss([]<class Loss>(const Loss& loss) {
        INFO(Loss::name);
        each_function(loss, []<class Call>(const char* function, const Call& call) {
            using result = decltype(call(std::declval<tg::graph::node>(), std::declval<tg::graph::node>()));
            check_loss(
                function, !std::is_void_v<result>, caller_of<Call>, &call,
                [](dtype type, const tg::shape& output) -> tg::tensor_spec { return Loss::labels(type, output); },
                std::is_same_v<Loss, tg::ctc>);
        });
    });
}

TEST_CASE("a loss of labels of another shape is refused by hand, too") {
    // label_shapes_by_hand_test.cpp has all of them.
    const tg::tensor<float> x{{1}, {2}, {3}}, z{1, 2, 3};
    CHECK_THROWS_AS(tg::mean_squared_error{}(x, z), tg::shape_error);
    CHECK_THROWS_AS(tg::eval(tg::mean_squared_error::each(x, z)), tg::shape_error);
    // A number is the label of every element.
    CHECK(tg::mean_squared_error{}(x, 2.0).item() == doctest::Approx(2.0 / 3));
    CHECK(tg::mean_absolute_error{}(x, 2.0).item() == doctest::Approx(2.0 / 3));
}

TEST_CASE("a metric of labels or weights of other shapes is refused, by a trace and by hand") {
    every_loss::for_every_metric([]<class Metric>(const Metric& metric, labels_of_metric kind) {
        INFO(Metric::name);
        const auto without = updating(metric, no_weights);
        check_labels(kind, caller_of<decltype(without)>, &without);
        tg::shape dims;
        const auto with = updating(metric, [&](const auto& x) { return input(x.owner(), "w", dtype::f32, dims); });
        check_weights(kind, caller_of<decltype(with)>, &with, dims);
    });
    tg::metric_accumulator<tg::root_mean_squared_error> by_hand;
    CHECK_THROWS_AS(by_hand.update(tg::tensor<float>{{1}, {2}, {3}}, tg::tensor<float>{1, 2, 3}), tg::shape_error);
    tg::metric_accumulator<tg::r2_score> shares;
    CHECK_THROWS_AS(shares.update(tg::tensor<float>{{1}, {2}, {3}}, tg::tensor<float>{1, 2, 3}), tg::shape_error);
    tg::metric_accumulator<tg::sparse_categorical_accuracy> classes;
    const tg::tensor<float> x{{1, 2}, {3, 4}};
    CHECK_THROWS_AS(classes.update(x, tg::tensor<std::int32_t>{1}), tg::shape_error);
    CHECK_THROWS_AS(classes.update(x, tg::tensor<std::int32_t>{1, 0}, tg::tensor<float>{1}), tg::shape_error);
    CHECK_THROWS_AS(classes.update(x, tg::tensor<float>{{1, 0}}), tg::shape_error);
    classes.update(x, tg::tensor<std::int32_t>{1, 0}, tg::tensor<float>{1, 3});
    CHECK(classes.result() == 0.25);
}

} // namespace label_shapes_test
