#include <operations/builders.hpp>

/// Reductions. whole: keepdims, then the axes; without any, all of them.

namespace tapegraph::testing {

namespace reductions {

using group = std::vector<real>;

attributes over(std::vector<std::int64_t> axes = {}, bool keepdims = false) {
    axes.insert(axes.begin(), keepdims);
    return {axes, {}};
}
std::vector<int> axis_list(const attributes& with) { return {with.whole.begin() + 1, with.whole.end()}; }
axes axes_from(const attributes& with) { return axes_of_words(axis_list(with)); }
keepdims_if kept(const attributes& with) { return {with.whole[0] != 0}; }
std::string axes_text(const attributes& with) { return axes_text_of({with.whole.begin() + 1, with.whole.end()}); }

bool draw_axes(choices& random, const std::vector<extents>& x, attributes& with) {
    with = over({}, random.chance(0.4));
    if (!random.chance(0.2)) draw_some_axes(random, rank_of(x[0]), with);
    return true;
}

using fold_function = std::function<real(const group&, const attributes& with)>;

/// Of `text`, $ is the operand and @ the axes and the beginning of the options.
template <class T, class F>
operation reduction(const std::string& name, const std::string& text, F f, domain where, fold_function combine,
                    std::vector<row> rows = {}) {
    operation made = make_operation<T>(name, f, std::move(rows));
    made.domains = {where};
    made.draw = draw_axes;
    made.weight *= 1.5;
    made.source = [text](const std::vector<std::string>& x, const attributes& with) {
        std::string result = text;
        result.replace(result.find('$'), 1, "(" + x[0] + ")");
        return result.replace(result.find('@'), 1, axes_text(with) + ", {.keepdims = " + flag_text(with.whole[0]));
    };
    made.reference = [combine](const std::vector<array>& x, const attributes& with) {
        return fold(x[0], axis_list(with), with.whole[0] != 0, [&](const group& v) { return combine(v, with); });
    };
    for (row& r : made.rows)
        if (r.why.empty()) r.why = "rounding of a sum";
    return made;
}
fold_function plain(real (*combine)(const group&)) {
    return [combine](const group& v, const attributes&) { return combine(v); };
}

// A reduction's name, text and lambda.
#define TG_REDUCTION(name)                                                                                             \
#name, #name "($, @})", [](const auto& x, const attributes& with) { return name(x, axes_from(with), kept(with)); }

real product_of(const group& v) { return std::accumulate(v.begin(), v.end(), real(1), std::multiplies<>()); }
real variance_of(const group& v) {
    const real mean = mean_of(v);
    real sum = 0;
    for (const real x : v) sum += (x - mean) * (x - mean);
    return sum / static_cast<real>(v.size());
}
real unbiased_variance_of(const group& v) {
    return variance_of(v) * static_cast<real>(v.size()) / static_cast<real>(v.size() - 1);
}
real deviation_of(const group& v) { return std::sqrt(variance_of(v)); }
real logsumexp_of(const group& v) {
    real sum = 0;
    for (const real x : v) sum += std::exp(x);
    return std::log(sum);
}
template <class Question>
fold_function counted(const Question& question) {
    return [question](const group& v, const attributes& with) {
        return static_cast<real>(std::count_if(v.begin(), v.end(), [&](real x) { return question(x, with); }));
    };
}

// real[0] is the order.
constexpr double infinity = std::numeric_limits<double>::infinity();
attributes of_order(double order, attributes with = over()) {
    with.real = {order};
    return with;
}
real norm_of(const group& v, double order) {
    group magnitudes, powers;
    for (const real x : v) {
        magnitudes.push_back(std::abs(x));
        powers.push_back(order == 0 ? x != 0 : std::pow(std::abs(x), static_cast<real>(order)));
    }
    if (std::isinf(order)) {
        if (order < 0) return min_of(magnitudes);
        return std::max(max_of(magnitudes), real(0));
    }
    const real sum = sum_of(powers);
    return order == 0 ? sum : std::pow(sum, 1 / static_cast<real>(order));
}

/// Whether `accepts(group)` of all elements that are reduced together.
template <class F>
bool every_group(const array& x, const attributes& with, const F& accepts) {
    for (const int axis : axis_list(with))
        if (axis >= rank_of(x.dims) || axis < -rank_of(x.dims)) return true; // for the operation to refuse
    bool ok = true;
    fold(x, axis_list(with), false, [&](const group& each) {
        ok = ok && accepts(each);
        return real(0);
    });
    return ok;
}
// Near a zero the second derivatives of roots are rounding errors.
bool far_from_roots(const group& v, double order) {
    if (v.empty()) return order >= 0 && !std::isinf(order);
    if (order == -1 || order == 1.5) return norm_of(v, -infinity) > 0.1L;
    return order < 2 || std::isinf(order) || norm_of(v, 2) > 1e-2L;
}

operation norms(std::vector<row> rows) {
    operation made = reduction<floating>(
        "norm", "norm($, @})",
        [](const auto& x, const attributes& with) {
            if (with == of_order(2)) return norm(x);
            return norm(x, with.real[0], axes_from(with), kept(with));
        },
        {-30, 30}, [](const group& v, const attributes& with) { return norm_of(v, with.real[0]); }, std::move(rows));
    made.weight = 1;
    made.splits_ties = true; // the infinite orders
    made.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        draw_axes(random, x, with);
        with.real = {random.pick(std::vector<double>{2, 1, 3, 1.5, -1, infinity, -infinity, 0})};
        return true;
    };
    made.accepts = [](const std::vector<array>& x, const attributes& with) {
        return every_group(x[0], with, [&](const group& v) { return far_from_roots(v, with.real[0]); });
    };
    made.source = [plain = made.source](const std::vector<std::string>& x, const attributes& with) {
        const double order = with.real[0];
        std::string text = plain(x, with);
        return text.insert(text.rfind(axes_text(with) + ", {"),
                           (std::isinf(order)
                                ? std::string(order < 0 ? "-" : "") + "std::numeric_limits<double>::infinity()"
                                : number_text(order)) +
                               ", ");
    };
    return made;
}

template <class F>
operation along_axis(const std::string& name, F f, bool logarithm, std::vector<row> rows) {
    operation made = make_operation<floating>(name, f, std::move(rows));
    made.domains = {{-30, 30}};
    made.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        return draw_axis(random, x[0], with);
    };
    made.source = [name](const std::vector<std::string>& x, const attributes& with) {
        return name + "(" + x[0] + ", " + text_of(with.whole[0]) + ")";
    };
    made.reference = [logarithm](const std::vector<array>& x, const attributes& with) {
        const array totals = fold(x[0], {axis_of(with)}, true, logsumexp_of);
        return map({x[0], totals}, [=](const real* v) { return logarithm ? v[0] - v[1] : std::exp(v[0] - v[1]); });
    };
    return made;
}

