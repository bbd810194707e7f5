#include <operations/builders.hpp>

/// Parts of tensors, and several tensors as one.

namespace tapegraph::testing {

namespace slicing {

// What a function says of every place of a result of shape `dims`.
template <class F>
array built(const extents& dims, const F& f) {
    array y(dims);
    for (std::int64_t i = 0; i < y.size(); ++i) y[i] = f(unravel(i, dims));
    return y;
}

// whole: begin, end and step of the first axes.
operation sliced() {
    return one_operand<floating>(
        "slice",
        [](const auto& x, const attributes& with) {
            std::vector<range> ranges;
            for (std::size_t i = 0; i + 2 < with.whole.size(); i += 3)
                ranges.push_back({with.whole[i], with.whole[i + 1], with.whole[i + 2]});
            return with_list(ranges, [&](std::initializer_list<range> list) { return slice(x, list); });
        },
        [](choices& random, const extents& x, attributes& with) {
            for (const std::int64_t extent : x) {
                const std::int64_t begin = random.whole(-extent, extent), end = random.whole(-extent, extent + 1);
                const std::int64_t step = random.pick(std::vector<std::int64_t>{1, 1, 2, 3, -1, -2});
                if (random.chance(0.5))
                    with.whole.insert(with.whole.end(), {all.begin, all.end, all.step});
                else
                    with.whole.insert(with.whole.end(), {begin, end, step});
            }
            return !x.empty();
        },
        [](const attributes& with) {
            std::string text;
            for (std::size_t i = 0; i + 2 < with.whole.size(); i += 3) {
                const bool whole = with.whole[i] == all.begin && with.whole[i + 1] == all.end && with.whole[i + 2] == 1;
                text += std::string(text.empty() ? "" : ", ") +
                        (whole ? "tg::all" : braces({with.whole[i], with.whole[i + 1], with.whole[i + 2]}));
            }
            return "slice($, {" + text + "})";
        },
        [](const array& x, const attributes& with) {
            extents dims = x.dims, begin(dims.size()), step(dims.size(), 1);
            for (std::size_t i = 0; 3 * i + 2 < with.whole.size(); ++i) {
                const std::int64_t n = dims[i];
                step[i] = with.whole[3 * i + 2];
                const std::int64_t least = step[i] < 0 ? -1 : 0; // what ends are brought into
                const auto place = [&](std::int64_t at) { return std::clamp(at < 0 ? at + n : at, least, n + least); };
                begin[i] = place(with.whole[3 * i]);
                const std::int64_t far = place(with.whole[3 * i + 1]) - begin[i];
                dims[i] = std::max<std::int64_t>((far + step[i] - (step[i] > 0 ? 1 : -1)) / step[i], 0);
            }
            return picked(x, dims, [&](extents& at) {
                for (std::size_t i = 0; i < at.size(); ++i) at[i] = begin[i] + step[i] * at[i];
                return true;
            });
        },
        {{.with = {{1, 4, 1, 0, all.end, 2}, {}}, .shapes = {{{5, 6}}, {{2, 1}}, {{3, 5, 2}}, {{70, 65}}}},
         {.with = {{-1, -100, -2}, {}}, .shapes = {{{5}}, {{6}}, {{1, 3}}, {{4, 3}}}},
         {.with = {{3, 2, 1}, {}}, .shapes = {{{5}}}}});
}

// Joins the operands along an axis.
array concatenated(const std::vector<array>& x, std::size_t axis) {
    extents dims = x[0].dims;
    for (std::size_t k = 1; k < x.size(); ++k) dims[axis] += x[k].dims[axis];
    return built(dims, [&](extents at) {
        std::size_t k = 0;
        while (at[axis] >= x[k].dims[axis]) at[axis] -= x[k++].dims[axis];
        return x[k].at(at);
    });
}
array joined_reference(const std::vector<array>& x, const attributes& with) {
    return concatenated(x, axis_in(x[0].dims, with));
}

// Operands that differ in one axis; whole[0] is the axis.
bool joined_partner(choices& random, std::size_t k, const std::vector<extents>& before, extents& dims) {
    dims = before[0];
    if (dims.empty()) return false;
    std::size_t axis = dims.size(); // that in which the first two differ, if they do
    for (std::size_t i = 0; k == 2 && i < dims.size(); ++i)
        if (before[1][i] != dims[i]) axis = i;
    if (axis == dims.size()) axis = static_cast<std::size_t>(random.whole(0, rank_of(dims) - 1));
    if (random.chance(0.8)) dims[axis] = random.whole(0, 4);
    return true;
}
bool draw_joined(choices& random, const std::vector<extents>& x, attributes& with) {
    extents differing;
    for (const extents& each : x)
        if (each.empty() || each.size() != x[0].size()) return false;
    for (std::int64_t i = 0; i < rank_of(x[0]); ++i)
        if (std::any_of(x.begin(), x.end(),
                        [&](const extents& each) { return each[std::size_t(i)] != x[0][std::size_t(i)]; }))
            differing.push_back(i);
    if (differing.size() > 1) return false;
    with.whole = differing.empty() ? extents{random.whole(0, rank_of(x[0]) - 1)} : differing;
    return true;
}

operation of_two() {
    operation made = make_operation<floating, floating>(
        "concat", [](const auto& x, const auto& y, const attributes& with) { return concat(x, y, axis_of(with)); },
        {{.with = {{1}, {}},
          .shapes = {{{2, 3}, {2, 1}}, {{2, 0}, {2, 3}}, {{2, 3, 2}, {2, 2, 2}}, {{33, 20}, {33, 31}}}}});
    made.partner = joined_partner;
    made.draw = draw_joined;
    made.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "concat(" + x[0] + ", " + x[1] + ", " + text_of(with.whole[0]) + ")";
    };
    made.reference = joined_reference;
    return made;
}

// Formulas have types of their own; a braced list wants one.
auto source_of_three(const std::string& name) {
    return [name](const std::vector<std::string>& x, const attributes& with) {
        return "tg::" + name + "({tg::eval(" + x[0] + "), tg::eval(" + x[1] + "), tg::eval(" + x[2] + ")}, " +
               text_of(with.whole[0]) + ")";
    };
}

operation of_three() {
    operation made = make_operation<double, double, double>(
        "concat_three", mapped_together{[](const auto& x, const auto& y, const auto& z, const attributes& with) {
            return concat({x, y, z}, axis_of(with));
        }});
    made.weight = 2;
    made.partner = joined_partner;
    made.draw = draw_joined;
    made.source = source_of_three("concat");
    made.reference = joined_reference;
    return made;
}

operation of_seven() {
    operation made = make_operation<floating, floating, floating>(
        "concat of seven", not_drawn{[](const auto& x, const auto& y, const auto& z, const attributes&) {
            return concat({x, y, z, x, y, z, x}, -2);
        }},
        {{.shapes = {{{2, 3}, {1, 3}, {3, 3}}, {{2, 2, 1}, {2, 0, 1}, {2, 1, 1}}, {{20, 37}, {3, 37}, {11, 37}}}}});
    made.reference = [](const std::vector<array>& x, const attributes&) {
        return concatenated({x[0], x[1], x[2], x[0], x[1], x[2], x[0]}, x[0].dims.size() - 2);
    };
    return made;
}

operation stacked() {
    operation made = make_operation<double, double, double>(
        "stack", mapped_together{[](const auto& x, const auto& y, const auto& z, const attributes& with) {
            return stack({x, y, z}, axis_of(with));
        }},
        {{.with = {{1}, {}}, .shapes = {{{3}, {3}, {3}}, {{2, 5}, {2, 5}, {2, 5}}, {{0, 2}, {0, 2}, {0, 2}}}}});
    made.weight = 2;
    made.partner = [](choices&, std::size_t, const std::vector<extents>& before, extents& dims) {
        dims = before[0];
        return dims.size() < 5;
    };
    made.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        with.whole = {random.whole(-rank_of(x[0]) - 1, rank_of(x[0]))};
        return x[0] == x[1] && x[0] == x[2];
    };
    made.source = source_of_three("stack");
    made.reference = [](std::vector<array> x, const attributes& with) {
        const std::int64_t axis = with.whole[0] + (with.whole[0] < 0 ? rank_of(x[0].dims) + 1 : 0);
        for (array& part : x) part.dims.insert(part.dims.begin() + axis, 1);
        return concatenated(x, static_cast<std::size_t>(axis));
    };
    return made;
}

