#include <operations/builders.hpp>

/// Order, and what runs along an axis.

namespace tapegraph::testing {

namespace ordering {

using line = std::vector<real>;

// Every line along an axis becomes one of `length`.
template <class F>
array each_line(const array& x, std::size_t axis, std::int64_t length, const F& f) {
    extents dims = x.dims;
    dims[axis] = length;
    array y(dims);
    for (std::int64_t i = 0; i < y.size(); ++i) {
        extents at = unravel(i, dims);
        if (at[axis] != 0) continue;
        line all;
        for (; at[axis] < x.dims[axis]; ++at[axis]) all.push_back(x.at(at));
        const line made = f(all);
        for (at[axis] = 0; at[axis] < length; ++at[axis]) y.at(at) = made[static_cast<std::size_t>(at[axis])];
    }
    return y;
}

// whole: the axis, reverse, exclusive.
template <class F>
operation cumulative(const char* name, F f, bool product, std::vector<row> rows) {
    operation made = make_operation<floating>(name, f, std::move(rows));
    if (product) made.domains = {{-2.5, 2.5}};
    made.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (!draw_axis(random, x[0], with)) return false;
        with.whole.insert(with.whole.end(), {random.chance(0.5), random.chance(0.5)});
        return true;
    };
    made.source = [name](const std::vector<std::string>& x, const attributes& with) {
        return std::string(name) + "(" + x[0] + ", " + text_of(with.whole[0]) +
               ", {.reverse = " + flag_text(with.whole[1]) + ", .exclusive = " + flag_text(with.whole[2]) + "})";
    };
    made.reference = [product](const std::vector<array>& x, const attributes& with) {
        const std::size_t axis = axis_in(x[0].dims, with);
        return each_line(x[0], axis, x[0].dims[axis], [&](const line& v) {
            line y(v.size(), product ? 1 : 0);
            for (std::size_t i = 0; i < v.size(); ++i)
                for (std::size_t k = 0; k < v.size(); ++k) {
                    const bool before = with.whole[1] != 0 ? k > i : k < i;
                    if (before || (k == i && with.whole[2] == 0)) y[i] = product ? y[i] * v[k] : y[i] + v[k];
                }
            return y;
        });
    };
    return made;
}
cumulative_options running(const attributes& with) {
    cumulative_options options;
    if (with.whole[1] != 0) options.reverse = true;
    if (with.whole[2] != 0) options.exclusive = true;
    return options;
}
// A running sum of some hundred terms of order one, or a product of numbers near one.
row run_along(attributes with, shape_list shapes, interval where = {}) {
    return {.with = std::move(with),
            .shapes = std::move(shapes),
            .domains = {where},
            .ulps = 16,
            .floor = 8,
            .why = "running sums"};
}

std::vector<operation> running_sums() {
    const interval near_one{0.6, 1.4};
    return {cumulative("cumulative_sum",
                       [](const auto& x, const attributes& with) {
                           if (with.whole == extents{-1, 0, 0}) return cumulative_sum(x);
                           return cumulative_sum(x, axis_of(with), running(with));
                       },
                       false,
                       {run_along({{-1, 0, 0}, {}}, {{{1}}, {{7}}, {{3, 5}}, {{0}}, {{3, 0}}, {{2, 513}}}),
                        run_along({{0, 1, 0}, {}}, {{{7}}, {{3, 5}}, {{4, 2, 3}}, {{70, 33}}}),
                        run_along({{-2, 0, 1}, {}}, {{{3, 5}}, {{1, 4}}, {{4, 2, 3}}}),
                        run_along({{1, 1, 1}, {}}, {{{3, 5}}, {{4, 2, 3}}})}),
            cumulative("cumulative_product",
                       [](const auto& x, const attributes& with) {
                           return cumulative_product(x, axis_of(with), running(with));
                       },
                       true,
                       {run_along({{-1, 0, 0}, {}}, {{{1}}, {{7}}, {{3, 5}}, {{0}}, {{3, 0}}, {{2, 60}}}, near_one),
                        run_along({{0, 1, 0}, {}}, {{{7}}, {{3, 5}}, {{4, 2, 3}}}, near_one),
                        run_along({{1, 1, 1}, {}}, {{{3, 5}}, {{4, 2, 3}}}, near_one)})};
}

// The sorting permutation: NaN after everything, equal elements in their old order.
line order_of(const line& v, bool descending) {
    line order(v.size());
    std::iota(order.begin(), order.end(), real(0));
    std::stable_sort(order.begin(), order.end(), [&](real i, real k) {
        const real a = v[static_cast<std::size_t>(i)], b = v[static_cast<std::size_t>(k)];
        if (std::isnan(b)) return !std::isnan(a);
        return descending ? a > b : a < b;
    });
    return order;
}
line sorted(const line& v, bool descending) {
    line order = order_of(v, descending);
    for (real& each : order) each = v[static_cast<std::size_t>(each)];
    return order;
}

// whole: the axis, a flag, how many.
row ordered(attributes with, shape_list shapes) {
    return {.with = std::move(with), .shapes = std::move(shapes), .ulps = 0};
}
row tied(attributes with, shape_list shapes) { // many equal elements
    return {.with = std::move(with), .shapes = std::move(shapes), .ulps = 0, .derivatives = 0, .whole = true};
}

sort_options descending_if(const attributes& with) {
    sort_options options;
    if (with.whole[1] != 0) options.descending = true;
    return options;
}
top_k_options largest_if(const attributes& with) {
    top_k_options options;
    if (with.whole[1] == 0) options.largest = false;
    return options;
}

template <class F>
operation of_order(const char* name, const char* option, F f, bool positions, std::vector<row> rows) {
    operation made = make_operation<floating>(name, f, std::move(rows));
    made.weight = 2;
    made.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (!draw_axis(random, x[0], with)) return false;
        if (random.chance(0.5)) with.whole[0] = -1;
        with.whole.push_back(random.chance(0.5));
        return true;
    };
    made.source = [name, option](const std::vector<std::string>& x, const attributes& with) {
        return std::string(name) + "(" + x[0] + ", " + text_of(with.whole[0]) + ", {." + option + " = " +
               flag_text(with.whole[1]) + "})";
    };
    made.reference = [positions](const std::vector<array>& x, const attributes& with) {
        const std::size_t axis = axis_in(x[0].dims, with);
        return each_line(x[0], axis, x[0].dims[axis],
                         [&](const line& v) { return (positions ? order_of : sorted)(v, with.whole[1] != 0); });
    };
    return made;
}

