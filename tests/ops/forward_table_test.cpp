#include <ops/table.hpp>

#include <tapegraph/eager/derivatives.hpp>

#include <doctest/doctest.h>

namespace forward_table_test {

/// Forward mode of every row of the table: along a direction against finite differences, against reverse mode, and both
/// nested in each other.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

using handles = std::vector<tg::any_tensor>;

// A function of operands whose number is known at run time, recorded at a point.
class recorded_run : public tg::detail::recorded_function<tg::any_tensor> {
public:
    // f makes results of operands.
    template <class F>
    recorded_run(const F& f, tensors<double> x, std::size_t watched) {
        for (std::size_t k = 0; k < watched; ++k) x[k] = own(x[k]);
        first_ = tg::detail::tape_storage::instance().length();
        for (const tg::tensor<double>& y : f(x)) results_.push_back(y);
        tape_.stop_recording();
        end_ = tg::detail::tape_storage::instance().length();
    }
    const handles& results() const { return results_; }
};

tensors<double> typed(const handles& all) { return tensors<double>(all.begin(), all.end()); }

tensors<double> moved(tensors<double> x, const tensors<double>& v, double by) {
    for (std::size_t k = 0; k < v.size(); ++k)
        for (std::int64_t i = 0; i < x[k].size(); ++i) x[k].mutable_data()[i] += by * v[k].data()[i];
    return x;
}

tensors<double> directions(const row& r, const tensors<double>& x, std::uint64_t seed) {
    tensors<double> v;
    for (std::size_t k = 0; k < r.sources(); ++k) v.push_back(weights_like(x[k], seed + k));
    return v;
}

double magnitude(const tg::tensor<double>& a) {
    double largest = 0;
    for (double v : a.values()) largest = std::max(largest, std::abs(v));
    return largest;
}

double dot_all(const tensors<double>& a, const tensors<double>& b, double& scale) {
    double sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k)
        for (std::int64_t i = 0; i < a[k].size(); ++i) {
            sum += a[k].data()[i] * b[k].data()[i];
            scale += std::abs(a[k].data()[i] * b[k].data()[i]);
        }
    return sum;
}

// The elements of `exact` against central differences; what cancels in them is of the size of the values.
void compare_slopes(const std::string& what, const tensors<double>& exact, const tensors<double>& high,
                    const tensors<double>& low, double tolerance) {
    REQUIRE(exact.size() == high.size());
    for (std::size_t k = 0; k < exact.size(); ++k) {
        REQUIRE(exact[k].shape() == high[k].shape());
        const double scale = 1 + magnitude(high[k]) + magnitude(exact[k]);
        for (std::int64_t i = 0; i < exact[k].size(); ++i) {
            const double slope = (high[k].data()[i] - low[k].data()[i]) / (2 * step);
            if (std::abs(exact[k].data()[i] - slope) <= tolerance * scale) continue;
            if (std::isnan(exact[k].data()[i]) && std::isnan(high[k].data()[i])) continue; // the mean of nothing
            FAIL_CHECK(what << " result " << k << " element " << i << ": " << exact[k].data()[i]
                            << ", finite difference " << slope);
            return;
        }
    }
}

// Sums of the same terms in two orders: rounding of a few thousand terms stays far below 1e-11 of their magnitudes.
void compare_sums(const std::string& what, const tensors<double>& a, const tensors<double>& b, const tensors<double>& c,
                  const tensors<double>& d) {
    double scale = 1;
    const double x = dot_all(a, b, scale), y = dot_all(c, d, scale);
    if (std::isnan(x)) return; // the mean of nothing; compare_slopes has seen to the rest
    CHECK_MESSAGE(std::abs(x - y) <= 1e-11 * scale, what << ": " << x << " and " << y);
}