operation halved() {
    return one_operand<double>(
        "split_halves",
        [](const auto& x, const attributes& with) {
            const auto parts = split<2>(x, axis_of(with));
            return concat({parts[1], parts[0]}, axis_of(with));
        },
        [](choices& random, const extents& x, attributes& with) {
            return draw_axis(random, x, with) && x[axis_in(x, with)] % 2 == 0;
        },
        [](const attributes& with) {
            const std::string axis = text_of(with.whole[0]);
            return "[](const auto& parts) { return tg::concat({parts[1], parts[0]}, " + axis + "); }(tg::split<2>($, " +
                   axis + "))";
        },
        [](const array& x, const attributes& with) {
            const std::size_t axis = axis_in(x.dims, with);
            return picked(x, x.dims, [&](extents& at) {
                at[axis] = (at[axis] + x.dims[axis] / 2) % x.dims[axis];
                return true;
            });
        });
}

operation in_thirds() {
    return one_operand<floating>("split into three", not_drawn{[](const auto& x, const attributes&) {
                                     const auto parts = split<3>(x, 1);
                                     return concat({parts[2], parts[0], parts[1]}, 0);
                                 }},
                                 nullptr, nullptr,
                                 [](const array& x, const attributes&) {
                                     const std::int64_t n = x.dims[0], third = x.dims[1] / 3;
                                     extents dims = x.dims;
                                     dims[0] *= 3, dims[1] = third;
                                     return built(dims, [&](extents at) {
                                         at[1] += (at[0] / n + 2) % 3 * third;
                                         at[0] %= n;
                                         return x.at(at);
                                     });
                                 },
                                 {{.shapes = {{{2, 6}}, {{1, 3, 2}}, {{3, 0}}, {{13, 51}}}}});
}