template <class F>
operation some_of(const char* part, F f, bool positions, std::vector<row> rows) {
    operation made = make_operation<floating>(std::string("top_k_") + part, f, std::move(rows));
    made.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (!draw_axis(random, x[0], with)) return false;
        const std::int64_t extent = x[0][axis_in(x[0], with)];
        with.whole.insert(with.whole.end(), {random.chance(0.5), random.whole(1, extent)});
        return extent > 0;
    };
    made.source = [part](const std::vector<std::string>& x, const attributes& with) {
        return "top_k(" + x[0] + ", " + text_of(with.whole[2]) + ", " + text_of(with.whole[0]) +
               ", {.largest = " + flag_text(with.whole[1]) + "})." + part;
    };
    made.reference = [positions](const std::vector<array>& x, const attributes& with) {
        return each_line(x[0], axis_in(x[0].dims, with), with.whole[2],
                         [&](const line& v) { return (positions ? order_of : sorted)(v, with.whole[1] != 0); });
    };
    return made;
}

std::vector<operation> orders() {
    // No derivatives at the long lines: so many elements come closer to each other than a difference step.
    const shape_list lines{{{1}}, {{7}}, {{3, 5}}, {{0}}, {{3, 0}}, {{2, 3, 1}}};
    shape_list longer = lines;
    longer.push_back({{5, 513}});
    return {
        of_order("sort", "descending",
                 [](const auto& x, const attributes& with) { return sort(x, axis_of(with), descending_if(with)); },
                 false,
                 {ordered({{-1, 0}, {}}, lines), ordered({{-1, 1}, {}}, lines),
                  ordered({{0, 0}, {}}, {{{7}}, {{5, 3}}, {{4, 2, 3}}, {{0, 3}}})}),
        of_order("argsort", "descending",
                 [](const auto& x, const attributes& with) { return argsort(x, axis_of(with), descending_if(with)); },
                 true,
                 {tied({{-1, 0}, {}}, longer), tied({{-1, 1}, {}}, longer),
                  tied({{1, 0}, {}}, {{{2, 3, 4}}, {{1, 60, 5}}})}),
        some_of("values",
                [](const auto& x, const attributes& with) {
                    return top_k(x, with.whole[2], axis_of(with), largest_if(with)).values;
                },
                false,
                {ordered({{-1, 1, 3}, {}}, {{{3}}, {{7}}, {{4, 5}}, {{0, 3}}, {{2, 70}}}),
                 ordered({{0, 0, 2}, {}}, {{{2, 3}}, {{7, 4}}})}),
        some_of("indices",
                [](const auto& x, const attributes& with) {
                    return top_k(x, with.whole[2], axis_of(with), largest_if(with)).indices;
                },
                true,
                {tied({{-1, 1, 60}, {}}, {{{60}}, {{3, 61}}, {{2, 1000}}}), // selected up to 64, sorted beyond
                 tied({{-1, 0, 65}, {}}, {{{65}}, {{3, 1000}}})})};
}

