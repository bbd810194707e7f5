#include <tapegraph/eager/searching.hpp>

#include <support/graph_runner.hpp>
#include <support/messages.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace searching_test {

/// searchsorted, nonzero, unique, bincount and histogram_fixed_width: literals from NumPy and TensorFlow, the standard library's
/// answers on drawn numbers, and the same bits in both modes with symbolic extents.

namespace tg = tapegraph;
using namespace tapegraph::testing;
using tg::tensor;
using places = std::vector<std::int32_t>;
using vector = std::vector<float>;
using support::message_of;

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
constexpr auto right = tg::searchsorted_options{.side = tg::search_side::right};

/// Whole numbers of few values, so that there are ties.
tensor<float> ties(std::int64_t n, std::uint64_t seed) { return tg::floor(drawn<float>({n}, seed, -4, 5)); }

#define TG_SAME(text) CHECK_MESSAGE((text).empty(), text)

} // namespace

// numpy 2.1: np.searchsorted([1., 2, 2, 5], [0, 1, 2, 3, 6], side)
TEST_CASE("searchsorted: on the left and on the right of equals") {
    const tensor<float> sorted{1, 2, 2, 5}, values{0, 1, 2, 3, 6};
    CHECK(searchsorted(sorted, values).to_vector() == places{0, 0, 1, 3, 4});
    CHECK(searchsorted(sorted, values, right).to_vector() == places{0, 1, 3, 3, 4});
    // np.searchsorted([1, inf, nan], [-inf, inf, nan], side)
    const tensor<float> ends{1, infinity, nan}, searched{-infinity, infinity, nan};
    CHECK(searchsorted(ends, searched).to_vector() == places{0, 1, 2});
    CHECK(searchsorted(ends, searched, right).to_vector() == places{0, 2, 3});
    CHECK(searchsorted(tensor<float>(tg::zeros<float>({0})), values).to_vector() == places(5, 0));
    CHECK(searchsorted(sorted, tensor<float>(tg::zeros<float>({0}))).shape() == tg::shape{0});
    CHECK(searchsorted(tensor<std::int64_t>{1, 4, 9}, tensor<std::int64_t>{4, 5}).to_vector() == places{1, 2});
}

TEST_CASE("searchsorted: as the standard library's bounds, row by row") {
    for (const std::int64_t n : {1, 7, 64, 1009}) {
        CAPTURE(n);
        const tensor<float> sorted = tg::stack({tensor<float>(sort(ties(n, 1))), tensor<float>(sort(ties(n, 2)))}, 0);
        const tensor<float> values = drawn<float>({2, 37}, 3, -6, 6), whole = floor(values);
        for (const auto& searched : {values, tensor<float>(whole)}) {
            const auto lower = searchsorted(sorted, searched), upper = searchsorted(sorted, searched, right);
            for (std::int64_t row = 0; row < 2; ++row) {
                const float* const line = sorted.data() + row * n;
                for (std::int64_t i = row * 37; i < (row + 1) * 37; ++i) {
                    CHECK(lower.data()[i] == std::lower_bound(line, line + n, searched.data()[i]) - line);
                    CHECK(upper.data()[i] == std::upper_bound(line, line + n, searched.data()[i]) - line);
                }
            }
        }
    }
    CHECK(message_of([] {
              searchsorted(tg::zeros<float>({2, 3}), tg::zeros<float>({3, 3}));
          }).find("searchsorted: extents") == 0);
}

