#include <support/graph_runner.hpp>
#include <support/settings_guard.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace sums_of_columns_test {

/// Several sums in one kernel, together with their operands, in graph mode: the bits of eager mode, which runs them one by one.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

// The gradient is dx, written, and a sum each of dx x and dx over the axes along which g and b broadcast.
constexpr auto scaled = [](auto x, auto g, auto b) { return sum(square(tanh(x * g + b))); };
constexpr auto weighted = [](auto x, auto g, auto b, auto w) {
    return sum(square(tanh(x * g + b) * w) + where(x > b, x, 0));
};
// Sums of one operand, which is not written.
constexpr auto moments = [](auto x) {
    const auto mean = sum(x, {0, 1}), power = sum(square(x), {0, 1}), cube = sum(x * x * x, {0, 1});
    return std::tuple(mean, power, cube, sum(sin(x) - mean, {0, 1}));
};

template <class T>
void check(auto& f, std::int64_t n, std::initializer_list<std::int64_t> rest, std::initializer_list<std::int64_t> other,
           auto... more) {
    tg::shape dims{n};
    for (std::int64_t extent : rest) dims.push_back(extent);
    const support::settings_guard guard;
    for (auto set :
         {tg::cpu::instruction_set::baseline, tg::cpu::instruction_set::avx2, tg::cpu::instruction_set::avx512})
        for (const int threads : {1, 2}) {
            tg::cpu::set_instruction_set(set);
            tg::set_thread_count(threads);
            const std::string text =
                f.compare(drawn<T>(dims, 1), drawn<T>(tg::shape(other), 2), drawn<T>(tg::shape(other), 3), more...);
            CHECK_MESSAGE(text.empty(), to_string(dims) << ", " << threads << " threads: " << text);
        }
}

} // namespace

TEST_CASE("both modes: sums down columns beside what they add up, with columns that fill no vector") {
    both_modes f(tg::value_and_gradient(scaled), tg::spec<float, tg::dyn, 3, 150>{}, tg::spec<float, 150>{},
                 tg::spec<float, 150>{});
    for (const std::int64_t n : {0, 1, 5, 67, 301}) check<float>(f, n, {3, 150}, {150});
}

TEST_CASE("both modes: rows of a narrow domain are summed several at once, and the last ones by themselves") {
    both_modes f(tg::value_and_gradient(scaled), tg::spec<double, tg::dyn, 3, 5>{}, tg::spec<double, 5>{},
                 tg::spec<double, 5>{});
    for (const std::int64_t n : {0, 1, 17, 100, 4001}) check<double>(f, n, {3, 5}, {5});
}

TEST_CASE("both modes: wide columns are cut") {
    both_modes f(tg::value_and_gradient(scaled), tg::spec<float, tg::dyn, 2, 2117>{}, tg::spec<float, 2117>{},
                 tg::spec<float, 2117>{});
    for (const std::int64_t n : {1, 3, 66}) check<float>(f, n, {2, 2117}, {2117});
}

TEST_CASE("both modes: sums along rows, and over the axes around one that is kept") {
    both_modes f(tg::value_and_gradient(scaled), tg::spec<float, tg::dyn, 3, 7>{}, tg::spec<float, 3, 1>{},
                 tg::spec<float, 3, 1>{});
    for (const std::int64_t n : {0, 1, 13, 3001}) check<float>(f, n, {3, 7}, {3, 1});
}

TEST_CASE("both modes: an operand that repeats after several rows, and one that is bool on the way") {
    both_modes f(tg::value_and_gradient(weighted), tg::spec<float, tg::dyn, 3, 70>{}, tg::spec<float, 70>{},
                 tg::spec<float, 70>{}, tg::spec<float, 3, 70>{});
    for (const std::int64_t n : {1, 5, 301}) check<float>(f, n, {3, 70}, {70}, drawn<float>({3, 70}, 4));
}

TEST_CASE("both modes: several sums of one operand") {
    both_modes f(moments, tg::spec<float, tg::dyn, 3, 150>{});
    for (const std::int64_t n : {0, 1, 67}) {
        const std::string text = f.compare(drawn<float>({n, 3, 150}, 1));
        CHECK_MESSAGE(text.empty(), n << ": " << text);
    }
}

} // namespace sums_of_columns_test
