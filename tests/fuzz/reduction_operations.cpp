#include <fuzz/rows.hpp>

/// Reductions. Of a reduction, whole[0] is the mask of axes (-1: all, as when none is named),
/// whole[1] keepdims.

namespace tapegraph::fuzz {

namespace {

axes axes_from(const attributes& with) {
    axes result;
    if (with.whole[0] < 0) return result;
    result.all = false;
    for (int axis = 0; axis < max_rank; ++axis)
        if ((with.whole[0] >> axis & 1) != 0) result.index[result.count++] = static_cast<std::int8_t>(axis);
    return result;
}

std::vector<int> listed(const attributes& with) { // for the reference: empty means all
    std::vector<int> result;
    for (int axis = 0; axis < max_rank && with.whole[0] >= 0; ++axis)
        if ((with.whole[0] >> axis & 1) != 0) result.push_back(axis);
    return result;
}

std::string axes_text(const attributes& with) {
    if (with.whole[0] < 0) return "tg::axes{}";
    std::vector<std::int64_t> axes;
    for (const int axis : listed(with)) axes.push_back(axis);
    return axes.size() == 1 ? std::to_string(axes[0]) : braces(axes);
}

bool draw_axes(choices& random, const std::vector<extents>& x, attributes& with) {
    const auto rank = static_cast<std::int64_t>(x[0].size());
    const bool all = rank == 0 || random.chance(0.2);
    with.whole = {all ? -1 : random.whole(1, (std::int64_t{1} << rank) - 1), random.chance(0.4)};
    return true;
}

using fold_function = real (*)(const std::vector<real>&);

template <class F>
operation reduction(const std::string& name, F f, domain where, fold_function fold) {
    operation row = make_operation<double>(name, f);
    row.domains = {where};
    row.draw = draw_axes;
    row.weight = 1.5;
    row.source = [name](const std::vector<std::string>& x, const attributes& with) {
        return name + "(" + x[0] + ", " + axes_text(with) + (with.whole[1] != 0 ? ", {.keepdims = true})" : ")");
    };
    row.reference = [fold](const std::vector<array>& x, const attributes& with) {
        if (with.whole[0] == 0) return x[0];
        return testing::fold(x[0], listed(with), with.whole[1] != 0, fold);
    };
    return row;
}

// The lambda of a reduction by its name.
#define TG_REDUCTION(name)                                                                                             \
#name, [](const auto& x,                                                                                           \
              const attributes& with) { return name(x, axes_from(with), {.keepdims = with.whole[1] != 0}); }

#define TG_REDUCTION_CALL(...) [](const auto& x, const attributes& with) { return __VA_ARGS__; }

/// The source of a row that is not a call by its name: $ is the operand, @ axes and keepdims.
void source_of(std::vector<operation>& rows, const std::string& name, const std::string& text) {
    for (operation& row : rows)
        if (row.name == name)
            row.source = [text](const std::vector<std::string>& x, const attributes& with) {
                std::string result = text;
                result.replace(result.find('$'), 1, "(" + x[0] + ")");
                const std::string keep = with.whole[1] != 0 ? ".keepdims = true" : "";
                if (const auto at = result.find('@'); at != std::string::npos)
                    result.replace(at, 1, axes_text(with) + ", {" + keep + "}");
                if (const auto at = result.find('#'); at != std::string::npos)
                    result.replace(at, 1,
                                   axes_text(with) + ", {" + keep + (keep.empty() ? "" : ", ") + ".correction = 1}");
                return result;
            };
}

template <class F>
operation along_axis(const std::string& name, F f, domain where, bool logarithm) {
    operation row = make_operation<double>(name, f);
    row.domains = {where};
    row.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        return draw_axis(random, x[0], with);
    };
    row.source = [name](const std::vector<std::string>& x, const attributes& with) {
        return name + "(" + x[0] + ", " + std::to_string(with.whole[0]) + ")";
    };
    row.reference = [logarithm](const std::vector<array>& x, const attributes& with) {
        const array raised = testing::map({x[0]}, [](const real* v) { return std::exp(v[0]); });
        const array sums = testing::fold(raised, {static_cast<int>(with.whole[0])}, true, testing::sum_of);
        return testing::map({x[0], sums}, [logarithm](const real* v) {
            return logarithm ? v[0] - std::log(v[1]) : std::exp(v[0]) / v[1];
        });
    };
    return row;
}

