#include <ops/table.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace table_test {

/// What the table says, checked.

namespace tg = tapegraph;
using namespace tapegraph::testing; // names of the table only

namespace {

std::string text_of(const std::vector<extents>& shapes) {
    std::string text;
    for (const extents& s : shapes) text += tg::to_string(shape_from(s)) + " ";
    return text;
}

template <class T>
tensors<T> draw(const row& r, const std::vector<extents>& shapes, std::uint64_t seed) {
    tensors<T> x;
    for (std::size_t k = 0; k < shapes.size(); ++k) {
        sequence random(seed * 1000003 + k * 7919);
        auto t = tg::tensor<T>::uninitialized(shape_from(shapes[k]));
        const auto [low, high] = r.domains[k];
        for (std::int64_t i = 0; i < t.size(); ++i) {
            double v = random.between(low, high);
            if (std::abs(v) < r.away) v = v < 0 ? v - r.away : v + r.away;
            if (r.apart) v = (std::round(v * 512) + 0.25 * static_cast<double>(k)) / 512;
            t.mutable_data()[i] = static_cast<T>(r.whole || (k >= r.sources() && r.watched >= 0) ? std::floor(v) : v);
        }
        x.push_back(t);
    }
    return x;
}

template <class T>
std::vector<array> plain(const tensors<T>& x) {
    std::vector<array> result;
    for (const auto& t : x)
        result.emplace_back(extents_of(t.shape()), std::vector<real>(t.data(), t.data() + t.size()));
    return result;
}

// Whether a value is the expected one. An expected value beyond the type's range must have become infinite.
template <class T>
bool close(const row& r, T got, real want, double largest) {
    if (std::isnan(want)) return std::isnan(got);
    const T nearest = static_cast<T>(want);
    if (got == nearest) return r.ulps > 0.5 || got != T(0) || std::signbit(got) == std::signbit(nearest);
    if (std::isinf(nearest) || std::isnan(got)) return false;
    const real scale = std::max({std::abs(want), static_cast<real>(r.floor), r.elementwise ? real(0) : real(largest)});
    return std::abs(static_cast<real>(got) - want) <=
           r.ulps * std::numeric_limits<T>::epsilon() * scale + std::numeric_limits<T>::denorm_min();
}

template <class T>
void check_values(const row& r, const tensor_function<T>& run, const tensors<T>& x, const std::string& what) {
    const array want = r.expected(plain(x));
    const tg::tensor<T> got = run(x);
    INFO(r.name << " " << what);
    REQUIRE(extents_of(got.shape()) == want.dims);
    double largest = 0;
    for (real v : want.values)
        if (std::isfinite(v)) largest = std::max(largest, static_cast<double>(std::abs(v)));
    int bad = 0;
    for (std::int64_t i = 0; i < got.size() && bad < 3; ++i) {
        if (close(r, got.data()[i], want[i], largest)) continue;
        ++bad;
        FAIL_CHECK(r.name << " " << what << " element " << i << ": " << double(got.data()[i]) << ", expected "
                          << double(want[i]));
    }
}

void check_row_values(const row& r) {
    REQUIRE(!r.shapes.empty());
    for (const auto& shapes : r.shapes) {
        check_values<double>(r, r.run, draw<double>(r, shapes, 1), "double " + text_of(shapes));
        if (r.run_float) check_values<float>(r, r.run_float, draw<float>(r, shapes, 2), "float " + text_of(shapes));
    }
    // Awkward values stand alone (scalars) and within a vector (the vectorised path and its tail).
    const auto awkward = [&]<class T>(const tensor_function<T>& run) {
        if (!run || r.awkward.empty()) return;
        const auto many = static_cast<std::int64_t>(r.awkward.size());
        for (std::int64_t length : {std::int64_t{0}, many, std::int64_t{67}}) { // 0: a scalar each
            const std::int64_t calls = length == 0 ? many : 1;
            for (std::int64_t c = 0; c < calls; ++c) {
                tensors<T> x;
                for (std::size_t k = 0; k < r.domains.size(); ++k) {
                    auto t = tg::tensor<T>::uninitialized(length == 0 ? tg::shape{} : tg::shape{length});
                    for (std::int64_t i = 0; i < t.size(); ++i)
                        t.mutable_data()[i] = static_cast<T>(r.awkward[static_cast<std::size_t>((c + i) % many)][k]);
                    x.push_back(t);
                }
                check_values<T>(r, run, x, "awkward " + std::to_string(c) + " of length " + std::to_string(length));
            }
        }
    };
    awkward(r.run);
    awkward(r.run_float);
}

void report(const row& r, const std::vector<extents>& shapes, std::size_t operand, std::size_t element, const slope& s,
            const std::string& what) {
    FAIL_CHECK(r.name << " " << text_of(shapes) << what << " by operand " << operand << " element " << element << ": "
                      << s.exact << ", finite difference " << s.difference);
}

// An elementwise result depends on one element of each operand, so one pair of evaluations gives all derivatives by an
// operand at once; what a broadcast operand receives is summed here.
void check_elementwise_gradient(const row& r, const std::vector<extents>& shapes) {
    const tensors<double> x = draw<double>(r, shapes, 3);
    const tensors<double> gradient = tape_gradient(r.run, x, r.sources(), 5);
    for (std::size_t k = 0; k < r.sources(); ++k) {
        REQUIRE(gradient[k].shape() == x[k].shape());
        tensors<double> above = x, below = x;
        for (std::int64_t i = 0; i < x[k].size(); ++i) {
            above[k].mutable_data()[i] += step;
            below[k].mutable_data()[i] -= step;
        }
        const tg::tensor<double> high = r.run(above), low = r.run(below), w = weights_like(high, 5);
        array slopes(extents_of(high.shape())), sizes = slopes;
        for (std::int64_t i = 0; i < high.size(); ++i) {
            slopes[i] = w.data()[i] * (high.data()[i] - low.data()[i]) / (2 * step);
            sizes[i] = std::abs(w.data()[i] * high.data()[i]) + std::abs(slopes[i]);
        }
        const array want = sum_to(slopes, shapes[k]), scale = sum_to(sizes, shapes[k]);
        int bad = 0;
        for (std::int64_t i = 0; i < want.size() && bad < 3; ++i) {
            const slope s{gradient[k].data()[i], static_cast<double>(want[i]), static_cast<double>(scale[i])};
            if (!s.agrees(gradient_tolerance)) report(r, shapes, k, static_cast<std::size_t>(i), s, "gradient"), ++bad;
        }
    }
}

void compare(const row& r, const std::vector<extents>& shapes, const tensors<double>& x,
             const std::function<double(const tensors<double>&)>& f, const tensors<double>& gradient, double tolerance,
             const std::string& what) {
    for (std::size_t k = 0; k < r.sources(); ++k) {
        REQUIRE(gradient[k].shape() == x[k].shape());
        std::vector<slope> slopes;
        if (x[k].size() <= 40)
            slopes = element_slopes(f, x, k, gradient[k]);
        else
            slopes.push_back(direction_slope(f, x, k, gradient[k]));
        for (std::size_t i = 0; i < slopes.size(); ++i)
            if (!slopes[i].agrees(tolerance)) return report(r, shapes, k, i, slopes[i], what);
    }
}

void check_row_gradient(const row& r) {
    if (r.derivatives < 1) return;
    for (const auto& shapes : r.shapes) {
        if (r.elementwise) {
            check_elementwise_gradient(r, shapes);
            continue;
        }
        const tensors<double> x = draw<double>(r, shapes, 3);
        const auto number = [&](const tensors<double>& at) {
            const tg::tensor<double> y = r.run(at);
            return dot(y, weights_like(y, 5));
        };
        compare(r, shapes, x, number, tape_gradient(r.run, x, r.sources(), 5), gradient_tolerance, "gradient");
    }
}

void check_row_second_gradient(const row& r) {
    if (r.derivatives < 2) return;
    for (const auto& shapes : r.shapes) {
        std::int64_t elements = 0;
        for (const extents& s : shapes) elements = std::max(elements, count_of(s));
        if (elements > 2000) continue; // nothing here depends on size beyond what the first gradient has shown
        const tensors<double> x = draw<double>(r, shapes, 3);
        const auto number = [&](const tensors<double>& at) {
            const tensors<double> g = tape_gradient(r.run, at, r.sources(), 5);
            double sum = 0;
            for (std::size_t k = 0; k < g.size(); ++k) sum += dot(g[k], weights_like(g[k], 6 + k));
            return sum;
        };
        compare(r, shapes, x, number, nested_gradient(r.run, x, r.sources(), 5), second_tolerance, "second gradient");
    }
}

void check(const std::vector<row>& rows) {
    REQUIRE(!rows.empty());
    for (const row& r : rows) {
        INFO(r.name);
        check_row_values(r);
        check_row_gradient(r);
        try {
            check_row_second_gradient(r);
        } catch (const tg::error& e) {
            FAIL_CHECK(r.name << " second gradient: " << e.what());
        }
    }
}

} // namespace

#define TG_CHECK_FILE(file, text, drawn)                                                                               \
    TEST_CASE("table: " text) { check(rows_of(file##_operations())); }
TG_OPERATION_FILES(TG_CHECK_FILE)
#undef TG_CHECK_FILE

} // namespace table_test

namespace tapegraph::testing {

tensors<double> drawn_operands(const row& r, const std::vector<extents>& shapes, std::uint64_t seed) {
    return table_test::draw<double>(r, shapes, seed);
}

} // namespace tapegraph::testing
