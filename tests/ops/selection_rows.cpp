#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {
real larger(real x, real y) { return std::isnan(x) || std::isnan(y) ? NAN : x > y ? x : y; }
real smaller(real x, real y) { return std::isnan(x) || std::isnan(y) ? NAN : x < y ? x : y; }
} // namespace

// Nothing here rounds, so values are equal.
std::vector<row> selection_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<double>> awkward = {}) {
        r.ulps = 0;
        r.awkward = std::move(awkward);
        rows.push_back(std::move(r));
    };
    const std::vector<std::vector<double>> pairs{{0, -0.0}, {1, 1},    {nan, 1},    {1, nan},  {nan, nan},
                                                 {inf, 1},  {1, -inf}, {-inf, nan}, {inf, inf}};
    const auto unequal = [](row r) {
        r.apart = true;
        return r;
    };
    put(unequal(binary(
            "maximum", [](auto x, auto y) { return maximum(x, y); }, {}, {}, larger)),
        pairs);
    put(unequal(binary(
            "minimum", [](auto x, auto y) { return minimum(x, y); }, {}, {}, smaller)),
        pairs);

    const auto kinked = [](row r) {
        r.away = 0.01; // finite differences across the kink mean nothing
        return r;
    };
    put(kinked(unary(
            "abs", [](auto x) { return abs(x); }, {}, [](real x) { return std::abs(x); })),
        {{0}, {-0.0}, {-inf}, {nan}, {-5e-324}});
    put(kinked(unary(
            "sign", [](auto x) { return sign(x); }, {},
            [](real x) { return std::isnan(x) ? x : real((x > 0) - (x < 0)); })),
        {{0}, {-0.0}, {-inf}, {nan}, {5e-324}});
    put(kinked(unary(
            "relu", [](auto x) { return relu(x); }, {}, [](real x) { return std::isnan(x) ? x
                                                                            : x > 0       ? x
                                                                                          : 0; })),
        {{0}, {-0.0}, {inf}, {-inf}, {nan}});

    const auto choice = [](const real* v) { return v[0] > 0 ? v[1] : v[2]; };
    row where_row = make_row<3>(
        "where", [](auto c, auto x, auto y) { return where(c > 0, x, y); }, {},
        [=](const std::vector<array>& x) { return map(x, choice); });
    where_row.elementwise = true;
    where_row.away = 0.01;
    where_row.shapes = {{{7}, {7}, {7}}, {{}, {5}, {}},       {{3, 1}, {1, 4}, {}},     {{2, 3}, {3}, {2, 1}},
                        {{0}, {0}, {1}}, {{700}, {1}, {700}}, {{5}, {2, 1}, {3, 1, 1}}, {{181, 1}, {191}, {181, 191}}};
    put(where_row, {{1, nan, 2}, {-1, nan, 2}, {nan, 1, 2}});
    put(kinked(unary(
        "where with numbers", [](auto x) { return where(x > 0, 2 * x, -1); }, {},
        [](real x) { return x > 0 ? 2 * x : -1; })));
    put(kinked(unary(
        "where number first", [](auto x) { return where(x > 0, 0.5, x); }, {},
        [](real x) { return x > 0 ? real(0.5) : x; })));

    const auto question = [&](row r) {
        r.whole = true; // so that ties are many
        r.derivatives = 0;
        r.domains.assign(r.domains.size(), {-2, 2});
        put(std::move(r), pairs);
    };
    question(binary(
        "less", [](auto x, auto y) { return x < y; }, {}, {}, [](real x, real y) { return real(x < y); }));
    question(binary(
        "less_equal", [](auto x, auto y) { return x <= y; }, {}, {}, [](real x, real y) { return real(x <= y); }));
    question(binary(
        "greater", [](auto x, auto y) { return x > y; }, {}, {}, [](real x, real y) { return real(x > y); }));
    question(binary(
        "greater_equal", [](auto x, auto y) { return x >= y; }, {}, {}, [](real x, real y) { return real(x >= y); }));
    question(binary(
        "equal", [](auto x, auto y) { return x == y; }, {}, {}, [](real x, real y) { return real(x == y); }));
    question(binary(
        "not_equal", [](auto x, auto y) { return x != y; }, {}, {}, [](real x, real y) { return real(x != y); }));
    question(binary(
        "logical_and", [](auto x, auto y) { return logical_and(x > 0, y > 0); }, {}, {},
        [](real x, real y) { return real(x > 0 && y > 0); }));
    question(binary(
        "logical_or", [](auto x, auto y) { return logical_or(x > 0, y > 0); }, {}, {},
        [](real x, real y) { return real(x > 0 || y > 0); }));

    const auto whole = [](row r) {
        r.derivatives = 0;
        return r;
    };
    put(whole(unary(
            "logical_not", [](auto x) { return logical_not(x > 0); }, {}, [](real x) { return real(!(x > 0)); })),
        {{0}, {nan}, {1}});
    put(whole(unary(
            "cast to int32", [](auto x) { return cast<std::int32_t>(x); }, {-9, 9},
            [](real x) { return std::trunc(x) + 0; })),
        {{0}, {-0.0}, {-0.99}, {2147483520.0}, {-2147483648.0}});
    put(whole(unary(
        "cast to int64", [](auto x) { return cast<std::int64_t>(x); }, {-9, 9},
        [](real x) { return std::trunc(x) + 0; })));
    put(whole(unary(
            "cast to bool", [](auto x) { return cast<bool>(x); }, {-1, 1}, [](real x) { return real(x != 0); })),
        {{0}, {-0.0}, {nan}, {5e-324}, {0.25}});
    put(whole(unary(
            "cast to float", [](auto x) { return cast<float>(x); }, {}, [](real x) { return real(float(double(x))); })),
        {{1e300}, {nan}, {-0.0}});
    put(whole(unary(
            "stop_gradient", [](auto x) { return stop_gradient(x); }, {}, [](real x) { return x; })),
        {{nan}});
    return rows;
}

} // namespace tapegraph::testing