real product_of(const std::vector<real>& v) {
    real product = 1;
    for (const real x : v) product *= x;
    return product;
}
real variance_of(const std::vector<real>& v) {
    const real middle = testing::mean_of(v);
    real sum = 0;
    for (const real x : v) sum += (x - middle) * (x - middle);
    return sum / static_cast<real>(v.size());
}
real logsumexp_of(const std::vector<real>& v) {
    real sum = 0;
    for (const real x : v) sum += std::exp(x);
    return std::log(sum);
}

real unbiased_variance_of(const std::vector<real>& v) {
    return variance_of(v) * static_cast<real>(v.size()) / static_cast<real>(v.size() - 1);
}
real deviation_of(const std::vector<real>& v) { return std::sqrt(variance_of(v)); }
real any_positive(const std::vector<real>& v) { return !v.empty() && testing::max_of(v) > 0; }
real all_positive(const std::vector<real>& v) { return v.empty() || testing::min_of(v) > 0; }
real count_of_fractions(const std::vector<real>& v) {
    real count = 0;
    for (const real x : v) count += std::trunc(x) != 0;
    return count;
}

/// Whether `accepts(group)` of all elements that are reduced together.
template <class F>
bool every_group(const array& x, const attributes& with, const F& accepts) {
    bool ok = true;
    if (with.whole[0] >= std::int64_t{1} << x.dims.size()) return true; // for the operation to refuse
    if (with.whole[0] == 0) {                                           // no axis: each element by itself
        for (const real v : x.values) ok = ok && accepts(std::vector<real>{v});
        return ok;
    }
    testing::fold(x, listed(with), false, [&](const std::vector<real>& group) {
        ok = ok && accepts(group);
        return real(0);
    });
    return ok;
}

// whole[2]: which order.
constexpr double norm_orders[]{2, 1, 3, 1.5, -1, INFINITY, -INFINITY, 0};
double norm_order(const attributes& with) {
    if (with.whole[2] < 0 || with.whole[2] > 7) throw argument_error("no such order");
    return norm_orders[with.whole[2]];
}
real norm_of(const std::vector<real>& v, double order) {
    std::vector<real> magnitudes, powers;
    for (const real x : v) {
        magnitudes.push_back(std::abs(x));
        powers.push_back(order == 0 ? x != 0 : std::pow(std::abs(x), static_cast<real>(order)));
    }
    if (std::isinf(order)) return order > 0 ? testing::max_of(magnitudes) : testing::min_of(magnitudes);
    const real sum = testing::sum_of(powers);
    return order == 0 ? sum : std::pow(sum, 1 / static_cast<real>(order));
}

operation norm_row() {
    operation row = make_operation<double>("norm", [](const auto& x, const attributes& with) {
        return norm(x, norm_order(with), axes_from(with), {.keepdims = with.whole[1] != 0});
    });
    row.domains = {{-30, 30}};
    row.splits_ties = true; // the infinite orders
    row.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        draw_axes(random, x, with);
        with.whole.push_back(random.whole(0, 7));
        return true;
    };
    // Near a zero the second derivatives of roots are rounding errors.
    row.accepts = [](const std::vector<array>& x, const attributes& with) {
        const double order = norm_order(with);
        return every_group(x[0], with, [order](const std::vector<real>& group) {
            if (group.empty()) return order >= 0 && !std::isinf(order);
            if (order == -1 || order == 1.5) return norm_of(group, -INFINITY) > 0.1L;
            return order < 2 || std::isinf(order) || norm_of(group, 2) > 1e-2L;
        });
    };
    row.source = [](const std::vector<std::string>& x, const attributes& with) {
        const double order = norm_order(with);
        const std::string infinity = "std::numeric_limits<double>::infinity()";
        return "norm(" + x[0] + ", " + (std::isinf(order) ? (order < 0 ? "-" : "") + infinity : std::to_string(order)) +
               ", " + axes_text(with) + (with.whole[1] != 0 ? ", {.keepdims = true})" : ")");
    };
    row.reference = [](const std::vector<array>& x, const attributes& with) {
        const double order = norm_order(with);
        if (with.whole[0] == 0) return testing::map(x, [order](const real* v) { return norm_of({*v}, order); });
        return testing::fold(x[0], listed(with), with.whole[1] != 0,
                             [order](const std::vector<real>& v) { return norm_of(v, order); });
    };
    return row;
}

} // namespace

