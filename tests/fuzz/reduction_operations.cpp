#include <fuzz/rows.hpp>

/// Reductions and matrix products. Of a reduction, whole[0] is the mask of axes (-1: all, as when none is named),
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

operation matmul_row() {
    operation row = make_operation<double, double>("matmul", [](const auto& x, const auto& y, const attributes& with) {
        return matmul(x, y, {.transpose_a = with.whole[0] != 0, .transpose_b = with.whole[1] != 0});
    });
    row.domains = {{-30, 30}, {-30, 30}};
    row.weight = 4;
    row.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        const extents& a = before[0];
        if (a.size() < 2) return false;
        const std::int64_t inner = a[a.size() - static_cast<std::size_t>(random.whole(1, 2))];
        dims = {inner, random.whole(0, 4)};
        if (random.chance(0.4)) std::swap(dims[0], dims[1]);
        if (a.size() > 2 && random.chance(0.5)) dims.insert(dims.begin(), random.chance(0.5) ? a[a.size() - 3] : 1);
        if (dims.size() < 5 && random.chance(0.2)) dims.insert(dims.begin(), a.size() == dims.size() ? 1 : 2);
        return true;
    };
    row.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (x[0].size() < 2 || x[1].size() < 2) return false;
        for (int attempt = 0; attempt < 6; ++attempt) {
            with.whole = {random.chance(0.4), random.chance(0.4)};
            if (x[0][x[0].size() - (with.whole[0] != 0 ? 2 : 1)] == x[1][x[1].size() - (with.whole[1] != 0 ? 1 : 2)])
                return true;
        }
        return false;
    };
    row.source = [](const std::vector<std::string>& x, const attributes& with) {
        const auto flag = [&](std::size_t i) { return std::string(with.whole[i] != 0 ? "true" : "false"); };
        return "matmul(" + x[0] + ", " + x[1] + ", {.transpose_a = " + flag(0) + ", .transpose_b = " + flag(1) + "})";
    };
    row.reference = [](const std::vector<array>& x, const attributes& with) {
        return testing::matmul(x[0], x[1], with.whole[0] != 0, with.whole[1] != 0);
    };
    return row;
}

} // namespace

std::vector<operation> reduction_operations() {
    std::vector<operation> r{
        reduction(TG_REDUCTION(sum), {}, testing::sum_of),
        reduction(TG_REDUCTION(mean), {}, testing::mean_of),
        reduction(TG_REDUCTION(prod), {0.3, 2.5}, product_of),
        reduction(TG_REDUCTION(max), {}, testing::max_of),
        reduction(TG_REDUCTION(min), {}, testing::min_of),
        reduction(TG_REDUCTION(variance), {-30, 30}, variance_of),
        reduction(TG_REDUCTION(logsumexp), {-30, 30}, logsumexp_of),
    };
    for (operation& row : r) {
        row.takes_formula =
            row.name == "sum" || row.name == "mean" || row.name == "prod" || row.name == "max" || row.name == "min";
        row.splits_ties = row.name == "max" || row.name == "min";
    }
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
    r.push_back(matmul_row());
    return r;
}

} // namespace tapegraph::fuzz