// The gradient of sum(w f(x)), on an outer tape if there is one.
tensors<double> weighted_gradient(const row& r, const tensors<double>& x) {
    tg::gradient_tape inner;
    tensors<double> watched = x;
    for (std::size_t k = 0; k < r.sources(); ++k) inner.watch(watched[k]);
    const tg::tensor<double> y = r.run(watched);
    const tg::tensor<double> loss = y * weights_like(y, 5);
    return typed(
        inner.gradient(loss, handles(watched.begin(), watched.begin() + static_cast<std::ptrdiff_t>(r.sources()))));
}

void check_forward(const row& r, const std::vector<extents>& shapes) {
    std::string what = r.name;
    for (const extents& s : shapes) what += " " + tg::to_string(shape_from(s));
    const tensors<double> x = drawn_operands(r, shapes, 3), v = directions(r, x, 41);
    const auto run = [&](const tensors<double>& at) { return tensors<double>{r.run(at)}; };

    recorded_run recorded(run, x, r.sources());
    const tensors<double> along = typed(recorded.push(handles(v.begin(), v.end())));
    compare_slopes(what + " jvp", along, run(moved(x, v, step)), run(moved(x, v, -step)), gradient_tolerance);
    const tensors<double> u{weights_like(along[0], 5)};
    compare_sums(what + " <u, Jv> and <J'u, v>", u, along, typed(recorded.pull(handles(u.begin(), u.end()))), v);
}

void check_second(const row& r, const std::vector<extents>& shapes) {
    std::string what = r.name;
    for (const extents& s : shapes) what += " " + tg::to_string(shape_from(s));
    const tensors<double> x = drawn_operands(r, shapes, 3), v = directions(r, x, 41), w = directions(r, x, 59);
    const auto gradient = [&](const tensors<double>& at) { return weighted_gradient(r, at); };

    // Forward over reverse.
    recorded_run recorded(gradient, x, r.sources());
    const tensors<double> product = typed(recorded.push(handles(v.begin(), v.end())));
    compare_slopes(what + " hvp", product, gradient(moved(x, v, step)), gradient(moved(x, v, -step)), second_tolerance);
    compare_sums(what + " <w, Hv> and <v, Hw>", w, product, v, typed(recorded.push(handles(w.begin(), w.end()))));

    // Reverse over forward.
    const auto slope = [&](const tensors<double>& at) {
        recorded_run inner([&](const tensors<double>& operands) { return tensors<double>{r.run(operands)}; }, at,
                           r.sources());
        const tg::tensor<double> along(inner.push(handles(v.begin(), v.end()))[0]);
        return tensors<double>{along * weights_like(along, 5)};
    };
    recorded_run outer(slope, x, r.sources());
    const tg::tensor<double> ones = tg::ones<double>(outer.results()[0].shape());
    compare_sums(what + " forward over reverse and reverse over forward", w, typed(outer.pull({ones})), w, product);
    if (!r.forward_twice) return;
    // Forward over forward: the same number again.
    const tensors<double> twice = typed(outer.push(handles(w.begin(), w.end())));
    compare_sums(what + " forward over forward", {ones}, twice, w, product);
}

void check(const std::vector<row>& rows) {
    REQUIRE(!rows.empty());
    for (const row& r : rows) {
        if (r.derivatives < 1) continue;
        for (const auto& shapes : r.shapes) {
            std::int64_t elements = 0;
            for (const extents& s : shapes) elements = std::max(elements, count_of(s));
            try {
                check_forward(r, shapes);
                if (r.derivatives > 1 && elements <= 2000) check_second(r, shapes);
            } catch (const tg::error& e) {
                FAIL_CHECK(r.name << ": " << e.what());
            }
        }
    }
}

} // namespace

#define TG_CHECK_FILE(file, text, drawn)                                                                               \
    TEST_CASE("forward mode: " text) { check(rows_of(file##_operations())); }
TG_OPERATION_FILES(TG_CHECK_FILE)
#undef TG_CHECK_FILE

} // namespace forward_table_test
