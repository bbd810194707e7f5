#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {
using values = std::vector<real>;

real product_of(const values& v) { return std::accumulate(v.begin(), v.end(), real(1), std::multiplies<>()); }
real variance_of(const values& v) {
    const real mean = mean_of(v);
    real sum = 0;
    for (real x : v) sum += (x - mean) * (x - mean);
    return sum / static_cast<real>(v.size());
}
real unbiased_variance_of(const values& v) {
    return variance_of(v) * static_cast<real>(v.size()) / static_cast<real>(v.size() - 1);
}
real deviation_of(const values& v) { return std::sqrt(variance_of(v)); }
template <int Order> // in tenths
real norm_of(const values& v) {
    real sum = 0;
    const real p = static_cast<real>(Order) / 10;
    for (real x : v) sum += std::pow(std::abs(x), p);
    return std::pow(sum, 1 / p);
}
real largest_of(const values& v) {
    real best = 0;
    for (real x : v) best = std::max(best, std::abs(x));
    return best;
}
real positive_of(const values& v) {
    return static_cast<real>(std::count_if(v.begin(), v.end(), [](real x) { return x > 0; }));
}
real logsumexp_of(const values& v) {
    real sum = 0;
    for (real x : v) sum += std::exp(x);
    return std::log(sum);
}
array along(const array& x, int axis, const std::function<real(real, real)>& f, real (*combine)(const values&)) {
    const array folded = fold(x, {axis}, true, combine);
    return map({x, folded}, [&](const real* v) { return f(v[0], v[1]); });
}

// What reduces to nothing, to one, over primes, over more than a tile, over what threads share.
std::vector<std::vector<extents>> vectors() { return {{{}}, {{1}}, {{7}}, {{513}}, {{32771}}}; }
std::vector<std::vector<extents>> matrices() {
    return {{{3, 5}}, {{1, 1}}, {{5, 1}}, {{7, 300}}, {{300, 7}}, {{3, 16385}}};
}
std::vector<std::vector<extents>> cubes() {
    return {{{2, 3, 5}}, {{1, 3, 1}}, {{4, 1, 3}}, {{5, 37, 7}}, {{2, 150, 150}}};
}
} // namespace

