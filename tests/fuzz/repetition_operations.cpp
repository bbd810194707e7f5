#include <fuzz/rows.hpp>

#include <algorithm>

/// Parts, repetitions and permutations of tensors, and several tensors as one.

namespace tapegraph::fuzz {

namespace {

using whole = std::int64_t;

// What moves elements: an element of the result is that of x at the position into which `from` turns its own, or 0 where
// it says false.
template <class From>
array picked(const array& x, const extents& dims, const From& from) {
    array y(dims);
    for (whole i = 0; i < y.size(); ++i) {
        extents at = testing::unravel(i, dims);
        if (from(at)) y[i] = x.at(at);
    }
    return y;
}

std::size_t axis_in(const attributes& with, std::size_t word = 0) { return static_cast<std::size_t>(with.whole[word]); }
int axis_of(const attributes& with, std::size_t word = 0) { return static_cast<int>(with.whole[word]); }

constexpr pad_mode modes[]{pad_mode::reflect, pad_mode::symmetric, pad_mode::edge, pad_mode::wrap};
pad_mode mode_of(const attributes& with) {
    if (with.whole[0] < 0 || with.whole[0] > 3) throw argument_error("no such mode");
    return modes[with.whole[0]];
}

// Position i, which may lie outside, of an axis of n elements.
whole folded(whole i, whole n, pad_mode mode) {
    const auto modulo = [](whole a, whole b) { return (a % b + b) % b; };
    if (mode == pad_mode::wrap) return modulo(i, n);
    if (mode == pad_mode::edge || n == 1) return std::clamp<whole>(i, 0, n - 1);
    const whole period = mode == pad_mode::reflect ? 2 * n - 2 : 2 * n, at = modulo(i, period);
    return at < n ? at : mode == pad_mode::reflect ? period - at : period - 1 - at;
}

operation padded_row() {
    return one_operand<double>(
        "pad_mode",
        [](const auto& x, const attributes& with) {
            std::vector<padding_amount> amounts;
            for (std::size_t i = 1; i + 1 < with.whole.size(); i += 2)
                amounts.push_back({with.whole[i], with.whole[i + 1]});
            return with_list(amounts, [&](std::initializer_list<padding_amount> list) {
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
            std::string text;
            for (std::size_t i = 1; i + 1 < with.whole.size(); i += 2)
                text += (text.empty() ? "" : ", ") + braces({with.whole[i], with.whole[i + 1]});
            mode_of(with);
            return "pad($, {" + text + "}, {.mode = tg::pad_mode::" + names[with.whole[0]] + "})";
        },
        [](const array& x, const attributes& with) {
            extents dims = x.dims;
            for (std::size_t i = 0; i < dims.size(); ++i) dims[i] += with.whole[2 * i + 1] + with.whole[2 * i + 2];
            return picked(x, dims, [&](extents& at) {
                for (std::size_t i = 0; i < at.size(); ++i)
                    at[i] = folded(at[i] - with.whole[2 * i + 1], x.dims[i], mode_of(with));
                return true;
            });
        });
}

operation tile_row() {
    return one_operand<double>(
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
        });
}

// whole: the axis and a number.
template <class F>
operation along(const char* name, F f, whole low, whole high, array (*reference)(const array&, const attributes&)) {
    operation row = one_operand<double>(name, f, draw_axis, nullptr, reference);
    row.draw = [low, high](choices& random, const std::vector<extents>& x, attributes& with) {
        if (!draw_axis(random, x[0], with)) return false;
        with.whole.push_back(random.whole(low, high));
        return true;
    };
    row.source = [name](const std::vector<std::string>& x, const attributes& with) {
        return std::string(name) + "(" + x[0] + ", " + text_of(with.whole[1]) + ", " + text_of(with.whole[0]) + ")";
    };
    return row;
}

axes axes_of_mask(const attributes& with) {
    axes result;
    result.all = false;
    for (int axis = 0; axis < max_rank; ++axis)
        if ((with.whole[0] >> axis & 1) != 0) result.index[result.count++] = static_cast<std::int8_t>(axis);
    return result;
}

operation reverse_row() {
    return one_operand<double>(
        "reverse", [](const auto& x, const attributes& with) { return reverse(x, axes_of_mask(with)); },
        [](choices& random, const extents& x, attributes& with) {
            if (x.empty()) return false;
            with.whole = {random.whole(1, (whole{1} << rank_of(x)) - 1)};
            return true;
        },
        [](const attributes& with) {
            std::vector<whole> list;
            for (int axis = 0; axis < max_rank; ++axis)
                if ((with.whole[0] >> axis & 1) != 0) list.push_back(axis);
            return "reverse($, tg::axes" + braces(list) + ")";
        },
        [](const array& x, const attributes& with) {
            return picked(x, x.dims, [&](extents& at) {
                for (std::size_t i = 0; i < at.size(); ++i)
                    if ((with.whole[0] >> i & 1) != 0) at[i] = x.dims[i] - 1 - at[i];
                return true;
            });
        });
}

// Triangles and diagonals; whole[0] is the number of the diagonal.
template <class F>
operation diagonal(const char* name, F f, std::size_t least_rank, array (*reference)(const array&, const attributes&)) {
    operation row = one_operand<double>(name, f, draw_axis, nullptr, reference);
    row.draw = [least_rank](choices& random, const std::vector<extents>& x, attributes& with) {
        with.whole = {random.whole(-3, 3)};
        return x[0].size() >= least_rank && x[0].size() < least_rank + 3;
    };
    row.source = [name](const std::vector<std::string>& x, const attributes& with) {
        return std::string(name) + "(" + x[0] + ", " + text_of(with.whole[0]) + ")";
    };
    return row;
}

// Three operands that differ in one axis (concat) or in none (stack); whole[0] is the axis.
template <class F>
operation joined(const char* name, bool stacked, F f) {
    operation row = make_operation<double, double, double>(name, f);
    row.weight = 2;
    row.partner = [stacked](choices& random, std::size_t k, const std::vector<extents>& before, extents& dims) {
        dims = before[0];
        if (stacked) return dims.size() < 5;
        if (dims.empty()) return false;
        std::size_t axis = dims.size(); // that in which the first two differ, if they do
        for (std::size_t i = 0; k == 2 && i < dims.size(); ++i)
            if (before[1][i] != dims[i]) axis = i;
        if (axis == dims.size()) axis = static_cast<std::size_t>(random.whole(0, rank_of(dims) - 1));
        if (random.chance(0.6)) dims[axis] = random.whole(0, 4);
        return true;
    };
    row.draw = [stacked](choices& random, const std::vector<extents>& x, attributes& with) {
        if (stacked) {
            with.whole = {random.whole(-rank_of(x[0]) - 1, rank_of(x[0]))};
            return x[0] == x[1] && x[0] == x[2];
        }
        if (x[0].empty() || x[0].size() != x[1].size() || x[0].size() != x[2].size()) return false;
        extents differing;
        for (std::size_t i = 0; i < x[0].size(); ++i)
            if (x[0][i] != x[1][i] || x[0][i] != x[2][i]) differing.push_back(static_cast<whole>(i));
        if (differing.size() > 1) return false;
        with.whole = differing.empty() ? extents{random.whole(0, rank_of(x[0]) - 1)} : differing;
        return true;
    };
    row.source = [stacked](const std::vector<std::string>& x, const attributes& with) {
        // Formulas have types of their own; a braced list wants one.
        std::string text = stacked ? "tg::stack({" : "tg::concat({";
        for (std::size_t k = 0; k < 3; ++k) text += (k == 0 ? "tg::eval(" : ", tg::eval(") + x[k] + ")";
        return text + "}, " + text_of(with.whole[0]) + ")";
    };
    row.reference = [stacked](const std::vector<array>& x, const attributes& with) {
        const whole rank = rank_of(x[0].dims) + (stacked ? 1 : 0);
        const auto axis = static_cast<std::size_t>(with.whole[0] < 0 ? with.whole[0] + rank : with.whole[0]);
        std::vector<array> parts = x;
        for (array& part : parts)
            if (stacked) part.dims.insert(part.dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
        extents dims = parts[0].dims;
        dims[axis] += parts[1].dims[axis] + parts[2].dims[axis];
        array y(dims);
        whole begin = 0;
        for (const array& part : parts) {
            for (whole i = 0; i < part.size(); ++i) {
                extents at = testing::unravel(i, part.dims);
                at[axis] += begin;
                y.at(at) = part[i];
            }
            begin += part.dims[axis];
        }
        return y;
    };
    return row;
}

bool draw_two_parts(choices& random, const extents& x, attributes& with) {
    return draw_axis(random, x, with) && x[axis_in(with)] % 2 == 0;
}

array halves_swapped(const array& x, const attributes& with) {
    const whole n = x.dims[axis_in(with)];
    return picked(x, x.dims, [&](extents& at) {
        at[axis_in(with)] = (at[axis_in(with)] + n / 2) % n;
        return true;
    });
}

std::vector<operation> part_rows() {
    std::vector<operation> r;
    r.push_back(one_operand<double>(
        "split_halves",
        [](const auto& x, const attributes& with) {
            const auto parts = split<2>(x, axis_of(with));
            return concat({parts[1], parts[0]}, axis_of(with));
        },
        draw_two_parts,
        [](const attributes& with) {
            const std::string axis = text_of(with.whole[0]);
            return "[](const auto& parts) { return tg::concat({parts[1], parts[0]}, " + axis + "); }(tg::split<2>($, " +
                   axis + "))";
        },
        halves_swapped));
    // whole: axis, the first part's extent, the rest, which part.
    r.push_back(one_operand<double>(
        "split_sizes",
        [](const auto& x, const attributes& with) {
            const std::int64_t sizes[]{with.whole[1], with.whole[2]};
            const auto parts = split(x, sizes, axis_of(with));
            return with.whole[3] != 0 ? parts[1] : parts[0];
        },
        [](choices& random, const extents& x, attributes& with) {
            if (!draw_axis(random, x, with)) return false;
            const whole n = x[axis_in(with)], first = random.whole(0, n);
            with.whole.insert(with.whole.end(), {first, n - first, random.chance(0.5)});
            return true;
        },
        [](const attributes& with) {
            return "tg::split($, {" + text_of(with.whole[1]) + ", " + text_of(with.whole[2]) + "}, " +
                   text_of(with.whole[0]) + ")[" + text_of(with.whole[3] != 0) + "]";
        },
        [](const array& x, const attributes& with) {
            extents dims = x.dims;
            dims[axis_in(with)] = with.whole[with.whole[3] != 0 ? 2 : 1];
            return picked(x, dims, [&](extents& at) {
                at[axis_in(with)] += with.whole[3] != 0 ? with.whole[1] : 0;
                return true;
            });
        }));
    r.push_back(one_operand<double>(
        "unstack",
        [](const auto& x, const attributes& with) {
            const auto parts = unstack<2>(x, axis_of(with));
            return eval(parts[0] - parts[1] * 0.5);
        },
        [](choices& random, const extents& x, attributes& with) {
            for (int attempt = 0; attempt < 6; ++attempt)
                if (draw_axis(random, x, with) && x[axis_in(with)] == 2) return true;
            return false;
        },
        [](const attributes& with) {
            return "[](const auto& parts) { return tg::eval(parts[0] - parts[1] * 0.5); }(tg::unstack<2>($, " +
                   text_of(with.whole[0]) + "))";
        }));
    r.push_back(along(
        "take", [](const auto& x, const attributes& with) { return take(x, with.whole[1], axis_of(with)); }, -3, 3,
        [](const array& x, const attributes& with) {
            extents dims = x.dims;
            dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis_in(with)));
            const whole n = x.dims[axis_in(with)], i = with.whole[1] < 0 ? with.whole[1] + n : with.whole[1];
            return picked(x, dims, [&](extents& at) {
                at.insert(at.begin() + static_cast<std::ptrdiff_t>(axis_in(with)), i);
                return true;
            });
        }));
    r.push_back(along(
        "repeat", [](const auto& x, const attributes& with) { return repeat(x, with.whole[1], axis_of(with)); }, 0, 3,
        [](const array& x, const attributes& with) {
            extents dims = x.dims;
            dims[axis_in(with)] *= with.whole[1];
            return picked(x, dims, [&](extents& at) {
                at[axis_in(with)] /= with.whole[1];
                return true;
            });
        }));
    r.push_back(along(
        "roll", [](const auto& x, const attributes& with) { return roll(x, with.whole[1], axis_of(with)); }, -9, 9,
        [](const array& x, const attributes& with) {
            return picked(x, x.dims, [&](extents& at) {
                const whole n = x.dims[axis_in(with)], i = at[axis_in(with)] - with.whole[1];
                at[axis_in(with)] = (i % n + n) % n;
                return true;
            });
        }));
    return r;
}

} // namespace

std::vector<operation> repetition_operations() {
    std::vector<operation> r = part_rows();
    r.insert(r.end(), {padded_row(), tile_row(), reverse_row()});
    r.push_back(joined("concat_three", false,
                       mapped_together{[](const auto& x, const auto& y, const auto& z, const attributes& with) {
                           return concat({x, y, z}, axis_of(with));
                       }}));
    r.push_back(
        joined("stack", true, mapped_together{[](const auto& x, const auto& y, const auto& z, const attributes& with) {
                   return stack({x, y, z}, axis_of(with));
               }}));
    r.push_back(diagonal(
        "tril", [](const auto& x, const attributes& with) { return tril(x, with.whole[0]); }, 2,
        [](const array& x, const attributes& with) {
            return picked(x, x.dims,
                          [&](const extents& at) { return at[at.size() - 1] - at[at.size() - 2] <= with.whole[0]; });
        }));
    r.push_back(diagonal(
        "triu", [](const auto& x, const attributes& with) { return triu(x, with.whole[0]); }, 2,
        [](const array& x, const attributes& with) {
            return picked(x, x.dims,
                          [&](const extents& at) { return at[at.size() - 1] - at[at.size() - 2] >= with.whole[0]; });
        }));
    r.push_back(diagonal(
        "diag_part", [](const auto& x, const attributes& with) { return diag_part(x, with.whole[0]); }, 2,
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
        }));
    r.push_back(diagonal(
        "diag", [](const auto& x, const attributes& with) { return diag(x, with.whole[0]); }, 1,
        [](const array& x, const attributes& with) {
            extents dims = x.dims;
            dims.back() += std::abs(with.whole[0]);
            dims.push_back(dims.back());
            return picked(x, dims, [&](extents& at) {
                const bool on = at[at.size() - 1] - at[at.size() - 2] == with.whole[0];
                at[at.size() - 2] = std::min(at[at.size() - 1], at[at.size() - 2]);
                at.pop_back();
                return on;
            });
        }));
    return r;
}

} // namespace tapegraph::fuzz
