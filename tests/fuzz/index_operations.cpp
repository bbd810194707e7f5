#include <fuzz/rows.hpp>

#include <algorithm>

/// Choices by index, and order.

namespace tapegraph::fuzz {

namespace {
std::string top_k_text(const attributes& with) {
    return "top_k($, " + text_of(with.whole[1]) + ", " + text_of(with.whole[0]) +
           ", {.largest = " + (with.whole[2] != 0 ? "true" : "false") + "})";
}
} // namespace

std::vector<operation> index_operations() {
    operation gathered = make_operation<double, std::int32_t>(
        "gather", [](const auto& x, const auto& i, const attributes&) { return gather(x, i); });
    gathered.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        for (std::int64_t rank = random.whole(0, 2); rank > 0; --rank) dims.push_back(random.whole(0, 4));
        return !before[0].empty() && before[0][0] > 0 && before[0].size() + dims.size() <= 6;
    };
    gathered.index_limit = [](const std::vector<extents>& x, const attributes&) { return x[0].empty() ? 0 : x[0][0]; };
    gathered.source = [](const std::vector<std::string>& x, const attributes&) {
        return "gather(" + x[0] + ", " + x[1] + ")";
    };
    gathered.reference = [](const std::vector<array>& x, const attributes&) {
        extents dims = x[1].dims;
        dims.insert(dims.end(), x[0].dims.begin() + 1, x[0].dims.end());
        const std::int64_t width = testing::count_of(extents(x[0].dims.begin() + 1, x[0].dims.end()));
        array y(dims);
        for (std::int64_t i = 0; i < y.size(); ++i)
            y[i] = x[0][static_cast<std::int64_t>(x[1][i / width]) * width + i % width];
        return y;
    };

