#include <ops/loss_of.hpp>

#include <doctest/doctest.h>

namespace slices_test {

/// Slices that graph mode reads in place, and their gradients, which it adds up at once: the bits of eager mode.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr auto neighbours = [](auto x) { // [n], n at least 2
    const auto a = slice(x, {{0, -2}}), b = slice(x, {{1, -1}}), c = slice(x, {{2, tg::all.end}});
    const auto inner = slice(slice(slice(x, {{1, tg::all.end}}), {{0, -1}}), {{0, tg::all.end}});
    return std::tuple{tg::eval(a * b - square(c)),
                      inner,
                      tg::eval(inner * 3 + b),
                      slice(x, {{0, 1}}),
                      tg::eval(x * slice(x, {{-1, tg::all.end}})),
                      slice(x, {{1, 1}})};
};

constexpr auto gates = [](auto x) { // [n, 20]
    const auto [a, b, c, d] = tg::split<4>(x, 1);
    const auto columns = tg::unstack<20>(x, 1);
    const auto all = tg::eval(columns[19] * columns[0] + columns[7]);
    return std::tuple{tg::eval(sigmoid(a) * tanh(b) + c * sigmoid(d)), all, tg::eval(all * columns[3])};
};

constexpr auto rows = [](auto x) { // [20, n]
    const auto each = tg::unstack<20>(x);
    auto total = tg::eval(each[0] * each[1]);
    for (std::size_t i = 2; i < 20; ++i) total = total * 0.5 + tanh(each[i]);
    const auto [top, rest] = split(tanh(x), {3, 17}, 0);
    return std::tuple{total, tg::eval(take(rest, -1) - take(top, 0)), sum(rest, 0)};
};

template <class T, class F, class... Specs>
void check(const F& f, std::initializer_list<std::int64_t> counts, auto dims, Specs... specs) {
    both_modes values(f, specs...);
    both_modes gradients(gradient_loss(f), specs...);
    for (const std::int64_t n : counts) {
        const auto x = drawn<T>(dims(n), 1);
        const std::string value = values.compare(x), gradient = gradients.compare(x);
        CHECK_MESSAGE(value.empty(), "of " << n << ": " << value);
        CHECK_MESSAGE(gradient.empty(), "of " << n << ": " << gradient);
    }
}

} // namespace

TEST_CASE_TEMPLATE("both modes: slices of neighbours", T, double, float, tg::bfloat16) {
    check<T>(
        neighbours, {2, 3, 4, 100, 257, 40000, 5}, [](std::int64_t n) { return tg::shape{n}; }, tg::spec<T, tg::dyn>{});
}

TEST_CASE_TEMPLATE("both modes: parts of rows, four and more than one sum takes", T, double, float) {
    check<T>(
        gates, {1, 0, 2, 7, 3000, 3},
        [](std::int64_t n) {
            return tg::shape{n, 20};
        },
        tg::spec<T, tg::dyn, 20>{});
}

TEST_CASE_TEMPLATE("both modes: rows", T, double, float) {
    check<T>(
        rows, {1, 0, 2, 7, 3000, 3},
        [](std::int64_t n) {
            return tg::shape{20, n};
        },
        tg::spec<T, 20, tg::dyn>{});
}

} // namespace slices_test