std::vector<operation> reduction_operations() {
    std::vector<operation> r{
        reduction(TG_REDUCTION(sum), {}, testing::sum_of),
        reduction(TG_REDUCTION(mean), {}, testing::mean_of),
        reduction(TG_REDUCTION(prod), {-2.5, 2.5}, product_of),
        reduction(TG_REDUCTION(max), {}, testing::max_of),
        reduction(TG_REDUCTION(min), {}, testing::min_of),
        reduction(TG_REDUCTION(variance), {-30, 30}, variance_of),
        reduction(TG_REDUCTION(logsumexp), {-30, 30}, logsumexp_of),
        reduction(TG_REDUCTION(stddev), {-30, 30}, deviation_of),
        reduction("any_positive", TG_REDUCTION_CALL(any(x > 0, axes_from(with), {.keepdims = with.whole[1] != 0})), {},
                  any_positive),
        reduction("all_positive", TG_REDUCTION_CALL(all_of(x > 0, axes_from(with), {.keepdims = with.whole[1] != 0})),
                  {}, all_positive),
        reduction(
            "count_fractions",
            TG_REDUCTION_CALL(cast<double>(count_nonzero(trunc(x), axes_from(with), {.keepdims = with.whole[1] != 0}))),
            {}, count_of_fractions),
        reduction("variance_unbiased",
                  TG_REDUCTION_CALL(variance(x, axes_from(with), {.keepdims = with.whole[1] != 0, .correction = 1})),
                  {-30, 30}, unbiased_variance_of),
        norm_row(),
    };
    for (operation& row : r) {
        row.takes_formula =
            row.name == "sum" || row.name == "mean" || row.name == "prod" || row.name == "max" || row.name == "min";
        row.splits_ties = row.splits_ties || row.name == "max" || row.name == "min";
        if (row.name == "stddev")
            row.accepts = [](const std::vector<array>& x, const attributes& with) {
                return every_group(x[0], with, [](const auto& v) { return v.size() == 1 || deviation_of(v) > 1e-2L; });
            };
        if (row.name == "variance_unbiased")
            row.accepts = [](const std::vector<array>& x, const attributes& with) {
                return every_group(x[0], with, [](const auto& v) { return v.size() > 1; });
            };
    }
    source_of(r, "any_positive", "any($ > 0, @)");
    source_of(r, "all_positive", "all_of($ > 0, @)");
    source_of(r, "count_fractions", "cast<element>(count_nonzero(trunc($), @))");
    source_of(r, "variance_unbiased", "variance($, #)");
    r.push_back(along_axis(
        "softmax", [](const auto& x, const attributes& with) { return softmax(x, static_cast<int>(with.whole[0])); },
        {-30, 30}, false));
    r.push_back(along_axis(
        "log_softmax",
        [](const auto& x, const attributes& with) { return log_softmax(x, static_cast<int>(with.whole[0])); },
        {-30, 30}, true));

    operation squares = make_operation<double, double>(
        "sum_of_squares", [](const auto& x, const auto& y, const attributes&) { return sum(square(x - y), -1); });
    squares.domains = {{-30, 30}, {-30, 30}};
    squares.takes_formula = true;
    squares.draw = [](choices&, const std::vector<extents>& x, attributes&) { return !x[0].empty() || !x[1].empty(); };
    squares.source = [](const std::vector<std::string>& x, const attributes&) {
        return "sum(square(" + x[0] + " - " + x[1] + "), -1)";
    };
    squares.reference = [](const std::vector<array>& x, const attributes&) {
        const array all = testing::map(x, [](const real* v) { return (v[0] - v[1]) * (v[0] - v[1]); });
        return testing::fold(all, {-1}, false, testing::sum_of);
    };
    r.push_back(squares);
    return r;
}

} // namespace tapegraph::fuzz