// What reduces to nothing, to one, over primes, over more than a tile, over what threads share.
const shape_list vectors{{{}}, {{1}}, {{7}}, {{513}}, {{32771}}};
const shape_list matrices{{{3, 5}}, {{1, 1}}, {{5, 1}}, {{7, 300}}, {{300, 7}}, {{3, 16385}}};
const shape_list cubes{{{2, 3, 5}}, {{1, 3, 1}}, {{4, 1, 3}}, {{5, 37, 7}}, {{2, 150, 150}}};
const shape_list few{{{5}}, {{3, 5}}, {{300, 7}}};
shape_list and_nothing(shape_list shapes) {
    for (const extents& s : {extents{0}, extents{0, 3}, extents{3, 0}}) shapes.push_back({s});
    return shapes;
}

// Sums of n terms in a fixed order of lanes and blocks: the error is some log2(n) + n / (lanes blocks) epsilons of the sum
// of the magnitudes. `floor` stands for that sum where terms cancel.
row summed(attributes with, shape_list shapes, double floor = 8, double ulps = 32) {
    return {.with = std::move(with), .shapes = std::move(shapes), .ulps = ulps, .floor = floor};
}
row selected(attributes with, shape_list shapes) { return summed(std::move(with), std::move(shapes), 0, 0); }
row multiplied(attributes with, shape_list shapes, std::vector<interval> domains = {{0.6, 1.5}}, double floor = 8) {
    return {.with = std::move(with),
            .shapes = std::move(shapes),
            .domains = std::move(domains),
            .ulps = 64,
            .floor = floor};
}
row compared(attributes with = over()) {
    return {.with = std::move(with),
            .shapes = {{{}}, {{1}}, {{7}}, {{0}}, {{3, 5}}, {{513}}, {{33, 1021}}},
            .ulps = 0,
            .derivatives = 0};
}