// numpy 2.1: np.argwhere([[0, 1, 0], [2, nan, 0]])
TEST_CASE("nonzero: the coordinates, in order") {
    const tensor<float> x{{0, 1, 0}, {2, nan, 0}};
    const auto all = nonzero(x);
    CHECK(all.shape() == tg::shape{3, 2});
    CHECK(all.to_vector() == places{0, 1, 1, 0, 1, 1});
    CHECK(where(tensor<bool>(x > 1)).to_vector() == places{1, 0});
    const auto two = nonzero(x, 2);
    CHECK(two.positions.to_vector() == places{0, 1, 1, 0});
    CHECK(two.count.item() == 3);
    const auto five = nonzero(x, 5);
    CHECK(five.positions.to_vector() == places{0, 1, 1, 0, 1, 1, 0, 0, 0, 0});
    CHECK(nonzero(tg::zeros<float>({4, 3})).shape() == tg::shape{0, 2});
    CHECK(nonzero(tg::zeros<float>({0, 3})).shape() == tg::shape{0, 2});
    const auto none = nonzero(tensor<float>(tg::zeros<float>({0, 3})), 2);
    CHECK(none.positions.to_vector() == places(4, 0));
    CHECK(none.count.item() == 0);
    // Of a scalar: one place without coordinates, or none. np.argwhere(2.0).shape, tf.where(2.0).shape, torch.argwhere, jnp.argwhere
    CHECK(nonzero(tensor<float>(2.0f)).shape() == tg::shape{1, 0});
    CHECK(nonzero(tensor<float>(0.0f)).shape() == tg::shape{0, 0});
    const auto scalar = nonzero(tensor<float>(2.0f), 3);
    CHECK(scalar.positions.shape() == tg::shape{3, 0});
    CHECK(scalar.count.item() == 1);
    CHECK(nonzero(tensor<bool>{true, false, true}).to_vector() == places{0, 2});
}

// numpy 2.1: np.unique([3, 1, 2, 1, 3, 3], return_index, return_inverse, return_counts = True)
TEST_CASE("unique: values, first places, which, and how often") {
    const tensor<float> x{3, 1, 2, 1, 3, 3};
    const auto all = unique(x);
    CHECK(all.values.to_vector() == vector{1, 2, 3});
    CHECK(all.indices.to_vector() == places{1, 2, 0});
    CHECK(all.inverse.to_vector() == places{2, 0, 1, 0, 2, 2});
    CHECK(all.counts.to_vector() == places{2, 1, 3});
    const auto two = unique(x, {.size = 2});
    CHECK(two.values.to_vector() == vector{1, 2});
    CHECK(two.counts.to_vector() == places{2, 1});
    CHECK(two.count.item() == 3);
    const auto five = unique(x, {.size = 5, .fill_value = -1});
    CHECK(five.values.to_vector() == vector{1, 2, 3, -1, -1});
    CHECK(five.counts.to_vector() == places{2, 1, 3, 0, 0});
    // np.unique([nan, inf, nan, -inf]) is [-inf, inf, nan]
    const auto ends = unique(tensor<float>{nan, infinity, nan, -infinity});
    REQUIRE(ends.values.size() == 3);
    CHECK(ends.values(0) == -infinity);
    CHECK(ends.values(1) == infinity);
    CHECK(std::isnan(ends.values(2)));
    CHECK(ends.counts.to_vector() == places{1, 1, 2});
    CHECK(unique(tensor<float>(tg::zeros<float>({0}))).values.size() == 0);
    CHECK(unique(tensor<float>{{5, 5}, {5, 4}}).inverse.to_vector() == places{1, 1, 1, 0});
    CHECK(unique(tensor<std::int64_t>{7, 7}).values.to_vector() == std::vector<std::int64_t>{7});
}

TEST_CASE("unique: as a map counts") {
    for (const std::int64_t n : {1, 2, 61, 2003}) {
        CAPTURE(n);
        const tensor<float> x = ties(n, 5);
        std::map<float, std::int32_t> expected;
        for (const float v : x.to_vector()) ++expected[v];
        const auto all = unique(x);
        REQUIRE(all.values.size() == static_cast<std::int64_t>(expected.size()));
        std::int64_t k = 0;
        for (const auto& [value, count] : expected) {
            CHECK(all.values(k) == value);
            CHECK(all.counts(k) == count);
            CHECK(x(all.indices(k)) == value);
            ++k;
        }
        CHECK(tg::gather(all.values, all.inverse, 0).to_vector() == x.to_vector()); // what it was made of
    }
}

