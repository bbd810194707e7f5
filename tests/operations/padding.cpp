#include <operations/builders.hpp>

/// Padding, repetitions, parts by position, and constants beside an operand.

namespace tapegraph::testing {

namespace paddings {

using whole = std::int64_t;

std::vector<padding_amount> amounts_of(const attributes& with, std::size_t from) {
    std::vector<padding_amount> amounts;
    for (std::size_t i = from; i + 1 < with.whole.size(); i += 2) amounts.push_back({with.whole[i], with.whole[i + 1]});
    return amounts;
}
std::string amounts_text(const attributes& with, std::size_t from) {
    std::string text;
    for (std::size_t i = from; i + 1 < with.whole.size(); i += 2)
        text += (text.empty() ? "" : ", ") + braces({with.whole[i], with.whole[i + 1]});
    return "{" + text + "}";
}
// The elements that `place` finds of positions that may lie outside, axis by axis; where it says -1, `fill`.
template <class Place>
array padded(const array& x, const attributes& with, std::size_t from, real fill, const Place& place) {
    extents dims = x.dims, before(dims.size());
    for (std::size_t i = 0; from + 2 * i + 1 < with.whole.size(); ++i) {
        before[i] = with.whole[from + 2 * i];
        dims[i] += before[i] + with.whole[from + 2 * i + 1];
    }
    return picked(
        x, dims,
        [&](extents& at) {
            for (std::size_t i = 0; i < at.size(); ++i) at[i] = place(at[i] - before[i], x.dims[i]);
            return std::find(at.begin(), at.end(), -1) == at.end();
        },
        fill);
}

// whole: amounts before and after every axis; real[0]: the fill value.
operation with_a_number() {
    return one_operand<floating>(
        "pad",
        [](const auto& x, const attributes& with) {
            return with_list(amounts_of(with, 0), [&](std::initializer_list<padding_amount> list) {
                return with.real[0] == 0 ? pad(x, list) : pad(x, list, {.value = with.real[0]});
            });
        },
        [](choices& random, const extents& x, attributes& with) {
            with.real = {random.pick(std::vector<double>{0, 0, 0, 1, -1.5, 2})};
            for (std::size_t i = 0; i < x.size(); ++i)
                with.whole.insert(with.whole.end(), {random.whole(0, 2), random.whole(0, 2)});
            return !x.empty();
        },
        [](const attributes& with) {
            return "pad($, " + amounts_text(with, 0) +
                   (with.real[0] == 0 ? ")" : ", {.value = " + number_text(with.real[0]) + "})");
        },
        [](const array& x, const attributes& with) {
            return padded(x, with, 0, static_cast<real>(with.real[0]),
                          [](whole i, whole n) { return i >= 0 && i < n ? i : -1; });
        },
        {{.with = {{1, 2, 0, 3}, {0}}, .shapes = {{{2, 3}}, {{1, 1}}, {{0, 2}}, {{40, 21}}}},
         {.with = {{0, 1, 2, 0, 0, 0}, {-1.5}}, .shapes = {{{2, 3, 2}}, {{1, 1, 1}}, {{3, 0, 5}}, {{2, 200, 3}}}}});
}

constexpr pad_mode modes[]{pad_mode::reflect, pad_mode::symmetric, pad_mode::edge, pad_mode::wrap};
pad_mode mode_of(const attributes& with) {
    if (with.whole[0] < 0 || with.whole[0] > 3) throw argument_error("no such mode");
    return modes[with.whole[0]];
}
whole modulo(whole a, whole n) { return (a % n + n) % n; }
// Walks to the place one step at a time, turning where the mode says.
whole reflected(whole place, whole n, bool twice) {
    if (n == 1) return 0;
    while (place < 0 || place >= n) place = place < 0 ? -place - twice : 2 * n - 2 + twice - place;
    return place;
}

// whole: the mode, then amounts.
operation with_a_mode() {
    std::vector<row> rows;
    for (whole mode = 0; mode < 4; ++mode)
        rows.push_back(
            {.with = {{mode, 2, 3, 1, 0}, {}}, .shapes = {{{4, 5}}, {{1, 7}}, {{2, 1, 3}}, {{3, 4, 2}}, {{30, 41}}}});
    rows.push_back({.with = {{0, 11, 2000}, {}}, .shapes = {{{3}}, {{1}}, {{7}}, {{2}}}}); // many times the length
    return one_operand<floating>(
        "pad_mode",
        [](const auto& x, const attributes& with) {
            return with_list(amounts_of(with, 1), [&](std::initializer_list<padding_amount> list) {
                return pad(x, list, {.mode = mode_of(with)});
            });
        },
        [](choices& random, const extents& x, attributes& with) {
            with.whole = {random.whole(0, 3)};
            for (std::size_t i = 0; i < x.size(); ++i) {
                const whole most = random.chance(0.3) ? 9 : 2;
                const bool some = random.chance(0.6);
                with.whole.insert(with.whole.end(), {some ? random.whole(0, most) : 0, some ? random.whole(0, 2) : 0});
            }
            return !x.empty();
        },
        [](const attributes& with) {
            const char* const names[]{"reflect", "symmetric", "edge", "wrap"};
            mode_of(with);
            return "pad($, " + amounts_text(with, 1) + ", {.mode = tg::pad_mode::" + names[with.whole[0]] + "})";
        },
        [](const array& x, const attributes& with) {
            return padded(x, with, 1, 0, [mode = mode_of(with)](whole i, whole n) {
                if (mode == pad_mode::edge) return std::clamp<whole>(i, 0, n - 1);
                return mode == pad_mode::wrap ? modulo(i, n) : reflected(i, n, mode == pad_mode::symmetric);
            });
        },
        std::move(rows));
}

operation tiled() {
    return one_operand<floating>(
        "tile",
        [](const auto& x, const attributes& with) {
            return with_list(with.whole, [&](std::initializer_list<whole> list) { return tile(x, list); });
        },
        [](choices& random, const extents& x, attributes& with) {
            for (whole count = random.whole(0, std::min<whole>(rank_of(x) + 1, 5)); count > 0; --count)
                with.whole.push_back(random.chance(0.05) ? 0 : random.whole(1, 3));
            return true;
        },
        [](const attributes& with) { return "tile($, " + braces(with.whole) + ")"; },
        [](const array& x, const attributes& with) {
            extents from = x.dims, counts = with.whole;
            while (from.size() < counts.size()) from.insert(from.begin(), 1);
            while (counts.size() < from.size()) counts.insert(counts.begin(), 1);
            extents dims = from;
            for (std::size_t i = 0; i < dims.size(); ++i) dims[i] *= counts[i];
            return picked(array(from, x.values), dims, [&](extents& at) {
                for (std::size_t i = 0; i < at.size(); ++i) at[i] %= from[i];
                return true;
            });
        },
        {{.with = {{2, 1, 3}, {}},
          .shapes = {{{}},
                     {{4}},
                     {{2, 3}},
                     {{2, 3, 5}},
                     {{2, 1, 2, 2}},
                     {{2, 0}},
                     {{1, 2, 1, 2, 1, 2, 1, 3}},
                     {{3, 50, 21}}}}});
}

// whole: the axis and a number.
template <class F>
operation along(const char* name, F f, whole low, whole high, array (*reference)(const array&, const attributes&),
                std::vector<row> rows) {
    operation made = one_operand<floating>(name, f, nullptr, nullptr, reference, std::move(rows));
    made.draw = [low, high](choices& random, const std::vector<extents>& x, attributes& with) {
        if (!draw_axis(random, x[0], with)) return false;
        with.whole.push_back(random.whole(low, high));
        return true;
    };
    made.source = [name](const std::vector<std::string>& x, const attributes& with) {
        return std::string(name) + "(" + x[0] + ", " + text_of(with.whole[1]) + ", " + text_of(with.whole[0]) + ")";
    };
    return made;
}

std::vector<operation> along_axes() {
    const shape_list rolled{{{5}}, {{2, 7}}, {{3, 2, 4}}, {{1, 1}}, {{33, 70}}, {{70001}}};
    return {along(
                "repeat", [](const auto& x, const attributes& with) { return repeat(x, with.whole[1], axis_of(with)); },
                0, 3,
                [](const array& x, const attributes& with) {
                    extents dims = x.dims;
                    dims[axis_in(dims, with)] *= with.whole[1];
                    return picked(x, dims, [&](extents& at) {
                        at[axis_in(dims, with)] /= with.whole[1];
                        return true;
                    });
                },
                {{.with = {{-1, 3}, {}}, .shapes = {{{5}}, {{2, 3}}, {{2, 0}}, {{3, 1}}, {{17, 40}}, {{40001}}}},
                 {.with = {{0, 2}, {}}, .shapes = {{{4}}, {{2, 3}}, {{3, 2, 5}}}}}),
            along(
                "roll", [](const auto& x, const attributes& with) { return roll(x, with.whole[1], axis_of(with)); }, -9,
                9,
                [](const array& x, const attributes& with) {
                    return picked(x, x.dims, [&](extents& at) {
                        whole& i = at[axis_in(x.dims, with)];
                        i = modulo(i - with.whole[1], x.dims[axis_in(x.dims, with)]);
                        return true;
                    });
                },
                {{.with = {{0, 2}, {}}, .shapes = rolled}, {.with = {{-1, -3}, {}}, .shapes = rolled}})};
}

// Triangles and diagonals; whole[0] is the number of the diagonal.
template <class T, class F>
operation diagonal(const char* name, F f, std::size_t least_rank, array (*reference)(const array&, const attributes&),
                   std::vector<row> rows) {
    operation made = one_operand<T>(name, f, nullptr, nullptr, reference, std::move(rows));
    made.draw = [least_rank](choices& random, const std::vector<extents>& x, attributes& with) {
        with.whole = {random.whole(-3, 3)};
        return x[0].size() >= least_rank && x[0].size() < least_rank + 3;
    };
    made.source = [name](const std::vector<std::string>& x, const attributes& with) {
        return std::string(name) + "(" + x[0] + ", " + text_of(with.whole[0]) + ")";
    };
    return made;
}
whole right_of_diagonal(const extents& at) { return at[at.size() - 1] - at[at.size() - 2]; }

std::vector<operation> diagonals() {
    const auto row_at = [](whole k, shape_list shapes) { return row{.with = {{k}, {}}, .shapes = std::move(shapes)}; };
    const shape_list lower{{{3, 3}}, {{2, 4, 3}}, {{1, 5}}, {{2, 0}}}, upper{{{3, 3}}, {{2, 4, 3}}, {{1, 5}}};
    const shape_list parts{{{3, 3}}, {{4, 3}}, {{2, 1}}, {{3, 5}}}, lines{{{3}}, {{2, 4}}, {{1}}};
    return {
        diagonal<floating>(
            "tril",
            [](const auto& x, const attributes& with) { return with.whole[0] == 0 ? tril(x) : tril(x, with.whole[0]); },
            2,
            [](const array& x, const attributes& with) {
                return picked(x, x.dims, [&](const extents& at) { return right_of_diagonal(at) <= with.whole[0]; });
            },
            {row_at(0, lower), row_at(-1, lower)}),
        diagonal<double>(
            "triu",
            [](const auto& x, const attributes& with) { return with.whole[0] == 0 ? triu(x) : triu(x, with.whole[0]); },
            2,
            [](const array& x, const attributes& with) {
                return picked(x, x.dims, [&](const extents& at) { return right_of_diagonal(at) >= with.whole[0]; });
            },
            {row_at(1, upper)}),
        diagonal<floating>(
            "diag_part",
            [](const auto& x, const attributes& with) {
                return with.whole[0] == 0 ? diag_part(x) : diag_part(x, with.whole[0]);
            },
            2,
            [](const array& x, const attributes& with) {
                const whole k = with.whole[0], rows = x.dims[x.dims.size() - 2] + std::min<whole>(k, 0),
                            columns = x.dims.back() - std::max<whole>(k, 0);
                extents dims(x.dims.begin(), x.dims.end() - 1);
                dims.back() = std::max<whole>(std::min(rows, columns), 0);
                return picked(x, dims, [&](extents& at) {
                    at.push_back(at.back() + std::max<whole>(k, 0));
                    at[at.size() - 2] -= std::min<whole>(k, 0);
                    return true;
                });
            },
            {row_at(0, parts), row_at(-1, parts)}),
        diagonal<double>(
            "diag",
            [](const auto& x, const attributes& with) { return with.whole[0] == 0 ? diag(x) : diag(x, with.whole[0]); },
            1,
            [](const array& x, const attributes& with) {
                extents dims = x.dims;
                dims.back() += std::abs(with.whole[0]);
                dims.push_back(dims.back());
                return picked(x, dims, [&](extents& at) {
                    const bool on = right_of_diagonal(at) == with.whole[0];
                    at[at.size() - 2] = std::min(at[at.size() - 1], at[at.size() - 2]);
                    at.pop_back();
                    return on;
                });
            },
            {row_at(-1, lines), row_at(1, lines)})};
}

operation beside_a_handle() {
    operation made = one_operand<floating>(
        "constants beside a handle", not_drawn{[](const auto& x, const attributes&) {
            using X = std::decay_t<decltype(x)>;
            using T = typename std::conditional_t<std::is_same_v<X, graph_node>, tensor<double>, X>::element_type;
            const auto a = arange<T>(x, 5, 0.5, -2), b = linspace<T>(x, 1, 3, 5), c = fill<T>(x, {5}, 0.25);
            return reshape(x + zeros_like(x) - 2 * ones_like(x), {-1, 1}) * (a + b * c) +
                   take(eye<T>(x, 3, 5, 1), 2) * full_like(reshape(x, {-1, 1}), 7);
        }},
        nullptr, nullptr,
        [](const array& x, const attributes&) {
            array y({x.size(), 5});
            for (whole i = 0; i < y.size(); ++i) {
                const real k = static_cast<real>(i % 5);
                y[i] = (x[i / 5] - 2) * (0.5L - 2 * k + (1 + k * 0.5L) * 0.25L) + (i % 5 == 3 ? 7 : 0);
            }
            return y;
        },
        {{.shapes = {{{3}}, {{2, 2}}, {{0}}}, .ulps = 8, .why = "sums and products"}});
    made.graph_types = {dtype::f64}; // nodes do not say of which type the constants should be
    return made;
}

} // namespace paddings

// Elements are moved, so values are equal; adjoints add.
std::vector<operation> padding_operations() {
    using namespace paddings;
    std::vector<operation> made{with_a_number(), with_a_mode(), tiled(), beside_a_handle()};
    made[0].weight = 2;
    for (const auto& part : {along_axes(), diagonals()}) made.insert(made.end(), part.begin(), part.end());
    for (operation& each : made) exact(each);
    return made;
}

} // namespace tapegraph::testing