// The operand of a reduction is fused into it, with its broadcasting; adjoints of broadcast operands are reductions of the
// adjoint formula.
std::vector<operation> of_formulas() {
    operation squares = make_operation<double, double>(
        "sum_of_squares", [](const auto& x, const auto& y, const attributes&) { return sum(square(x - y), -1); });
    squares.domains = {{-30, 30}, {-30, 30}};
    squares.takes_formula = true;
    squares.draw = [](choices&, const std::vector<extents>& x, attributes&) { return !x[0].empty() || !x[1].empty(); };
    squares.source = [](const std::vector<std::string>& x, const attributes&) {
        return "sum(square(" + x[0] + " - " + x[1] + "), -1)";
    };
    squares.reference = [](const std::vector<array>& x, const attributes&) {
        return fold(map(x, [](const real* v) { return (v[0] - v[1]) * (v[0] - v[1]); }), {-1}, false, sum_of);
    };
    operation products = make_operation<floating, floating>(
        "sum of x y + x", not_drawn{[](const auto& x, const auto& y, const attributes&) { return sum(x * y + x); }},
        {multiplied({},
                    {{{7}, {7}},
                     {{3, 1}, {1, 4}},
                     {{}, {5}},
                     {{5}, {}},
                     {{2, 3, 5}, {3, 1}},
                     {{0}, {1}},
                     {{181, 1}, {1, 191}},
                     {{700, 3}, {3}}},
                    {}, 300)});
    products.reference = [](const std::vector<array>& x, const attributes&) {
        return fold(map(x, [](const real* v) { return v[0] * v[1] + v[0]; }), {}, false, sum_of);
    };
    operation largest = make_operation<double, double>(
        "max of x + y axis 0", not_drawn{[](const auto& x, const auto& y, const attributes&) { return max(x + y, 0); }},
        {{.shapes = {{{3, 1}, {1, 4}}, {{5, 7}, {7}}, {{7}, {5, 7}}}, .ulps = 1}});
    largest.reference = [](const std::vector<array>& x, const attributes&) {
        return fold(map(x, [](const real* v) { return v[0] + v[1]; }), {0}, false, max_of);
    };
    return {squares, products, largest};
}

} // namespace reductions