// np.bincount([0, 1, 1, 3, 2, 1, 7]), and with minlength; tf.math.bincount([1, 1, 5], maxlength = 3)
TEST_CASE("bincount: how often, and sums of weights") {
    const tensor<std::int32_t> x{0, 1, 1, 3, 2, 1, 7};
    CHECK(bincount(x).to_vector() == places{1, 3, 1, 1, 0, 0, 0, 1});
    CHECK(bincount(x, 3).to_vector() == places{1, 3, 1});
    CHECK(bincount(x, 10).to_vector() == places{1, 3, 1, 1, 0, 0, 0, 1, 0, 0});
    CHECK(bincount(tensor<std::int64_t>{-1, 2}, 3).to_vector() == places{0, 0, 1});
    CHECK(bincount(tg::zeros<std::int32_t>({0})).size() == 0);
    CHECK(message_of([] { bincount(tensor<std::int32_t>{2, -3}); }) == "bincount: -3 is negative");
    // np.bincount([0, 2, 2], weights=[0.5, 1, 0.25])
    const tensor<double> weights{0.5, 1, 0.25, 8};
    CHECK(bincount(tensor<std::int32_t>{0, 2, 2, 9}, weights, 3).to_vector() == std::vector<double>{0.5, 0, 1.25});
    // The derivative of 1 b0 + 2 b1 + 4 b2 by a weight is the factor of where it was counted.
    tensor<double> w = weights;
    tg::gradient_tape tape;
    tape.watch(w);
    const tensor<double> y = sum(bincount(tensor<std::int32_t>{0, 2, 2, 9}, w, 3) * tensor<double>{1, 2, 4});
    CHECK(tape.gradient(y, w).to_vector() == std::vector<double>{1, 4, 4, 0});
}

// tf.histogram_fixed_width([-1., 0, 1.5, 2, 5, 15], [0., 5.], nbins = 5)
TEST_CASE("histogram_fixed_width: what lies outside counts at the ends, NaN nowhere") {
    const tensor<float> x{-1, 0, 1.5f, 2, 5, 15};
    CHECK(histogram_fixed_width(x, 0, 5, 5).to_vector() == places{2, 1, 1, 0, 2});
    CHECK(histogram_fixed_width(tensor<float>{nan, infinity, -infinity, 1e30f}, 0, 1, 2).to_vector() == places{1, 2});
    CHECK(histogram_fixed_width(x, 0, 5).shape() == tg::shape{100});
}

TEST_CASE("both modes, symbolic extents") {
    constexpr auto f = [](auto sorted, auto values) { // [n], [61]
        const auto at = searchsorted(sorted, values);
        const auto found = nonzero(values > 0, 6);
        const auto different = tg::unique(values, {.size = 6, .fill_value = 0.5});
        const auto parts = histogram_fixed_width(values, -2, 2, 4);
        return std::tuple{at,
                          searchsorted(sorted, values, {.side = tg::search_side::right}),
                          found.positions,
                          found.count,
                          different.values,
                          different.indices,
                          different.inverse,
                          different.counts,
                          different.count,
                          parts,
                          bincount(at, 5),
                          bincount(at, values, 5)};
    };
    both_modes run(f, tg::spec<float, tg::dyn>{}, tg::spec<float, 61>{});
    for (const std::int64_t n : {1, 5, 300}) {
        CAPTURE(n);
        TG_SAME(run.compare(sort(ties(n, 8)), ties(61, 9)));
    }
    constexpr auto in_rows = [](auto x) { // [n, 3, m]
        return std::tuple{nonzero(x, 4).positions, searchsorted(sort(x), x), tg::unique(x, {.size = 3}).values};
    };
    both_modes rows(in_rows, tg::spec<float, tg::dyn, 3, tg::dyn>{});
    TG_SAME(rows.compare(tensor<float>(reshape(ties(30, 4), {2, 3, 5}))));
}

} // namespace searching_test

#undef TG_SAME
