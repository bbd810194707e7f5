#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {
constexpr double tiny = 5e-324;
const interval inside{-0.95, 0.95};

real floor_remainder(real x, real y) {
    if (y == 0) return NAN;
    real r = std::fmod(x, y);
    if (r != 0 && (r < 0) != (y < 0)) r += y;
    return r == 0 ? std::copysign(real(0), y) : r;
}
real floor_quotient(real x, real y) { return y == 0 ? x / y : std::floor(x / y); }
real halves_to_even(real x) { return std::nearbyint(x); }
real square_of_difference(real x, real y) { return (x - y) * (x - y); }

using list = std::vector<std::vector<double>>;
const list everywhere{{0}, {-0.0}, {inf}, {-inf}, {nan}, {1}, {-1}, {tiny}, {1e-9}, {-1e-9}};
list with(list more) {
    more.insert(more.end(), everywhere.begin(), everywhere.end());
    return more;
}
} // namespace

// Elementary functions beyond those of function_rows. They are accurate to about two units in the last place
// (docs/accuracy.md); 4 are allowed, which tells a wrong formula, branch or lane from rounding.
std::vector<row> elementwise_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, list awkward = {}) {
        r.awkward = std::move(awkward);
        rows.push_back(std::move(r));
    };
    put(unary(
            "exp2", [](auto x) { return exp2(x); }, moderate, [](real x) { return std::exp2(x); }),
        with({{10}, {-10}, {127}, {-126}, {1030}, {-1080}, {0.5}}));
    put(unary(
            "log2", [](auto x) { return log2(x); }, positive, [](real x) { return std::log2(x); }),
        with({{8}, {0.125}, {1e30}, {1e-30}}));
    put(unary(
            "log10", [](auto x) { return log10(x); }, positive, [](real x) { return std::log10(x); }),
        with({{8}, {0.125}, {1e30}, {1e-30}}));
    put(unary(
            "tan", [](auto x) { return tan(x); }, {-1.2, 1.2}, [](real x) { return std::tan(x); }),
        with({{1000.5}, {-100000}, {1.5}, {3}}));
    put(unary(
            "asin", [](auto x) { return asin(x); }, inside, [](real x) { return std::asin(x); }),
        with({{0.5}, {-0.5}, {1.5}, {-2}, {0.999999}}));
    put(unary(
            "acos", [](auto x) { return acos(x); }, inside, [](real x) { return std::acos(x); }),
        with({{0.5}, {-0.5}, {1.5}, {-2}}));
    put(unary(
            "atan", [](auto x) { return atan(x); }, {-3, 3}, [](real x) { return std::atan(x); }),
        with({{1e30}, {-1e30}, {0.41}}));
    put(unary(
            "sinh", [](auto x) { return sinh(x); }, moderate, [](real x) { return std::sinh(x); }),
        with({{88}, {-88}, {800}}));
    put(unary(
            "cosh", [](auto x) { return cosh(x); }, moderate, [](real x) { return std::cosh(x); }),
        with({{88}, {-88}, {800}}));
    put(unary(
            "asinh", [](auto x) { return asinh(x); }, {-3, 3}, [](real x) { return std::asinh(x); }),
        with({{1e10}, {-1e30}, {0.25}}));
    put(unary(
            "acosh", [](auto x) { return acosh(x); }, {1.2, 4}, [](real x) { return std::acosh(x); }),
        with({{1e10}, {1e30}, {-3}, {-1e6}, {0.99}}));
    put(unary(
            "atanh", [](auto x) { return atanh(x); }, {-0.9, 0.9}, [](real x) { return std::atanh(x); }),
        with({{2}, {-3}, {0.9375}}));
    put(unary(
            "erfc", [](auto x) { return erfc(x); }, moderate, [](real x) { return std::erfc(x); }),
        with({{0.24}, {3}, {8}, {-6}, {30}}));
    put(unary(
            "cbrt", [](auto x) { return cbrt(x); }, positive, [](real x) { return std::cbrt(x); }),
        with({{27}, {-8}, {1e30}, {1e-30}}));
    put(unary(
            "reciprocal", [](auto x) { return reciprocal(x); }, positive, [](real x) { return 1 / x; }),
        {{0}, {-0.0}, {inf}, {-inf}, {nan}, {4}});
    put(unary(
            "pow<5>", [](auto x) { return tapegraph::pow<5>(x); }, moderate, [](real x) { return x * x * x * x * x; }),
        {{0}, {-0.0}, {inf}, {-inf}, {nan}, {-1}});
    put(unary(
            "pow<-3>", [](auto x) { return tapegraph::pow<-3>(x); }, positive, [](real x) { return 1 / (x * x * x); }),
        {{0}, {-0.0}, {inf}, {-inf}, {nan}, {-2}});
    put(binary(
            "atan2", [](auto y, auto x) { return atan2(y, x); }, positive, moderate,
            [](real y, real x) { return std::atan2(y, x); }),
        {{0, 0}, {0, -1}, {-0.0, -1}, {inf, -inf}, {nan, 1}, {1, nan}, {1e30, 1e-30}, {3, -inf}, {-2, -2}});
    put(binary(
            "hypot", [](auto x, auto y) { return hypot(x, y); }, positive, moderate,
            [](real x, real y) { return std::hypot(x, y); }),
        {{0, 0}, {3, 4}, {inf, nan}, {nan, 1}, {-inf, 1}, {3e30, 4e30}, {3e-30, 4e-30}});

    // Steps: nothing rounds, and no derivative passes.
    const auto exact = [](row r) {
        r.ulps = 0;
        return r;
    };
    const auto step = [&](row r) {
        r.derivatives = 0;
        return exact(std::move(r));
    };
    const list halves{{0}, {-0.0}, {0.5}, {-0.5}, {1.5}, {2.5}, {-2.5}, {inf}, {-inf}, {nan}, {1e30}, {0.4999999}, {tiny}};
    put(step(unary(
            "floor", [](auto x) { return floor(x); }, {-4, 4}, [](real x) { return std::floor(x); })),
        halves);
    put(step(unary(
            "ceil", [](auto x) { return ceil(x); }, {-4, 4}, [](real x) { return std::ceil(x); })),
        halves);
    put(step(unary(
            "round", [](auto x) { return round(x); }, {-4, 4}, halves_to_even)),
        halves);
    put(step(unary(
            "trunc", [](auto x) { return trunc(x); }, {-4, 4}, [](real x) { return std::trunc(x); })),
        halves);
    put(step(unary(
            "is_nan", [](auto x) { return is_nan(x); }, moderate, [](real x) { return real(std::isnan(x)); })),
        everywhere);
    put(step(unary(
            "is_inf", [](auto x) { return is_inf(x); }, moderate, [](real x) { return real(std::isinf(x)); })),
        everywhere);
    put(step(unary(
            "is_finite", [](auto x) { return is_finite(x); }, moderate, [](real x) { return real(std::isfinite(x)); })),
        everywhere);
    const list quotients{{7, 2}, {-7, 2}, {7, -2}, {-7, -2}, {6, 3}, {-6, 3}, {0, 5}, {0, -5}, {1, inf}, {5, 0}, {-5, 0}, {0, 0}, {nan, 1}, {1, nan}, {5.25, 0.5}};
    put(step(binary(
            "floor_divide", [](auto x, auto y) { return floor_divide(x, y); }, {-9, 9}, positive, floor_quotient)),
        quotients);
    row rest = binary(
        "remainder", [](auto x, auto y) { return x % y; }, {-0.9, 1.9}, {2, 3}, floor_remainder);
    rest.away = 0.01; // jumps at the multiples of y
    rest.ulps = 0.5;
    put(std::move(rest), quotients);
    put(binary(
            "squared_difference", [](auto x, auto y) { return squared_difference(x, y); }, {2, 4}, {-2, 1},
            square_of_difference),
        {{0, 0}, {inf, 1}, {inf, inf}, {nan, 1}});
    row line = make_row<3, false>(
        "lerp", [](auto x, auto y, auto t) { return lerp(x, y, t); }, {{0.5, 2}, {0.5, 2}, {0, 1}},
        [](const std::vector<array>& x) { return map(x, [](const real* v) { return v[0] + v[2] * (v[1] - v[0]); }); });
    line.elementwise = true;
    line.shapes = {{{7}, {7}, {7}}, {{3, 1}, {4}, {}}, {{700}, {1}, {700}}};
    put(std::move(line));

    put(exact(unary(
            "named arithmetic", [](auto x) { return add(multiply(x, 2), negate(divide(subtract(x, 1), 1))); }, moderate,
            [](real x) { return 2 * x - (x - 1); })),
        {});
    rows.back().ulps = 4; // the sum may cancel
    rows.back().floor = 4;
    put(step(binary(
            "named comparisons",
            [](auto x, auto y) {
                return logical_xor(logical_and(less(x, y), not_equal(x, y)),
                                   logical_or(greater_equal(x, y), equal(less_equal(x, 0), greater(x, 0))));
            },
            moderate, moderate, [](real x, real y) { return real(x < y) + real(x >= y); })),
        {{1, 1}, {0, 1}});
    return rows;
}

} // namespace tapegraph::testing