    operation scattered =
        make_operation<double, std::int32_t>("scatter_add", [](const auto& x, const auto& i, const attributes& with) {
            return scatter_add(x, i, shape_of_words(with.whole));
        });
    scattered.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        dims.assign(before[0].begin(),
                    before[0].begin() + random.whole(0, std::min<std::int64_t>(2, rank_of(before[0]))));
        return true;
    };
    scattered.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (x[1].size() > x[0].size() || !std::equal(x[1].begin(), x[1].end(), x[0].begin())) return false;
        with.whole = {random.whole(1, 4)};
        with.whole.insert(with.whole.end(), x[0].begin() + rank_of(x[1]), x[0].end());
        return true;
    };
    scattered.index_limit = [](const std::vector<extents>&, const attributes& with) { return with.whole[0]; };
    scattered.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "scatter_add(" + x[0] + ", " + x[1] + ", " + braces(with.whole) + ")";
    };
    scattered.reference = [](const std::vector<array>& x, const attributes& with) {
        array y(with.whole);
        const std::int64_t width = testing::count_of(extents(with.whole.begin() + 1, with.whole.end()));
        for (std::int64_t i = 0; i < x[0].size(); ++i)
            y[static_cast<std::int64_t>(x[1][i / width]) * width + i % width] += x[0][i];
        return y;
    };

    operation taken = make_operation<double, std::int32_t>(
        "take_along", [](const auto& x, const auto& i, const attributes&) { return take_along(x, i); });
    taken.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        dims = before[0];
        if (dims.empty() || dims.back() == 0) return false;
        dims.back() = random.whole(0, 4);
        return true;
    };
    taken.index_limit = [](const std::vector<extents>& x, const attributes&) { return x[0].empty() ? 0 : x[0].back(); };
    taken.source = [](const std::vector<std::string>& x, const attributes&) {
        return "take_along(" + x[0] + ", " + x[1] + ")";
    };
    taken.reference = [](const std::vector<array>& x, const attributes&) {
        const std::int64_t from = x[0].dims.back(), to = x[1].dims.back();
        array y(x[1].dims);
        for (std::int64_t i = 0; i < y.size(); ++i) y[i] = x[0][i / to * from + static_cast<std::int64_t>(x[1][i])];
        return y;
    };

    // gather and scatter_add with an axis and batch axes: whole[0], whole[1]; the target's extent behind them.
    operation chosen =
        make_operation<double, std::int32_t>("gather_axis", [](const auto& x, const auto& i, const attributes& with) {
            return gather(x, i, static_cast<int>(with.whole[0]), static_cast<int>(with.whole[1]));
        });
    chosen.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        const auto batch = static_cast<std::ptrdiff_t>(random.whole(0, std::min<std::int64_t>(2, rank_of(before[0]))));
        dims.assign(before[0].begin(), before[0].begin() + batch);
        for (std::int64_t rank = random.whole(0, 2); rank > 0; --rank) dims.push_back(random.whole(0, 4));
        return before[0].size() + dims.size() <= 6;
    };
    chosen.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (!draw_axis(random, x[0], with)) return false;
        std::int64_t batch = 0;
        while (batch < with.whole[0] && batch < rank_of(x[1]) &&
               x[0][static_cast<std::size_t>(batch)] == x[1][static_cast<std::size_t>(batch)])
            ++batch;
        with.whole.push_back(random.whole(0, batch));
        return true;
    };
    chosen.index_limit = [](const std::vector<extents>& x, const attributes& with) {
        return with.whole[0] < rank_of(x[0]) ? x[0][static_cast<std::size_t>(with.whole[0])] : 0;
    };
    chosen.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "gather(" + x[0] + ", " + x[1] + ", " + text_of(with.whole[0]) + ", " + text_of(with.whole[1]) + ")";
    };
    chosen.reference = [](const std::vector<array>& x, const attributes& with) {
        const auto axis = static_cast<std::ptrdiff_t>(with.whole[0]),
                   batch = static_cast<std::ptrdiff_t>(with.whole[1]);
        extents dims(x[0].dims.begin(), x[0].dims.begin() + axis);
        dims.insert(dims.end(), x[1].dims.begin() + batch, x[1].dims.end());
        dims.insert(dims.end(), x[0].dims.begin() + axis + 1, x[0].dims.end());
        array y(dims);
        const std::ptrdiff_t picks = rank_of(x[1].dims) - batch;
        for (std::int64_t i = 0; i < y.size(); ++i) {
            const extents at = testing::unravel(i, dims);
            extents pick(at.begin(), at.begin() + batch), from(at.begin(), at.begin() + axis);
            pick.insert(pick.end(), at.begin() + axis, at.begin() + axis + picks);
            from.push_back(static_cast<std::int64_t>(x[1].at(pick)));
            from.insert(from.end(), at.begin() + axis + picks, at.end());
            y[i] = x[0].at(from);
        }
        return y;
    };

    // whole: the axis, batch axes, the target's extents.
    operation spread =
        make_operation<double, std::int32_t>("scatter_axis", [](const auto& x, const auto& i, const attributes& with) {
            return scatter_add(x, i, shape_of_words({with.whole.begin() + 2, with.whole.end()}),
                               static_cast<int>(with.whole[0]), static_cast<int>(with.whole[1]));
        });
    spread.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        if (before[0].empty()) return false;
        const auto axis = random.whole(0, rank_of(before[0]) - 1), batch = random.whole(0, axis);
        dims.assign(before[0].begin(), before[0].begin() + batch);
        dims.push_back(before[0][static_cast<std::size_t>(axis)]);
        return true;
    };
    spread.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (x[0].empty() || x[1].empty()) return false;
        const std::int64_t batch = rank_of(x[1]) - 1;
        for (std::int64_t axis = batch; axis < rank_of(x[0]); ++axis)
            if (x[0][static_cast<std::size_t>(axis)] == x[1].back() &&
                std::equal(x[1].begin(), x[1].end() - 1, x[0].begin())) {
                with.whole = {axis, batch};
                with.whole.insert(with.whole.end(), x[0].begin(), x[0].end());
                with.whole[static_cast<std::size_t>(axis) + 2] = random.whole(1, 4);
                return true;
            }
        return false;
    };
    spread.index_limit = [](const std::vector<extents>&, const attributes& with) {
        const auto word = static_cast<std::size_t>(with.whole[0]) + 2;
        return word < with.whole.size() ? with.whole[word] : 0;
    };
    spread.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "scatter_add(" + x[0] + ", " + x[1] + ", " + braces({with.whole.begin() + 2, with.whole.end()}) + ", " +
               text_of(with.whole[0]) + ", " + text_of(with.whole[1]) + ")";
    };
    spread.reference = [](const std::vector<array>& x, const attributes& with) {
        const auto axis = static_cast<std::size_t>(with.whole[0]), batch = static_cast<std::size_t>(with.whole[1]);
        array y(extents(with.whole.begin() + 2, with.whole.end()));
        for (std::int64_t i = 0; i < x[0].size(); ++i) {
            extents at = testing::unravel(i, x[0].dims);
            extents pick(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(batch));
            pick.push_back(at[axis]);
            at[axis] = static_cast<std::int64_t>(x[1].at(pick));
            y.at(at) += x[0][i];
        }
        return y;
    };

    // Tuples of one or two indices; all below the smaller extent.
    operation tuples = make_operation<double, std::int32_t>(
        "gather_nd", not_mapped{[](const auto& x, const auto& i, const attributes&) { return gather_nd(x, i); }});
    tuples.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        if (before[0].empty()) return false;
        for (std::int64_t rank = random.whole(0, 2); rank > 0; --rank) dims.push_back(random.whole(0, 4));
        dims.push_back(random.whole(1, std::min<std::int64_t>(3, rank_of(before[0]))));
        return before[0].size() + dims.size() <= 7;
    };
    tuples.draw = [](choices&, const std::vector<extents>& x, attributes&) { return !x[1].empty(); };
    tuples.index_limit = [](const std::vector<extents>& x, const attributes&) {
        std::int64_t least = 1000;
        for (std::int64_t k = 0; !x[1].empty() && k < x[1].back() && k < rank_of(x[0]); ++k)
            least = std::min(least, x[0][static_cast<std::size_t>(k)]);
        return least;
    };
    tuples.source = [](const std::vector<std::string>& x, const attributes&) {
        return "gather_nd(" + x[0] + ", " + x[1] + ")";
    };
    tuples.reference = [](const std::vector<array>& x, const attributes&) {
        const std::int64_t depth = x[1].dims.back();
        extents dims(x[1].dims.begin(), x[1].dims.end() - 1);
        const auto picks = static_cast<std::ptrdiff_t>(dims.size());
        dims.insert(dims.end(), x[0].dims.begin() + depth, x[0].dims.end());
        array y(dims);
        for (std::int64_t i = 0; i < y.size(); ++i) {
            const extents at = testing::unravel(i, dims);
            extents pick(at.begin(), at.begin() + picks), from;
            pick.push_back(0);
            for (; pick.back() < depth; ++pick.back()) from.push_back(static_cast<std::int64_t>(x[1].at(pick)));
            from.insert(from.end(), at.begin() + picks, at.end());
            y[i] = x[0].at(from);
        }
        return y;
    };

    operation along = make_operation<double, std::int32_t>("take_along_axis",
                                                           [](const auto& x, const auto& i, const attributes& with) {
                                                               return take_along(x, i, static_cast<int>(with.whole[0]));
                                                           });
    along.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        dims = before[0];
        if (dims.empty()) return false;
        dims[static_cast<std::size_t>(random.whole(0, rank_of(dims) - 1))] = random.whole(0, 4);
        return true;
    };
    along.draw = [](choices&, const std::vector<extents>& x, attributes& with) {
        if (x[0].size() != x[1].size() || x[0].empty()) return false;
        with.whole = {0};
        for (std::size_t i = 0; i < x[0].size(); ++i)
            if (x[0][i] != x[1][i]) with.whole[0] = static_cast<std::int64_t>(i);
        return true;
    };
    along.index_limit = chosen.index_limit;
    along.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "take_along(" + x[0] + ", " + x[1] + ", " + text_of(with.whole[0]) + ")";
    };
    along.reference = [](const std::vector<array>& x, const attributes& with) {
        array y(x[1].dims);
        for (std::int64_t i = 0; i < y.size(); ++i) {
            extents at = testing::unravel(i, y.dims);
            at[static_cast<std::size_t>(with.whole[0])] = static_cast<std::int64_t>(x[1][i]);
            y[i] = x[0].at(at);
        }
        return y;
    };

    const auto one_axis = [](const char* name, auto f, std::string (*source)(const attributes&)) {
        return one_operand<double>(name, f, draw_axis, source);
    };
    std::vector<operation> r{gathered, scattered, taken, chosen, spread, tuples, along};
    r.push_back(one_operand<std::int32_t>(
        "one_hot", [](const auto& i, const attributes& with) { return one_hot<double>(i, with.whole[0]); },
        [](choices& random, const extents&, attributes& with) {
            with.whole = {random.whole(1, 5)};
            return true;
        },
        [](const attributes& with) { return "tg::one_hot<element>($, " + text_of(with.whole[0]) + ")"; }));
    r.push_back(one_axis(
        "argmax", [](const auto& x, const attributes& with) { return argmax(x, static_cast<int>(with.whole[0])); },
        [](const attributes& with) { return "argmax($, " + text_of(with.whole[0]) + ")"; }));
    r.push_back(one_axis(
        "argmin", [](const auto& x, const attributes& with) { return argmin(x, static_cast<int>(with.whole[0])); },
        [](const attributes& with) { return "argmin($, " + text_of(with.whole[0]) + ")"; }));
    const auto flag = [](choices& random, const extents& x, attributes& with) {
        with.whole = {random.chance(0.5)};
        return !x.empty();
    };
    r.push_back(one_operand<double>(
        "argsort", [](const auto& x, const attributes& with) { return argsort(x, {.descending = with.whole[0] != 0}); },
        flag,
        [](const attributes& with) {
            return std::string("argsort($, {.descending = ") + (with.whole[0] != 0 ? "true})" : "false})");
        }));
    r.push_back(one_operand<double>(
        "sort", [](const auto& x, const attributes& with) { return sort(x, {.descending = with.whole[0] != 0}); }, flag,
        [](const attributes& with) {
            return std::string("sort($, {.descending = ") + (with.whole[0] != 0 ? "true})" : "false})");
        }));
    // whole: the axis, how many, and a flag.
    const auto some = [](choices& random, const extents& x, attributes& with) {
        if (!draw_axis(random, x, with)) return false;
        with.whole.insert(with.whole.end(),
                          {random.whole(1, x[static_cast<std::size_t>(with.whole[0])]), random.chance(0.5)});
        return x[static_cast<std::size_t>(with.whole[0])] > 0;
    };
    r.push_back(one_operand<double>(
        "sort_axis",
        [](const auto& x, const attributes& with) {
            return sort(x, static_cast<int>(with.whole[0]), {.descending = with.whole[2] != 0});
        },
        some,
        [](const attributes& with) {
            return "sort($, " + text_of(with.whole[0]) + ", {.descending = " + (with.whole[2] != 0 ? "true" : "false") +
                   "})";
        }));
    r.push_back(one_operand<double>(
        "top_k",
        [](const auto& x, const attributes& with) {
            return top_k(x, with.whole[1], static_cast<int>(with.whole[0]), {.largest = with.whole[2] != 0}).values;
        },
        some, [](const attributes& with) { return top_k_text(with) + ".values"; },
        [](const array& x, const attributes& with) {
            const auto axis = static_cast<std::size_t>(with.whole[0]);
            extents dims = x.dims;
            dims[axis] = with.whole[1];
            array y(dims);
            for (std::int64_t i = 0; i < y.size(); ++i) {
                extents at = testing::unravel(i, dims);
                const auto rank = static_cast<std::size_t>(at[axis]);
                std::vector<real> line;
                for (at[axis] = 0; at[axis] < x.dims[axis]; ++at[axis]) line.push_back(x.at(at));
                std::sort(line.begin(), line.end());
                y[i] = line[with.whole[2] != 0 ? line.size() - 1 - rank : rank];
            }
            return y;
        }));
    r.push_back(one_operand<double>(
        "top_k_indices",
        [](const auto& x, const attributes& with) {
            return top_k(x, with.whole[1], static_cast<int>(with.whole[0]), {.largest = with.whole[2] != 0}).indices;
        },
        some, [](const attributes& with) { return top_k_text(with) + ".indices"; }));
    r.push_back(one_operand<double>(
        "argmax_all", [](const auto& x, const attributes&) { return argmax(x); },
        [](choices&, const extents& x, attributes&) { return testing::count_of(x) > 0; },
        [](const attributes&) { return std::string("argmax($)"); }));
    r.push_back(one_operand<std::int32_t>(
        "one_hot_options",
        [](const auto& i, const attributes& with) {
            return one_hot<double>(i, with.whole[0], {.on = 2, .off = -0.5, .axis = static_cast<int>(with.whole[1])});
        },
        [](choices& random, const extents& x, attributes& with) {
            with.whole = {random.whole(1, 5), random.whole(-rank_of(x) - 1, rank_of(x))};
            return true;
        },
        [](const attributes& with) {
            return "tg::one_hot<element>($, " + text_of(with.whole[0]) +
                   ", {.on = 2, .off = -0.5, .axis = " + text_of(with.whole[1]) + "})";
        }));
    for (operation& row : r)
        if (row.name == "one_hot" || row.name == "one_hot_options")
            row.index_limit = [](const std::vector<extents>&, const attributes& with) { return with.whole[0]; };
    return r;
}

} // namespace tapegraph::fuzz