// Sums of n terms in a fixed order of lanes and blocks: the error is some log2(n) + n / (lanes blocks) epsilons of the sum
// of the magnitudes. `floor` stands for that sum where terms cancel.
std::vector<row> reduction_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<extents>> shapes, double ulps = 32, double floor = 8) {
        r.shapes = std::move(shapes);
        r.ulps = ulps;
        r.floor = floor;
        r.why = "rounding of a sum";
        rows.push_back(std::move(r));
    };
    const auto over = [](std::vector<int> axes, bool keepdims, real (*f)(const values&)) {
        return [=](const std::vector<array>& x) { return fold(x[0], axes, keepdims, f); };
    };
    const interval wide{-2, 2}, near_one{0.6, 1.5};
    const auto nothing = [](std::vector<std::vector<extents>> shapes) {
        for (const extents& s : {extents{0}, extents{0, 3}, extents{3, 0}}) shapes.push_back({s});
        return shapes;
    };

    put(make_row<1>(
            "sum", [](auto x) { return sum(x); }, {wide}, over({}, false, sum_of)),
        nothing(vectors()), 32, 300);
    put(make_row<1>(
            "sum keepdims", [](auto x) { return sum(x, {}, {.keepdims = true}); }, {wide}, over({}, true, sum_of)),
        {{{}}, {{3, 5}}, {{0}}, {{2, 0, 3}}});
    put(make_row<1>(
            "sum axis 0", [](auto x) { return sum(x, 0); }, {wide}, over({0}, false, sum_of)),
        nothing({{{5}}, {{3, 5}}, {{300, 7}}, {{2, 150, 150}}, {{5, 33000}}}), 32, 64);
    put(make_row<1>(
            "sum axis -1", [](auto x) { return sum(x, -1); }, {wide}, over({-1}, false, sum_of)),
        nothing({{{5}}, {{3, 5}}, {{7, 300}}, {{2, 150, 150}}, {{33000, 5}}}), 32, 64);
    put(make_row<1>(
            "sum axes 0 2 keepdims",
            [](auto x) {
                return sum(x, {0, 2}, {.keepdims = true});
            },
            {wide}, over({0, 2}, true, sum_of)),
        cubes(), 32, 64);
    put(make_row<1>(
            "sum axis 1 of 3", [](auto x) { return sum(x, 1); }, {wide}, over({1}, false, sum_of)),
        cubes(), 32, 64);
    put(make_row<1>(
            "sum axes 0 2 4 6",
            [](auto x) {
                return sum(x, {0, 2, 4, 6});
            },
            {wide}, over({0, 2, 4, 6}, false, sum_of)),
        {{{2, 3, 2, 1, 2, 2, 3, 2}}});

    const auto product_shapes = std::vector<std::vector<extents>>{{{}}, {{1}}, {{7}}, {{60}}, {{0}}};
    put(make_row<1>(
            "prod", [](auto x) { return prod(x); }, {near_one}, over({}, false, product_of)),
        product_shapes, 64);
    put(make_row<1, false>(
            "prod axis 1", [](auto x) { return prod(x, 1); }, {near_one}, over({1}, false, product_of)),
        {{{3, 5}}, {{3, 1}}, {{3, 0}}, {{4, 5, 3}}}, 64);

    put(make_row<1>(
            "max", [](auto x) { return max(x); }, {wide}, over({}, false, max_of)),
        vectors(), 0, 0);
    put(make_row<1>(
            "max axis 1", [](auto x) { return max(x, 1); }, {wide}, over({1}, false, max_of)),
        matrices(), 0, 0);
    put(make_row<1, false>(
            "min", [](auto x) { return min(x); }, {wide}, over({}, false, min_of)),
        vectors(), 0, 0);
    put(make_row<1>(
            "min axis 0 keepdims", [](auto x) { return min(x, 0, {.keepdims = true}); }, {wide},
            over({0}, true, min_of)),
        matrices(), 0, 0);

    put(make_row<1>(
            "mean", [](auto x) { return mean(x); }, {wide}, over({}, false, mean_of)),
        nothing(vectors()), 32, 1);
    put(make_row<1, false>(
            "mean axes 1 2",
            [](auto x) {
                return mean(x, {1, 2});
            },
            {wide}, over({1, 2}, false, mean_of)),
        cubes(), 32, 1);
    put(make_row<1>(
            "variance", [](auto x) { return variance(x); }, {wide}, over({}, false, variance_of)),
        vectors(), 32, 1);
    put(make_row<1, false>(
            "variance axes 0 1 keepdims",
            [](auto x) {
                return variance(x, {0, 1}, {.keepdims = true});
            },
            {wide}, over({0, 1}, true, variance_of)),
        cubes(), 32, 1);
    put(make_row<1, false>(
            "variance axis 1, correction", [](auto x) { return variance(x, 1, {.correction = 1}); }, {wide},
            over({1}, false, unbiased_variance_of)),
        {{{3, 5}}, {{4, 2, 3}}, {{2, 700}}}, 32, 1);
    put(make_row<1>(
            "stddev axis -1", [](auto x) { return stddev(x, -1); }, {wide}, over({-1}, false, deviation_of)),
        {{{5}}, {{3, 5}}, {{7, 300}}}, 32, 1);
    put(make_row<1, false>(
            "moments axis 0", [](auto x) { const auto [m, v] = moments(x, 0); return m * m + v; }, {wide},
            over({0}, false, [](const values& v) { const real m = mean_of(v); return m * m + variance_of(v); })),
        {{{5}}, {{3, 5}}, {{300, 7}}}, 32, 1);
    put(make_row<1, false>(
            "moments axis 0, correction",
            [](auto x) {
                const auto [m, v] = moments(x, 0, {.correction = 1});
                return m * m + v;
            },
            {wide},
            over({0}, false,
                 [](const values& v) {
                     const real m = mean_of(v);
                     return m * m + unbiased_variance_of(v);
                 })),
        {{{5}}, {{3, 5}}, {{300, 7}}}, 32, 1);
    const auto norms = std::vector<std::vector<extents>>{{{}}, {{7}}, {{3, 5}}, {{2, 513}}};
    put(make_row<1>(
            "norm", [](auto x) { return norm(x); }, {wide}, over({}, false, norm_of<20>)),
        {{{}}, {{1}}, {{7}}, {{3, 5}}, {{0}}, {{32771}}}, 32, 1);
    put(make_row<1, false>(
            "norm axes 0 2 keepdims", [](auto x) { return norm(x, 2, {0, 2}, {.keepdims = true}); }, {wide},
            over({0, 2}, true, norm_of<20>)),
        cubes(), 32, 1);
    put(make_row<1, false>(
            "norm order 1 axis -1", [](auto x) { return norm(x, 1, -1); }, {wide}, over({-1}, false, norm_of<10>)),
        {{{7}}, {{3, 5}}}, 32, 1);
    put(make_row<1, false>(
            "norm order 2.5", [](auto x) { return norm(x, 2.5); }, {wide}, over({}, false, norm_of<25>)),
        norms, 64, 1);
    put(make_row<1, false>(
            "norm order -1", [](auto x) { return norm(x, -1); }, {{0.5, 2}}, over({}, false, norm_of<-10>)),
        norms, 64, 1);
    put(make_row<1, false>(
            "norm order infinity axis 1", [](auto x) { return norm(x, INFINITY, 1); }, {wide}, over({1}, false, largest_of)),
        {{{3, 5}}, {{4, 2, 3}}}, 0, 0);

    const auto ask = [&](row r) {
        r.derivatives = 0;
        put(std::move(r), {{{}}, {{1}}, {{7}}, {{0}}, {{3, 5}}, {{513}}, {{33, 1021}}}, 0, 0);
    };
    ask(make_row<1>(
        "any of x > 1.9", [](auto x) { return any(x > 1.9); }, {wide},
        over({}, false, [](const values& v) { return real(std::any_of(v.begin(), v.end(), [](real x) { return x > real(1.9); })); })));
    ask(make_row<1>(
        "all of x < 1.9", [](auto x) { return tapegraph::all(x < 1.9); }, {wide},
        over({}, false, [](const values& v) { return real(std::all_of(v.begin(), v.end(), [](real x) { return x < real(1.9); })); })));
    ask(make_row<1>(
        "count_nonzero of x > 0", [](auto x) { return count_nonzero(x > 0); }, {wide}, over({}, false, positive_of)));

    put(make_row<1>(
            "logsumexp", [](auto x) { return logsumexp(x); }, {wide}, over({}, false, logsumexp_of)),
        vectors(), 16, 4);
    put(make_row<1, false>(
            "logsumexp axis 0 keepdims", [](auto x) { return logsumexp(x, 0, {.keepdims = true}); }, {wide},
            over({0}, true, logsumexp_of)),
        matrices(), 16, 4);
    put(make_row<1>(
            "softmax", [](auto x) { return softmax(x); }, {wide},
            [](const std::vector<array>& x) {
                return along(
                    x[0], -1, [](real v, real total) { return std::exp(v - total); }, logsumexp_of);
            }),
        {{{5}}, {{1}}, {{3, 7}}, {{2, 3, 1}}, {{0, 3}}, {{3, 0}}, {{5, 600}}}, 16, 0.1);
    put(make_row<1, false>(
            "softmax axis 0", [](auto x) { return softmax(x, 0); }, {wide},
            [](const std::vector<array>& x) {
                return along(
                    x[0], 0, [](real v, real total) { return std::exp(v - total); }, logsumexp_of);
            }),
        {{{5}}, {{3, 7}}}, 16, 0.1);
    put(make_row<1>(
            "log_softmax", [](auto x) { return log_softmax(x); }, {wide},
            [](const std::vector<array>& x) {
                return along(
                    x[0], -1, [](real v, real total) { return v - total; }, logsumexp_of);
            }),
        {{{5}}, {{1}}, {{3, 7}}, {{0, 3}}, {{3, 0}}, {{5, 600}}}, 16, 4);
    put(make_row<1>(
            "log_softmax far from zero", [](auto x) { return log_softmax(x + 4096); }, {wide},
            [](const std::vector<array>& x) {
                return along(
                    x[0], -1, [](real v, real total) { return v - total; }, logsumexp_of);
            }),
        {{{5}}, {{3, 7}}}, 16, 1);
    rows.back().whole = true; // so x + 4096 is exact, and what is lost is lost by the function
    rows.back().derivatives = 0;

    // The operand of a reduction is fused into it, with its broadcasting; adjoints of broadcast operands are reductions of
    // the adjoint formula.
    const auto dot_of = [](const std::vector<array>& x) {
        return fold(map(x, [](const real* v) { return v[0] * v[1] + v[0]; }), {}, false, sum_of);
    };
    put(make_row<2>(
            "sum of x y + x", [](auto x, auto y) { return sum(x * y + x); }, {wide, wide}, dot_of),
        {{{7}, {7}},
         {{3, 1}, {1, 4}},
         {{}, {5}},
         {{5}, {}},
         {{2, 3, 5}, {3, 1}},
         {{0}, {1}},
         {{181, 1}, {1, 191}},
         {{700, 3}, {3}}},
        64, 300);
    put(make_row<2, false>(
            "max of x + y axis 0", [](auto x, auto y) { return max(x + y, 0); }, {wide, wide},
            [](const std::vector<array>& x) {
                return fold(map(x, [](const real* v) { return v[0] + v[1]; }), {0}, false, max_of);
            }),
        {{{3, 1}, {1, 4}}, {{5, 7}, {7}}, {{7}, {5, 7}}}, 1, 0);
    return rows;
}

} // namespace tapegraph::testing