std::vector<operation> reduction_operations() {
    using namespace reductions;
    std::vector<operation> made{
        reduction<floating>(
            TG_REDUCTION(sum), {}, plain(sum_of),
            {summed(over(), and_nothing(vectors), 300), summed(over({}, true), {{{}}, {{3, 5}}, {{0}}, {{2, 0, 3}}}),
             summed(over({0}), and_nothing({{{5}}, {{3, 5}}, {{300, 7}}, {{2, 150, 150}}, {{5, 33000}}}), 64),
             summed(over({-1}), and_nothing({{{5}}, {{3, 5}}, {{7, 300}}, {{2, 150, 150}}, {{33000, 5}}}), 64),
             summed(over({0, 2}, true), cubes, 64), summed(over({1}), cubes, 64),
             summed(over({0, 2, 4, 6}), {{{2, 3, 2, 1, 2, 2, 3, 2}}})}),
        reduction<floating>(TG_REDUCTION(prod), {-2.5, 2.5}, plain(product_of),
                            {multiplied(over(), {{{}}, {{1}}, {{7}}, {{60}}, {{0}}}),
                             multiplied(over({1}), {{{3, 5}}, {{3, 1}}, {{3, 0}}, {{4, 5, 3}}})}),
        reduction<floating>(TG_REDUCTION(max), {}, plain(max_of),
                            {selected(over(), vectors), selected(over({1}), matrices)}),
        reduction<floating>(TG_REDUCTION(min), {}, plain(min_of),
                            {selected(over(), vectors), selected(over({0}, true), matrices)}),
        reduction<floating>(TG_REDUCTION(mean), {}, plain(mean_of),
                            {summed(over(), and_nothing(vectors), 1), summed(over({1, 2}), cubes, 1)}),
        reduction<floating>(TG_REDUCTION(variance), {-30, 30}, plain(variance_of),
                            {summed(over(), vectors, 1), summed(over({0, 1}, true), cubes, 1)}),
        reduction<double>("variance_unbiased", "variance($, @, .correction = 1})",
                          [](const auto& x, const attributes& with) {
                              return variance(x, axes_from(with), {.keepdims = with.whole[0] != 0, .correction = 1});
                          },
                          {-30, 30}, plain(unbiased_variance_of),
                          {summed(over({1}), {{{3, 5}}, {{4, 2, 3}}, {{2, 700}}}, 1)}),
        reduction<floating>(TG_REDUCTION(stddev), {-30, 30}, plain(deviation_of),
                            {summed(over({-1}), {{{5}}, {{3, 5}}, {{7, 300}}}, 1)}),
        reduction<double>("moments", "moments($, @})", not_drawn{[](const auto& x, const attributes&) {
                              const auto [m, v] = moments(x, 0);
                              return m * m + v;
                          }},
                          {},
                          [](const group& v, const attributes&) { return mean_of(v) * mean_of(v) + variance_of(v); },
                          {summed(over({0}), few, 1)}),
        reduction<double>(
            "moments", "moments($, @, .correction = 1})", not_drawn{[](const auto& x, const attributes&) {
                const auto [m, v] = moments(x, 0, {.correction = 1});
                return m * m + v;
            }},
            {}, [](const group& v, const attributes&) { return mean_of(v) * mean_of(v) + unbiased_variance_of(v); },
            {summed(over({0}), few, 1)}),
        norms({summed(of_order(2), {{{}}, {{1}}, {{7}}, {{3, 5}}, {{0}}, {{32771}}}, 1),
               summed(of_order(2, over({0, 2}, true)), cubes, 1), summed(of_order(1, over({-1})), {{{7}}, {{3, 5}}}, 1),
               multiplied(of_order(2.5), {{{}}, {{7}}, {{3, 5}}, {{2, 513}}}, {}, 1),
               multiplied(of_order(2.5, over({0, 2}, true)), cubes, {}, 1),
               multiplied(of_order(-1), {{{}}, {{7}}, {{3, 5}}, {{2, 513}}}, {{0.5, 2}}, 1),
               selected(of_order(infinity, over({1})), {{{3, 5}}, {{4, 2, 3}}})}),
        reduction<floating>(TG_REDUCTION(logsumexp), {-30, 30}, plain(logsumexp_of),
                            {summed(over(), vectors, 4, 16),
                             summed(over({0}, true), matrices, 4, 16),
                             {.with = over({-1}), .shapes = {{{0}}, {{3, 0}}, {{0, 3}}}, .ulps = 0, .derivatives = 0}}),
        reduction<floating>(
            "any_above", "any($ > K, @})",
            [](const auto& x, const attributes& with) { return any(x > with.real[0], axes_from(with), kept(with)); },
            {},
            [](const group& v, const attributes& with) {
                return real(
                    std::any_of(v.begin(), v.end(), [&](real x) { return x > static_cast<real>(with.real[0]); }));
            },
            {compared(of_order(1.9))}),
        reduction<floating>(
            "all_below", "all_of($ < K, @})",
            [](const auto& x, const attributes& with) { return all_of(x < with.real[0], axes_from(with), kept(with)); },
            {},
            [](const group& v, const attributes& with) {
                return real(
                    std::all_of(v.begin(), v.end(), [&](real x) { return x < static_cast<real>(with.real[0]); }));
            },
            {compared(of_order(1.9))}),
        reduction<floating>("count_nonzero of x > 0", "count_nonzero($ > 0, @})",
                            not_drawn{[](const auto& x, const attributes&) { return count_nonzero(x > 0); }}, {},
                            counted([](real x, const attributes&) { return x > 0; }), {compared()}),
        reduction<double>(
            "count_fractions", "cast<element>(count_nonzero(trunc($), @}))",
            [](const auto& x,
               const attributes& with) { return cast<double>(count_nonzero(trunc(x), axes_from(with), kept(with))); },
            {}, counted([](real x, const attributes&) { return std::trunc(x) != 0; })),
        along_axis("softmax",
                   [](const auto& x, const attributes& with) {
                       return axis_of(with) == -1 ? softmax(x) : softmax(x, axis_of(with));
                   },
                   false,
                   {summed({{-1}, {}}, {{{5}}, {{1}}, {{3, 7}}, {{2, 3, 1}}, {{0, 3}}, {{3, 0}}, {{5, 600}}}, 0.1, 16),
                    summed({{0}, {}}, {{{5}}, {{3, 7}}}, 0.1, 16)}),
        along_axis("log_softmax",
                   [](const auto& x, const attributes& with) {
                       return axis_of(with) == -1 ? log_softmax(x) : log_softmax(x, axis_of(with));
                   },
                   true,
                   {summed({{-1}, {}}, {{{5}}, {{1}}, {{3, 7}}, {{0, 3}}, {{3, 0}}, {{5, 600}}}, 4, 16),
                    {.with = {{-1}, {}}, // far from zero, and exact, so what is lost is lost by the function
                     .shapes = {{{5}}, {{3, 7}}},
                     .domains = {{4094, 4098}},
                     .ulps = 16,
                     .floor = 1,
                     .derivatives = 0,
                     .whole = true}}),
    };
    for (operation& each : made) {
        each.takes_formula = each.name == "sum" || each.name == "mean" || each.name == "prod" || each.name == "max" ||
                             each.name == "min";
        each.splits_ties = each.splits_ties || each.name == "max" || each.name == "min";
        if (each.name == "stddev")
            each.accepts = [](const std::vector<array>& x, const attributes& with) {
                return every_group(x[0], with, [](const group& v) { return v.size() == 1 || deviation_of(v) > 1e-2L; });
            };
        if (each.name == "logsumexp") // -infinity of nothing, which differences cannot follow
            each.accepts = [](const std::vector<array>& x, const attributes& with) {
                return every_group(x[0], with, [](const group& v) { return !v.empty(); });
            };
        if (each.name == "variance_unbiased")
            each.accepts = [](const std::vector<array>& x, const attributes& with) {
                return every_group(x[0], with, [](const group& v) { return v.size() > 1; });
            };
        if (each.name == "any_above" || each.name == "all_below") {
            each.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
                draw_axes(random, x, with);
                with.real = {random.pick(std::vector<double>{0, 0.5, -1})};
                return true;
            };
            each.source = [plain = each.source](const std::vector<std::string>& x, const attributes& with) {
                std::string text = plain(x, with);
                return text.replace(text.find(" K,") + 1, 1, number_text(with.real[0]));
            };
        }
    }
    const std::vector<operation> more = of_formulas();
    made.insert(made.end(), more.begin(), more.end());
    return made;
}

} // namespace tapegraph::testing
