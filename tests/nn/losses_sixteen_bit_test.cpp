#include <nn/every_loss.hpp>
#include <support/graph_runner.hpp>

#include <tapegraph/nn/metrics/accumulator.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <type_traits>

namespace losses_sixteen_bit_test {

/// Losses and metrics of half and bfloat16 tensors by hand are those of the same numbers as float, rounded once.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

template <class T>
std::vector<float> rounded(const tg::tensor<float>& x) {
    return tg::tensor<float>(tg::cast<float>(tg::tensor<T>(tg::cast<T>(x)))).to_vector();
}
template <class T>
std::vector<float> floats(const tg::tensor<T>& x) {
    return tg::tensor<float>(tg::cast<float>(x)).to_vector();
}

/// Positive, of a sum that is 1 in no row: scores and probabilities alike.
template <class T>
tg::tensor<T> outputs(const tg::shape& dims) {
    auto x = tg::tensor<float>::uninitialized(dims);
    for (std::int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = static_cast<float>((i * 37 % 64 + 1) / 70.0);
    return tg::tensor<T>(tg::cast<T>(x));
}
template <class Loss>
constexpr bool of_classes = Loss::labels(tg::dtype::f32, tg::shape{3, 4}).type == tg::dtype::i32;

template <class T, class Loss>
auto labels_of(const tg::shape& output) {
    if constexpr (std::is_same_v<Loss, tg::ctc>)
        return tg::tensor<std::int32_t>{{1, 2}, {3, 0}, {1, 1}};
    else if constexpr (of_classes<Loss>)
        return tg::tensor<std::int32_t>{0, 1, 0};
    else
        return tg::tensor<T>(tg::one_hot<T>(tg::tensor<std::int32_t>{2, 0, 3}, static_cast<int>(output[1].value)));
}
template <class Loss, class X, class Z>
constexpr bool has_records = requires(const Loss& l, const X& x, const Z& z) {
    l.per_record(x, z, l.numbers());
}
|| requires(const Loss& l, const X& x, const Z& z) { l.per_record(x, z); };
auto records_of(const auto& loss, const auto& x, const auto& z) {
    if constexpr (requires { loss.per_record(x, z, loss.numbers()); })
        return tg::tensor(tg::eval(loss.per_record(x, z, loss.numbers())));
    else
        return tg::tensor(tg::eval(loss.per_record(x, z)));
}

} // namespace

TEST_CASE_TEMPLATE("losses of 16-bit tensors are computed as float", T, tg::half, tg::bfloat16) {
    every_loss::for_every_loss([]<class Loss>(const Loss& loss) {
        INFO(std::string(Loss::name));
        const tg::shape dims = std::is_same_v<Loss, tg::ctc> ? tg::shape{3, 5, 4} : tg::shape{3, 4};
        const tg::tensor<T> x = outputs<T>(dims);
        const tg::tensor<float> wide = tg::cast<float>(x);
        const auto z = labels_of<T, Loss>(dims);
        const auto wide_z = labels_of<float, Loss>(dims);
        const auto of = [](const auto& l, const auto& labels) {
            return tg::value_and_gradient([&](const auto& v) { return l(v, labels); });
        };
        const auto got = of(loss, z)(x);
        const auto wanted = of(loss, wide_z)(wide);
        static_assert(std::is_same_v<std::remove_cvref_t<decltype(got.value)>, tg::tensor<T>>);
        CHECK(floats(got.value) == rounded<T>(wanted.value));
        CHECK(floats(got.gradient) == rounded<T>(wanted.gradient));
        if constexpr (has_records<Loss, tg::tensor<T>, decltype(labels_of<T, Loss>(dims))>)
            CHECK(floats(records_of(loss, x, z)) == rounded<T>(records_of(loss, wide, wide_z)));
    });
}

TEST_CASE("what leaves half's range on the way does not reach the result") {
    const tg::tensor<tg::half> x{600, 0, 0, 0, 0, 0, 0, 0}, z{0, 0, 0, 0, 0, 0, 0, 0};
    CHECK(static_cast<float>(tg::mean_squared_error{}(x, z).item()) == 45000 - 8); // of halfs 32 apart
    CHECK(static_cast<float>(tg::squared_hinge{}(x, tg::tensor<tg::half>(z - 1)).item()) == 45152);
    const tg::tensor<tg::half> wide = tg::ones<tg::half>({4096, 32});
    CHECK(static_cast<float>(tg::dice{}(wide, wide).item()) == 0); // a sum of 131072
    // Labels that are numbers, and formulas for outputs.
    CHECK(static_cast<float>(tg::mean_squared_error{}(x, 0.0).item()) == 45000 - 8);
    CHECK(static_cast<float>(tg::mean_absolute_error{}(x * 2, z).item()) == 150);
}

namespace {
constexpr auto several = [](auto x, auto z) {
    const auto of = [&](auto v) {
        const auto a = tg::mean_squared_error{}(v, z), b = tg::huber{.delta = 0.3}(v, z);
        const auto c = tg::softmax_cross_entropy{}(v, z), d = tg::cosine_similarity{}(v, z);
        return tg::eval(a + b + c + d);
    };
    return std::tuple{tg::value_and_gradient(of)(x), tg::pinball::per_record(x, z, std::array{0.3})};
};
} // namespace

TEST_CASE_TEMPLATE("both modes: losses of 16-bit tensors", T, tg::half, tg::bfloat16) {
    both_modes run(several, tg::spec<T, tg::dyn, 4>{}, tg::spec<T, tg::dyn, 4>{});
    const std::string differs =
        run.compare(outputs<T>({5, 4}), tg::tensor<T>(outputs<T>({5, 4}) - tg::tensor<T>(tg::ones<T>({4}))));
    CHECK_MESSAGE(differs.empty(), differs);
}

TEST_CASE_TEMPLATE("metrics of 16-bit tensors are computed as float", T, tg::half, tg::bfloat16) {
    every_loss::for_every_metric([]<class Metric>(const Metric& metric, every_loss::labels_of_metric) {
        INFO(std::string(Metric::name));
        const tg::tensor<T> x = outputs<T>({3, 4});
        const tg::tensor<float> wide = tg::cast<float>(x);
        tg::metric_accumulator narrow(metric), plain(metric);
        const tg::tensor<std::int32_t> classes{2, 0, 3};
        if constexpr (Metric::name == "perplexity") { // it takes class numbers alone
            narrow.update(x, classes);
            plain.update(wide, classes);
        } else {
            narrow.update(x, tg::tensor<T>(tg::one_hot<T>(classes, 4)));
            plain.update(wide, tg::tensor<float>(tg::one_hot<float>(classes, 4)));
        }
        CHECK(narrow.result() == plain.result());
    });
}

} // namespace losses_sixteen_bit_test