// whole: axis, the first part's extent, the rest, which part.
operation split_by_sizes() {
    return one_operand<double>(
        "split_sizes",
        [](const auto& x, const attributes& with) {
            const std::int64_t sizes[]{with.whole[1], with.whole[2]};
            const auto parts = split(x, sizes, axis_of(with));
            return with.whole[3] != 0 ? parts[1] : parts[0];
        },
        [](choices& random, const extents& x, attributes& with) {
            if (!draw_axis(random, x, with)) return false;
            const std::int64_t n = x[axis_in(x, with)], first = random.whole(0, n);
            with.whole.insert(with.whole.end(), {first, n - first, random.chance(0.5)});
            return true;
        },
        [](const attributes& with) {
            return "tg::split($, {" + text_of(with.whole[1]) + ", " + text_of(with.whole[2]) + "}, " +
                   text_of(with.whole[0]) + ")[" + text_of(with.whole[3] != 0) + "]";
        },
        [](const array& x, const attributes& with) {
            const std::size_t axis = axis_in(x.dims, with);
            extents dims = x.dims;
            dims[axis] = with.whole[with.whole[3] != 0 ? 2 : 1];
            return picked(x, dims, [&](extents& at) {
                at[axis] += with.whole[3] != 0 ? with.whole[1] : 0;
                return true;
            });
        });
}

operation split_and_unstacked() {
    return one_operand<double>("split by sizes, unstack", not_drawn{[](const auto& x, const attributes&) {
                                   const auto parts = split(x, {1, 0, 4}, -1);
                                   const auto [a, b, c, d] = unstack<4>(parts[2], -1);
                                   return stack({b, a, squeeze(parts[0], -1), d, c}, 0);
                               }},
                               nullptr, nullptr,
                               [](const array& x, const attributes&) {
                                   extents dims{5};
                                   dims.insert(dims.end(), x.dims.begin(), x.dims.end() - 1);
                                   const std::int64_t from[]{2, 1, 0, 4, 3};
                                   return built(dims, [&](extents at) {
                                       at.push_back(from[at[0]]);
                                       at.erase(at.begin());
                                       return x.at(at);
                                   });
                               },
                               {{.shapes = {{{5}}, {{3, 5}}, {{0, 5}}}}});
}