// NumPy: the first NaN wins, else the first best.
real first_best(const line& v, bool largest) {
    std::size_t best = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
        if (std::isnan(v[i])) return static_cast<real>(i);
        if (largest ? v[i] > v[best] : v[i] < v[best]) best = i;
    }
    return static_cast<real>(best);
}

// whole: the axis, keepdims; none: the whole operand.
template <class F>
operation extreme(const char* name, F f, bool largest, std::vector<row> rows) {
    operation made = make_operation<floating>(name, f, std::move(rows));
    made.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (!draw_axis(random, x[0], with)) return false;
        with.whole.push_back(random.chance(0.3));
        return true;
    };
    made.source = [name](const std::vector<std::string>& x, const attributes& with) {
        return std::string(name) + "(" + x[0] + ", " + text_of(with.whole[0]) +
               ", {.keepdims = " + flag_text(with.whole[1]) + "})";
    };
    made.reference = [largest](const std::vector<array>& x, const attributes& with) {
        return fold(x[0], {axis_of(with)}, with.whole[1] != 0, [&](const line& v) { return first_best(v, largest); });
    };
    return made;
}

std::vector<operation> extremes() {
    operation all = one_operand<floating>(
        "argmax_all", [](const auto& x, const attributes&) { return argmax(x); },
        [](choices&, const extents& x, attributes&) { return count_of(x) > 0; },
        [](const attributes&) { return std::string("argmax($)"); },
        [](const array& x, const attributes&) {
            return fold(x, {}, false, [](const line& v) { return first_best(v, true); });
        },
        {tied({}, {{{}}, {{1}}, {{3, 5}}, {{5, 513}}})});
    return {extreme("argmax",
                    [](const auto& x, const attributes& with) {
                        return argmax(x, axis_of(with), keepdims_if{with.whole[1] != 0});
                    },
                    true, {tied({{-1, 1}, {}}, {{{1}}, {{7}}, {{3, 5}}, {{0, 3}}, {{2, 3, 1}}, {{5, 513}}})}),
            extreme("argmin",
                    [](const auto& x, const attributes& with) {
                        return argmin(x, axis_of(with), keepdims_if{with.whole[1] != 0});
                    },
                    false,
                    {tied({{0, 0}, {}}, {{{1}}, {{7}}, {{3, 5}}, {{3, 0}}, {{2, 3, 5}}, {{513, 5}}}),
                     tied({{1, 1}, {}}, {{{3, 5}}, {{2, 3, 5}}})}),
            all};
}

} // namespace ordering

std::vector<operation> ordering_operations() {
    using namespace ordering;
    std::vector<operation> made;
    for (const auto& part : {running_sums(), orders(), extremes()}) made.insert(made.end(), part.begin(), part.end());
    return made;
}

} // namespace tapegraph::testing
