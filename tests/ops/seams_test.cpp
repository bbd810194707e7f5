#include <ops/table.hpp>
#include <support/one_sided.hpp>

#include <doctest/doctest.h>

#include <algorithm>

namespace seams_test {

/// Derivatives of every row of the table where formulas are joined: at 0, at equal operands, at the bounds of pieces and at the row's
/// awkward values, along lines through these points. Random operands never lie there, so a smooth function that is written with
/// `maximum`, `abs` or `where` may be wrong there alone.
///
/// Whether a function is smooth at a point, and up to which derivative, its reference says, which has other formulas
/// (support/one_sided.hpp). At kinks, what is right is a convention (corner_test.cpp).

namespace tg = tapegraph;
using namespace tapegraph::testing; // names of the table only

namespace {

struct counts {
    int smooth = 0, kinks = 0;
};

// `most`: of the orders that a row has.
void compare(const row& r, std::size_t most, const sides& reference, const std::vector<std::vector<double>>& got,
             const std::function<std::string(std::size_t i)>& where, counts& counted) {
    int bad = 0;
    for (std::size_t i = 0; i < reference.right.size() && bad < 3; ++i) {
        if (!reference.of(i, 0).smooth) continue;
        for (std::size_t k = 1; k <= most; ++k) {
            const verdict v = reference.of(i, k);
            if (!v.smooth) {
                ++counted.kinks;
                break;
            }
            ++counted.smooth;
            const real value = got[k - 1][i];
            // The differences' own error, and twice as much for that of the third derivative in double.
            if (std::abs(value - v.value) <= 3e-6L * (1 + std::abs(v.value))) continue;
            FAIL_CHECK(r.name << " derivative " << k << " at " << where(i) << ": " << double(value)
                              << ", differences from both sides " << double(v.value));
            ++bad;
            break;
        }
    }
}

// Points for n operands: equal ones, zeros beside others, and the row's own.
std::vector<std::vector<double>> points_of(const row& r) {
    const std::size_t n = r.domains.size();
    std::vector<std::vector<double>> points;
    for (const double v : {0.0, 1.0, -1.0, 0.5, 3.0, -3.0, 6.0, 20.0, -20.0}) points.emplace_back(n, v);
    for (std::size_t k = 0; k < n && n > 1; ++k)
        for (const double v : {-1.0, 0.0, 1.0, 2.0}) {
            points.emplace_back(n, 0.0).at(k) = v;
            points.emplace_back(n, 1.0).at(k) = v;
        }
    for (const auto& each : r.awkward)
        if (std::all_of(each.begin(), each.end(), [](double v) { return std::abs(v) <= 1e3; })) points.push_back(each);
    // Not the bounds of a clip that meet: that is constant, and its derivative at them 1 by convention (TensorFlow, PyTorch).
    if (n == 3 && r.apart) std::erase_if(points, [](const auto& p) { return p[1] == p[2]; });
    return points;
}

// Directions of `sources` operands of n: each alone, all together, and against each other.
std::vector<std::vector<double>> directions_of(std::size_t n, std::size_t sources) {
    std::vector<std::vector<double>> all;
    for (std::size_t k = 0; k < sources; ++k) all.emplace_back(n, 0.0).at(k) = 1;
    if (sources < 2) return all;
    auto& together = all.emplace_back(n, 0.0);
    for (std::size_t k = 0; k < sources; ++k) together[k] = 1;
    auto& against = all.emplace_back(n, 0.0);
    for (std::size_t k = 0; k < sources; ++k) against[k] = k % 2 == 0 ? 1.25 : -0.75;
    return all;
}

std::string text_of(const std::vector<double>& v) {
    std::string text = "(";
    for (const double x : v) text += (text.size() > 1 ? ", " : "") + std::to_string(x);
    return text + ")";
}

// Each element is a line of its own, so all points are one call for each direction. Operands that do not move are constants.
void check_elementwise(const row& r, std::size_t most, counts& counted) {
    const auto points = points_of(r);
    const auto count = static_cast<std::int64_t>(points.size());
    for (const auto& along : directions_of(r.domains.size(), r.sources())) {
        const sides reference([&](real t) {
            std::vector<array> x(r.domains.size(), array({count}));
            for (std::size_t k = 0; k < x.size(); ++k)
                for (std::size_t i = 0; i < points.size(); ++i) x[k].values[i] = points[i][k] + t * along[k];
            return r.expected(x).values;
        });
        const auto got = nested_derivatives(
            [&](const tg::tensor<double>& t) {
                tensors<double> x;
                for (std::size_t k = 0; k < r.domains.size(); ++k) {
                    auto p = tg::tensor<double>::uninitialized({count});
                    for (std::size_t i = 0; i < points.size(); ++i) p.mutable_data()[i] = points[i][k];
                    x.emplace_back(along[k] != 0 ? tg::tensor<double>(p + along[k] * t) : p);
                }
                return r.run(x);
            },
            tg::zeros<double>({count}));
        compare(
            r, most, reference, got, [&](std::size_t i) { return text_of(points[i]) + " along " + text_of(along); },
            counted);
    }
}

// The weighted sum of all elements along a line through operands that are equal everywhere, or 0 and one number.
void check_whole(const row& r, std::size_t most, counts& counted) {
    const std::vector<extents>* shapes = nullptr;
    std::int64_t fewest = 200; // elements: larger ones are not tried
    for (const auto& each : r.shapes) {
        std::int64_t elements = 0;
        bool any = true;
        for (const extents& s : each) elements += count_of(s), any = any && count_of(s) > 0;
        if (!any || elements >= fewest || elements < 2 * static_cast<std::int64_t>(each.size())) continue;
        shapes = &each;
        fewest = elements;
    }
    if (shapes == nullptr) return;
    for (const double value : {0.0, 1.0, -1.0, 0.5}) {
        for (const bool all : {true, false}) { // or every third element alone, the others 0
            std::vector<array> at, along;
            for (std::size_t k = 0; k < shapes->size(); ++k) {
                array p((*shapes)[k], value), d((*shapes)[k]);
                const tg::tensor<double> w = weights_like(tg::zeros<double>(shape_from((*shapes)[k])), 31 + k);
                for (std::int64_t i = 0; i < p.size(); ++i) {
                    if (!all && i % 3 != 0) p[i] = 0;
                    if (k < r.sources()) d[i] = w.data()[i] / 4; // powers of these stay below 1
                }
                at.push_back(p);
                along.push_back(d);
            }
            const array like = r.expected(at);
            const tg::tensor<double> w = weights_like(tg::zeros<double>(shape_from(like.dims)), 5);
            const sides reference([&](real t) {
                std::vector<array> x = at;
                for (std::size_t k = 0; k < x.size(); ++k)
                    for (std::int64_t i = 0; i < x[k].size(); ++i) x[k][i] += t * along[k][i];
                const array y = r.expected(x);
                real sum = 0;
                for (std::int64_t i = 0; i < y.size(); ++i) sum += y[i] * w.data()[i];
                return std::vector<real>{sum};
            });
            if (!reference.of(0, 0).smooth || !reference.of(0, 1).smooth) {
                ++counted.kinks;
                continue;
            }
            const auto tensor_of = [](const array& a) {
                auto t = tg::tensor<double>::uninitialized(shape_from(a.dims));
                for (std::int64_t i = 0; i < a.size(); ++i) t.mutable_data()[i] = static_cast<double>(a[i]);
                return t;
            };
            const auto got = nested_derivatives(
                [&](const tg::tensor<double>& t) {
                    tensors<double> x;
                    for (std::size_t k = 0; k < at.size(); ++k) {
                        const tg::tensor<double> p = tensor_of(at[k]), d = tensor_of(along[k]);
                        x.emplace_back(k < r.sources() ? tg::tensor<double>(p + t * d) : p);
                    }
                    return tg::tensor<double>(sum(r.run(x) * w));
                },
                tg::tensor<double>(0.0));
            compare(
                r, most, reference, got,
                [&](std::size_t) { return std::to_string(value) + (all ? "" : " beside zeros"); }, counted);
        }
    }
}

// `at_least`: so many derivatives are found to exist; some four fifths of what there were when this was written.
void check(const std::vector<operation>& operations, int at_least) {
    counts counted;
    for (const operation& of : operations) {
        if (!of.smooth || of.rounds || of.splits_ties) continue;
        for (const row& r : rows_of({of})) {
            if (r.derivatives < 1 || r.sources() == 0 || r.whole) continue;
            INFO(r.name);
            try {
                // Beside three zeros cumulative_product is exact to the second derivative.
                const bool two = of.name == "cumulative_product";
                const auto most = static_cast<std::size_t>(r.derivatives < 2 ? 1 : two ? 2 : orders);
                r.elementwise ? check_elementwise(r, most, counted) : check_whole(r, most, counted);
            } catch (const tg::error& e) {
                FAIL_CHECK(r.name << ": " << e.what());
            }
        }
    }
    MESSAGE(counted.smooth << " derivatives, " << counted.kinks << " kinks");
    CHECK(counted.smooth >= at_least);
}

} // namespace

TEST_CASE("seams: arithmetic") { check(arithmetic_operations(), 1000); }
TEST_CASE("seams: elementary functions") { check(function_operations(), 500); }
TEST_CASE("seams: further elementwise functions") { check(elementwise_operations(), 1300); }
TEST_CASE("seams: activations") { check(activation_operations(), 800); }
TEST_CASE("seams: selection, comparison, logic") { check(selection_operations(), 600); }
TEST_CASE("seams: reductions") { check(reduction_operations(), 350); }
TEST_CASE("seams: contractions") { check(contraction_operations(), 100); }
TEST_CASE("seams: pooling") { check(pooling_operations(), 150); }
TEST_CASE("seams: order") { check(ordering_operations(), 150); }

} // namespace seams_test