operation unstacked() {
    return one_operand<double>(
        "unstack",
        [](const auto& x, const attributes& with) {
            const auto parts = unstack<2>(x, axis_of(with));
            return eval(parts[0] - parts[1] * 0.5);
        },
        [](choices& random, const extents& x, attributes& with) {
            for (int attempt = 0; attempt < 6; ++attempt)
                if (draw_axis(random, x, with) && x[axis_in(x, with)] == 2) return true;
            return false;
        },
        [](const attributes& with) {
            return "[](const auto& parts) { return tg::eval(parts[0] - parts[1] * 0.5); }(tg::unstack<2>($, " +
                   text_of(with.whole[0]) + "))";
        },
        [](const array& x, const attributes& with) {
            const auto axis = static_cast<std::ptrdiff_t>(axis_in(x.dims, with));
            extents dims = x.dims;
            dims.erase(dims.begin() + axis);
            return built(dims, [&](extents at) {
                at.insert(at.begin() + axis, 0);
                const real first = x.at(at);
                at[static_cast<std::size_t>(axis)] = 1;
                return first - x.at(at) / 2;
            });
        });
}

// whole: the axis, the place.
operation taken() {
    return one_operand<double>(
        "take",
        [](const auto& x, const attributes& with) {
            return axis_of(with) == 0 ? take(x, with.whole[1]) : take(x, with.whole[1], axis_of(with));
        },
        [](choices& random, const extents& x, attributes& with) {
            if (!draw_axis(random, x, with)) return false;
            with.whole.push_back(random.whole(-3, 3));
            return true;
        },
        [](const attributes& with) {
            return "take($, " + text_of(with.whole[1]) + ", " + text_of(with.whole[0]) + ")";
        },
        [](const array& x, const attributes& with) {
            const auto axis = static_cast<std::ptrdiff_t>(axis_in(x.dims, with));
            extents dims = x.dims;
            dims.erase(dims.begin() + axis);
            const std::int64_t place = with.whole[1] < 0 ? with.whole[1] + x.dims[std::size_t(axis)] : with.whole[1];
            return picked(x, dims, [&](extents& at) {
                at.insert(at.begin() + axis, place);
                return true;
            });
        },
        {{.with = {{0, 1}, {}}, .shapes = {{{2, 3}}, {{4, 1}}}},
         {.with = {{0, -1}, {}}, .shapes = {{{2, 3}}, {{4, 1}}}},
         {.with = {{0, -2}, {}}, .shapes = {{{2, 3}}, {{4, 1}}}},
         {.with = {{-1, 0}, {}}, .shapes = {{{2, 3}}, {{4, 1}}}}});
}

// whole: the axes; none: all.
operation reversed() {
    return one_operand<floating>(
        "reverse", [](const auto& x, const attributes& with) { return reverse(x, axes_of_words(with.whole)); },
        [](choices& random, const extents& x, attributes& with) {
            draw_some_axes(random, rank_of(x), with);
            return !x.empty();
        },
        [](const attributes& with) { return "reverse($, tg::axes" + braces(with.whole) + ")"; },
        [](const array& x, const attributes& with) {
            std::vector<bool> turned(x.dims.size(), with.whole.empty());
            for (std::size_t k = 0; k < with.whole.size(); ++k) turned[axis_in(x.dims, with, k)] = true;
            return picked(x, x.dims, [&](extents& at) {
                for (std::size_t i = 0; i < at.size(); ++i)
                    if (turned[i]) at[i] = x.dims[i] - 1 - at[i];
                return true;
            });
        },
        {{.with = {{0, -1}, {}}, .shapes = {{{2, 7}}, {{3, 2, 37}}, {{0, 3}}, {{41, 19}}}},
         {.shapes = {{{}}, {{9}}, {{2, 3, 5}}}}});
}

} // namespace slicing

// Elements are moved, so values are equal.
std::vector<operation> slicing_operations() {
    using namespace slicing;
    std::vector<operation> made{sliced(), of_two(),    of_three(),       of_seven(),  stacked(),
                                halved(), in_thirds(), split_by_sizes(), unstacked(), split_and_unstacked(),
                                taken(),  reversed()};
    for (operation& each : made) exact(each);
    return made;
}

} // namespace tapegraph::testing
