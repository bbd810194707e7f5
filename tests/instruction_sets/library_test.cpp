#include <support/compiled_modes.hpp>

#include <tapegraph/core/half.hpp>
#include <tapegraph/eager/random.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

/// The library on every instruction set. Other programs are compiled for one; this one for all, and it runs those that
/// the processor has (on one without AVX-512 that set is lowered to the next).

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr tg::cpu::instruction_set every_set[]{tg::cpu::instruction_set::baseline, tg::cpu::instruction_set::avx2,
                                               tg::cpu::instruction_set::avx512};

struct restored_set {
    ~restored_set() { tg::cpu::set_instruction_set(tg::cpu::detail::initial_instruction_set()); }
};

// What is promised to have the same bits on every set: formulas, reductions, order and movement.
constexpr auto exact = [](auto x, auto y) { // [n, 37], [37]
    const auto a = tg::eval(exp(x) * erf(y) - tanh(x / (square(y) + 1)));
    return std::tuple{a, sum(a), mean(a, 1), max(a, 0), softmax(a), cumulative_sum(a, 0), sort(a), transpose(a)};
};
constexpr auto loss = [](auto x, auto y) {
    return std::apply(
        [](auto first, auto... rest) {
            auto total = tg::eval(sum(square(first)));
            ((total = tg::eval(total * 0.5 + sum(square(rest)))), ...);
            return total;
        },
        exact(x, y));
};

// Products round otherwise where the processor fuses them; what stays is that both modes do the same.
constexpr auto products = [](auto x, auto k) { // [n, 6, 5, 3], [2, 3, 3, 4]
    const auto y = conv2d(x, k, {.padding = tg::padding::same()});
    return tg::eval(sum(square(relu(matmul(reshape(y, {-1, 120}), transpose(reshape(y, {-1, 120})))))));
};

// Runs f on every set and compares with the first.
template <class F>
void check_same_on_every_set(F f) {
    const restored_set restore;
    std::vector<tg::any_tensor> first;
    for (const auto set : every_set) {
        tg::cpu::set_instruction_set(set);
        const std::vector<tg::any_tensor> results = f();
        if (first.empty()) first = results;
        INFO("set " << static_cast<int>(set));
        CHECK(difference(results, first) == "");
    }
}

} // namespace

TEST_CASE_TEMPLATE("instruction sets: formulas, reductions and movement have the same bits on each", T, float, double) {
    for (const std::int64_t n : {1, 3, 130}) {
        const auto x = drawn<T>({n, 37}, 1), y = drawn<T>({37}, 2);
        check_same_on_every_set([&] { return flattened(exact(x, y)); });
    }
}

TEST_CASE("instruction sets: gradients have the same bits on each, in both modes") {
    compiled_modes both(tg::value_and_gradient(loss), tg::spec<float, tg::dyn, 37>{}, tg::spec<float, 37>{});
    for (const std::int64_t n : {1, 3, 130})
        check_same_on_every_set([&] {
            CHECK(both.compare(drawn<float>({n, 37}, 1), drawn<float>({37}, 2)) == "");
            return both.results();
        });
}

TEST_CASE("instruction sets: products have the same bits in both modes on each") {
    const restored_set restore;
    compiled_modes both(tg::value_and_gradient(products), tg::spec<float, tg::dyn, 6, 5, 3>{},
                        tg::spec<float, 2, 3, 3, 4>{});
    for (const auto set : every_set) {
        tg::cpu::set_instruction_set(set);
        for (const std::int64_t n : {1, 7})
            CHECK(both.compare(drawn<float>({n, 6, 5, 3}, 1), drawn<float>({2, 3, 3, 4}, 2)) == "");
    }
}

TEST_CASE("instruction sets: random numbers are the same on each") {
    check_same_on_every_set([] {
        return std::vector<tg::any_tensor>{tg::random::normal<float>({5003}, {.seed = 3}),
                                           tg::random::uniform<double>({5003}, {.seed = 4})};
    });
    // What initializers draw without choosing a set are the numbers of the operation.
    tg::random_attributes law;
    law.law = static_cast<std::int64_t>(tg::distribution::normal);
    law.a = 0, law.b = 1;
    law.ordinal = 7;
    const restored_set restored;
    for (const auto set : every_set) {
        tg::cpu::set_instruction_set(set);
        std::vector<double> every_law(20001), one_law(20001);
        tg::runtime::fill_random<double>(every_law.data(), 20001, law, {3, 5});
        tg::runtime::fill_standard_normal(one_law.data(), 20001, 7u, {3, 5});
        CHECK(every_law == one_law);
    }
}

TEST_CASE_TEMPLATE("16-bit elements: a product is the float product rounded once, on every instruction set", T,
                   tg::bfloat16, tg::half) {
    const auto a = drawn<T>({150, 1500}, 1), b = drawn<T>({1500, 70}, 2);
    for (const auto set :
         {tg::cpu::instruction_set::baseline, tg::cpu::instruction_set::avx2, tg::cpu::instruction_set::avx512}) {
        tg::cpu::set_instruction_set(set);
        const tg::tensor<T> narrow = tg::matmul(a, b);
        const tg::tensor<float> wide = tg::matmul(tg::cast<float>(a), tg::cast<float>(b));
        CHECK(difference({narrow}, {tg::tensor<T>(tg::cast<T>(wide))}).empty());
        tg::set_thread_count(1);
        CHECK(difference({narrow}, {tg::tensor<T>(tg::matmul(a, b))}).empty());
        tg::set_thread_count(0);
    }
    tg::cpu::set_instruction_set(tg::cpu::detail::initial_instruction_set());
}
