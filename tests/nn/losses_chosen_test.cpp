#include <nn/models.hpp>
#include <nn/stored_losses.hpp>

#include <support/temporary_folder.hpp>
#include <tapegraph/nn/losses/all.hpp>

#include <cmath>
#include <limits>

namespace losses_chosen_test {

/// Losses that choose by labels: triplets and connectionist temporal classification.

using namespace nn_test;
namespace stored = nn_test::stored_losses;
using support::message_of;

namespace {

using labels = tg::tensor<std::int32_t>;
constexpr double infinity = std::numeric_limits<double>::infinity();

const tg::tensor<double> logits = tg::from_range<double>(
    std::vector<double>{0,      0.25,   -0.25,  -0.875, -0.5,   -1,    0,      1.375, -0.5,   -0.625, 0.5,   0.375,
                        0.125,  -0.875, 0,      0.75,   -1.375, -0.5,  -1.875, -1.25, -1.875, -0.25,  -1.25, 0.25,
                        0.125,  -0.125, -2.5,   -0.5,   0,      0.125, -1.5,   -0.5,  -1,     -0.75,  1,     -0.75,
                        0,      0.875,  -0.625, -0.125, 0.125,  0.125, -1.25,  0.125, 1.375,  -1.5,   0.875, 0.125,
                        -0.625, 2,      0.75,   -1.25,  0.125,  0.625, -0.25,  0.625, -0.125, 0.625,  1.5,   -0.625,
                        0.25,   -0.5,   0.125,  -1.125, -0.625, -0.25, 0.875,  1.125, -1.375, -0.75,  0.625, -2},
    {3, 6, 4});
const labels words{{1, 2, -1}, {3, 3, 1}, {2, -1, -1}};

labels table(std::int64_t rows, const std::vector<std::int32_t>& values) {
    return tg::from_range<std::int32_t>(values, {rows, static_cast<std::int64_t>(values.size()) / rows});
}

template <class Loss>
constexpr auto value_and_gradient(const Loss& loss, const auto& x, const auto& z) {
    const auto both = tg::value_and_gradient([&](const auto& at) { return loss(at, z); })(x);
    return std::tuple{both.value, both.gradient};
}
struct triplets {
    constexpr auto operator()(const auto& x, const auto& z) const {
        const auto semi = value_and_gradient(tg::triplet_semi_hard{.margin = 0.5}, x, z);
        const auto squared = value_and_gradient(tg::triplet_semi_hard{.squared = true}, x, z);
        const auto hard = value_and_gradient(tg::triplet_hard{.margin = 0.25}, x, z);
        return std::tuple{semi, squared, hard,
                          tg::triplet_hard::per_record(x, z, tg::triplet_hard{.margin = 0.25}.numbers())};
    }
};
struct sequences {
    constexpr auto operator()(const auto& x, const auto& z) const {
        return std::tuple{value_and_gradient(tg::ctc{}, x, z), tg::ctc::per_record(x, z)};
    }
};

void check_close(const tg::tensor<double>& got, const std::vector<double>& expected, double tolerance) {
    REQUIRE(got.size() == static_cast<std::int64_t>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        CHECK(std::abs(got.data()[i] - expected[i]) <= tolerance * std::max(1.0, std::abs(expected[i])));
    }
}

/// -log of the sum over all paths through logits [time, classes] whose symbols, merged and without blanks, are the labels.
double by_all_paths(const tg::tensor<double>& x, std::int64_t record, const std::vector<std::int32_t>& wanted) {
    const std::int64_t time = x.shape()[1].value, classes = x.shape()[2].value;
    std::int64_t paths = 1;
    for (std::int64_t t = 0; t < time; ++t) paths *= classes;
    double sum = 0;
    for (std::int64_t path = 0; path < paths; ++path) {
        std::vector<std::int32_t> read;
        double probability = 1;
        std::int64_t rest = path, before = 0;
        for (std::int64_t t = 0; t < time; ++t, rest /= classes) {
            const std::int64_t symbol = rest % classes;
            double total = 0;
            for (std::int64_t k = 0; k < classes; ++k) total += std::exp(x(record, t, k));
            probability *= std::exp(x(record, t, symbol)) / total;
            if (symbol != 0 && symbol != before) read.push_back(static_cast<std::int32_t>(symbol));
            before = symbol;
        }
        if (read == wanted) sum += probability;
    }
    return -std::log(sum);
}

} // namespace

TEST_CASE("triplets are those that loops over all of them choose") {
    const tg::tensor<double> x{{0.5, -1.25}, {0.25, -0.5}, {1, 0.75}, {-0.5, 0.25}, {0.875, -1}};
    const labels z{0, 0, 1, 1, 0};
    auto graph = tg::function<tg::graph>(triplets{}, tg::spec<double, tg::dyn, 2>{}, tg::spec<std::int32_t, tg::dyn>{});
    const auto check = [&](const auto& got) {
        const auto [semi, squared, hard, each] = got;
        const auto one = [](const auto& pair, const stored_loss& expected) {
            check_close(std::get<0>(pair), {expected.value}, 1e-14);
            check_close(std::get<1>(pair), expected.gradient, 1e-14);
        };
        one(semi, stored::triplet_semi_hard);
        one(squared, stored::triplet_semi_hard_squared);
        one(hard, stored::triplet_hard);
        check_close(each, stored::triplet_hard.record, 1e-14);
    };
    const auto compiled = graph(x, z), eager = triplets{}(x, z);
    check(compiled);
    check(eager);
    CHECK(same_bits(std::get<1>(std::get<0>(compiled)), std::get<1>(std::get<0>(eager))));
    CHECK(same_bits(std::get<1>(std::get<1>(compiled)), std::get<1>(std::get<1>(eager))));
    CHECK(same_bits(std::get<1>(std::get<2>(compiled)), std::get<1>(std::get<2>(eager))));

    // No pair, no negative, one record, equal embeddings: finite, and 0 where there is nothing to choose.
    CHECK(tg::triplet_semi_hard{}(x, labels{0, 1, 2, 3, 4}).item() == 0);
    CHECK(tg::triplet_semi_hard{}(x, labels{1, 1, 1, 1, 1}).item() == 0);
    // Of 0 and 1 against -1 and 3: to 0, -1 is as far as 1 and does not count as farther. Pairs' losses are 0, 0, 3 and 2.
    CHECK(tg::triplet_semi_hard{}(tg::tensor<double>{{0}, {1}, {-1}, {3}}, labels{0, 0, 1, 1}).item() == 1.25);
    CHECK(tg::triplet_hard{}(x, labels{1, 1, 1, 1, 1}).item() == 0);
    CHECK(tg::triplet_hard{}(tg::zeros<double>({1, 2}), labels{3}).item() == 0);
    // Equal embeddings are no distance apart: 0 + 1 - 1.
    CHECK(tg::triplet_hard{}(tg::tensor<double>{{0}, {0}, {1}, {1}}, labels{0, 0, 1, 1}).item() == 0);
    const auto [loss, slope] = value_and_gradient(tg::triplet_hard{}, tg::zeros<double>({4, 2}), labels{0, 0, 1, 1});
    CHECK(loss.item() == 1);
    for (const double v : slope.values()) CHECK(v == 0);
}

TEST_CASE("ctc is the sum over all paths") {
    auto graph = tg::function<tg::graph>(sequences{}, tg::spec<double, tg::dyn, tg::dim<"time">, 4>{},
                                         tg::spec<std::int32_t, tg::dyn, tg::dim<"length">>{});
    const auto compiled = graph(logits, words), eager = sequences{}(logits, words);
    // Sums of exponentials of 6 steps.
    for (const auto& got : {compiled, eager}) {
        check_close(std::get<0>(std::get<0>(got)), {stored::ctc.value}, 1e-13);
        check_close(std::get<1>(std::get<0>(got)), stored::ctc.gradient, 1e-13);
        check_close(std::get<1>(got), stored::ctc.record, 1e-13);
    }
    CHECK(same_bits(std::get<1>(compiled), std::get<1>(eager)));
    CHECK(same_bits(std::get<1>(std::get<0>(compiled)), std::get<1>(std::get<0>(eager))));
    check_close(std::get<1>(eager),
                {by_all_paths(logits, 0, {1, 2}), by_all_paths(logits, 1, {3, 3, 1}), by_all_paths(logits, 2, {2})},
                1e-12);
    // Padding with blanks, as Keras has it, and labels without any symbol.
    CHECK(same_bits(tg::ctc::per_record(logits, table(3, {1, 2, 0, 3, 3, 1, 2, 0, 0})), std::get<1>(eager)));
    check_close(tg::ctc::per_record(logits, table(3, {-1, -1, 0})),
                {by_all_paths(logits, 0, {}), by_all_paths(logits, 1, {}), by_all_paths(logits, 2, {})}, 1e-12);
}

TEST_CASE("ctc at its ends: large logits, time too short, labels that are none") {
    tg::tensor<double> large = tg::zeros<double>({1, 3, 3});
    for (int t = 0; t < 3; ++t) large.set(1000, 0, t, t == 1 ? 2 : 1);
    const auto [sure, slope] = value_and_gradient(tg::ctc{}, large, table(1, {1, 2, 1}));
    CHECK(sure.item() == 0);
    for (const double v : slope.values()) CHECK(v == 0);
    // Blank or 2 in the first and the last step: four paths.
    CHECK(tg::ctc{}(large, table(1, {2, -1, -1})).item() == doctest::Approx(2000 - std::log(4)));

    // Two equal labels need a blank between them: three steps for two labels.
    const tg::tensor<double> two = tg::zeros<double>({1, 2, 3});
    CHECK(tg::ctc{}(tg::zeros<double>({1, 3, 3}), table(1, {1, 1})).item() == doctest::Approx(std::log(27)));
    const auto [never, none] = value_and_gradient(tg::ctc{}, two, table(1, {1, 1}));
    CHECK(never.item() == infinity);
    for (const double v : none.values()) CHECK(v == 0);

    CHECK(support::contains(message_of<tg::range_error>([&] { tg::ctc{}(two, table(1, {1, 3})); }), "index 3"));
    CHECK(support::contains(message_of<tg::range_error>([&] { tg::ctc{}(two, table(1, {-1, 1})); }), "index -2"));
    CHECK(support::contains(message_of<tg::range_error>([&] { tg::ctc{}(two, table(1, {0, 1})); }), "index -2"));
    CHECK(support::contains(message_of<tg::range_error>([&] { tg::ctc{}(two, table(1, {1, -7})); }), "index -7"));
}

} // namespace losses_chosen_test
