#include <operations/indexed.hpp>

/// Choices by index, and sums by index.

namespace tapegraph::testing {

namespace indexing {

std::int64_t extent_at_axis(const std::vector<extents>& x, const attributes& with) {
    const std::int64_t axis = with.whole[0] + (with.whole[0] < 0 ? rank_of(x[0]) : 0);
    return axis >= 0 && axis < rank_of(x[0]) ? x[0][static_cast<std::size_t>(axis)] : 0;
}

// whole: the axis, and how many axes in front are batches.
std::vector<operation> gathered() {
    constexpr auto call = [](const auto& x, const auto& i, const attributes& with) {
        return with.whole == extents{0, 0} ? gather(x, i) : gather(x, i, axis_of(with), axis_of(with, 1));
    };
    operation made = make_operation<floating, std::int32_t>(
        "gather", call,
        {indexed({{0, 0}, {}}, 5, {{{5, 2}, {3}}, {{5}, {2, 3}}, {{5, 2, 3}, {}}, {{5, 2}, {0}}, {{5, 700}, {31}}}),
         indexed({{1, 0}, {}}, 4,
                 {{{2, 4}, {3}},
                  {{3, 4, 2}, {2, 2}},
                  {{3, 4, 7}, {5}},
                  {{2, 4, 3}, {}},
                  {{2, 4, 0}, {3}},
                  {{0, 4}, {2}},
                  {{21, 4, 65}, {11}}})});
    made.weight = 2;
    made.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        dims = part(before[0], 0, random.whole(0, std::min<std::int64_t>(2, rank_of(before[0]))));
        for (std::int64_t rank = random.whole(0, 2); rank > 0; --rank) dims.push_back(random.whole(0, 4));
        return before[0].size() + dims.size() <= 6;
    };
    made.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (!draw_axis(random, x[0], with)) return false;
        std::int64_t batch = 0;
        while (batch < with.whole[0] && batch < rank_of(x[1]) &&
               x[0][static_cast<std::size_t>(batch)] == x[1][static_cast<std::size_t>(batch)])
            ++batch;
        with.whole.push_back(random.whole(0, batch));
        return true;
    };
    made.index_limit = extent_at_axis;
    made.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "gather(" + x[0] + ", " + x[1] + ", " + text_of(with.whole[0]) + ", " + text_of(with.whole[1]) + ")";
    };
    made.reference = [](const std::vector<array>& x, const attributes& with) {
        const std::int64_t axis = with.whole[0], batch = with.whole[1], picks = rank_of(x[1].dims) - batch;
        array y(joined(part(x[0].dims, 0, axis), part(x[1].dims, batch, batch + picks),
                       part(x[0].dims, axis + 1, rank_of(x[0].dims))));
        for (std::int64_t i = 0; i < y.size(); ++i) {
            const extents at = unravel(i, y.dims);
            const extents pick = joined(part(at, 0, batch), part(at, axis, axis + picks));
            y[i] = x[0].at(joined(part(at, 0, axis), {index(x[1].at(pick))}, part(at, axis + picks, rank_of(at))));
        }
        return y;
    };
    operation wide = make_operation<double, std::int64_t>(
        "gather by int64", not_drawn{call},
        {indexed({{0, 0}, {}}, 5, {{{5, 2}, {7}}}),
         indexed({{2, 1}, {}}, 4, {{{2, 3, 4}, {2, 5}}, {{1, 1, 4}, {1, 1}}, {{3, 2, 4}, {3, 0}}})});
    wide.reference = made.reference;
    return {made, wide};
}

// whole: the axis, how many axes in front are batches, the target's extents.
operation scattered() {
    operation made = make_operation<floating, std::int32_t>(
        "scatter_add",
        [](const auto& x, const auto& i, const attributes& with) {
            const shape target = shape_of_words({with.whole.begin() + 2, with.whole.end()});
            if (with.whole[0] == 0 && with.whole[1] == 0) return scatter_add(x, i, target);
            return scatter_add(x, i, target, axis_of(with), axis_of(with, 1));
        },
        // Up to forty rows meet in five, and five elements in one.
        {indexed({{0, 0, 5, 2}, {}}, 5, {{{3, 2}, {3}}, {{2, 3, 2}, {2, 3}}, {{0, 2}, {0}}, {{40, 2}, {40}}}, 4, 8),
         indexed({{1, 0, 2, 4, 3}, {}}, 4, {{{2, 5, 3}, {5}}, {{2, 0, 3}, {0}}}, 16),
         indexed({{1, 0, 1, 4, 3}, {}}, 4, {{{1, 1, 3}, {1}}}, 16)});
    made.weight = 2;
    made.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        const std::int64_t rank = rank_of(before[0]), axis = random.whole(0, rank), batch = random.whole(0, axis);
        const std::int64_t picks = random.whole(0, std::min<std::int64_t>(2, rank - axis));
        dims = joined(part(before[0], 0, batch), part(before[0], axis, axis + picks));
        return true;
    };
    made.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        std::vector<extents> fitting;
        for (std::int64_t batch = 0; batch <= std::min(rank_of(x[0]), rank_of(x[1])); ++batch) {
            const std::int64_t picks = rank_of(x[1]) - batch;
            if (part(x[1], 0, batch) != part(x[0], 0, batch)) break;
            for (std::int64_t axis = batch; axis + picks <= rank_of(x[0]); ++axis)
                if (part(x[0], axis, axis + picks) == part(x[1], batch, batch + picks))
                    fitting.push_back(joined(joined({axis, batch}, part(x[0], 0, axis)), {random.whole(1, 4)},
                                             part(x[0], axis + picks, rank_of(x[0]))));
        }
        if (fitting.empty()) return false;
        with.whole = random.pick(fitting);
        return true;
    };
    made.index_limit = [](const std::vector<extents>&, const attributes& with) {
        const auto word = static_cast<std::size_t>(with.whole[0]) + 2;
        return word < with.whole.size() ? with.whole[word] : 0;
    };
    made.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "scatter_add(" + x[0] + ", " + x[1] + ", " + braces({with.whole.begin() + 2, with.whole.end()}) + ", " +
               text_of(with.whole[0]) + ", " + text_of(with.whole[1]) + ")";
    };
    made.reference = [](const std::vector<array>& x, const attributes& with) {
        const std::int64_t axis = with.whole[0], batch = with.whole[1], picks = rank_of(x[1].dims) - batch;
        array y(extents(with.whole.begin() + 2, with.whole.end()));
        for (std::int64_t i = 0; i < x[0].size(); ++i) {
            const extents at = unravel(i, x[0].dims);
            const extents pick = joined(part(at, 0, batch), part(at, axis, axis + picks));
            y.at(joined(part(at, 0, axis), {index(x[1].at(pick))}, part(at, axis + picks, rank_of(at)))) += x[0][i];
        }
        return y;
    };
    return made;
}

// whole: the axis.
std::vector<operation> along_an_axis() {
    constexpr auto call = [](const auto& x, const auto& i, const attributes& with) {
        return axis_of(with) == -1 ? take_along(x, i) : take_along(x, i, axis_of(with));
    };
    operation made = make_operation<floating, std::int32_t>(
        "take_along", call,
        {indexed({{-1}, {}}, 4, {{{4}, {7}}, {{3, 4}, {3, 2}}, {{2, 3, 4}, {2, 3, 5}}, {{3, 4}, {3, 0}}})});
    made.weight = 2;
    made.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        dims = before[0];
        if (dims.empty()) return false;
        dims[static_cast<std::size_t>(random.whole(0, rank_of(dims) - 1))] = random.whole(0, 4);
        return true;
    };
    made.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (x[0].size() != x[1].size() || x[0].empty()) return false;
        std::int64_t axis = 0;
        for (std::size_t i = 0; i < x[0].size(); ++i)
            if (x[0][i] != x[1][i]) axis = static_cast<std::int64_t>(i);
        with.whole = {random.chance(0.5) ? axis : axis - rank_of(x[0])};
        return true;
    };
    made.index_limit = extent_at_axis;
    made.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "take_along(" + x[0] + ", " + x[1] + ", " + text_of(with.whole[0]) + ")";
    };
    made.reference = [](const std::vector<array>& x, const attributes& with) {
        array y(x[1].dims);
        for (std::int64_t i = 0; i < y.size(); ++i) {
            extents at = unravel(i, y.dims);
            at[axis_in(at, with)] = index(x[1][i]);
            y[i] = x[0].at(at);
        }
        return y;
    };
    operation wide = make_operation<double, std::int64_t>(
        "take_along by int64", not_drawn{call},
        {indexed({{0}, {}}, 4,
                 {{{4}, {7}}, {{4, 3}, {2, 3}}, {{4, 2, 3}, {5, 2, 3}}, {{4, 3}, {0, 3}}, {{4, 300}, {9, 300}}})});
    wide.reference = made.reference;
    // whole: the axis, the target's extents.
    const shape_list put{{{2, 5, 3}, {2, 5, 3}}, {{2, 0, 3}, {2, 0, 3}}};
    operation back = make_operation<double, std::int32_t>(
        "put_along", not_drawn{[](const auto& x, const auto& i, const attributes& with) {
            return put_along(x, i, shape_of_words({with.whole.begin() + 1, with.whole.end()}), axis_of(with));
        }},
        {indexed({{1, 2, 4, 3}, {}}, 4, put, 16), indexed({{1, 2, 4, 1}, {}}, 4, {{{2, 3, 1}, {2, 3, 1}}}, 16)});
    back.reference = [](const std::vector<array>& x, const attributes& with) {
        array y(extents(with.whole.begin() + 1, with.whole.end()));
        for (std::int64_t i = 0; i < x[0].size(); ++i) {
            extents at = unravel(i, x[0].dims);
            at[axis_in(at, with)] = index(x[1][i]);
            y.at(at) += x[0][i];
        }
        return y;
    };
    return {made, wide, back};
}

// Tuples of indices; all below the smallest extent.
extents place_of_tuple(const array& tuples, const extents& at, std::int64_t picks) {
    extents pick = part(at, 0, picks), place;
    pick.push_back(0);
    for (; pick.back() < tuples.dims.back(); ++pick.back()) place.push_back(index(tuples.at(pick)));
    return joined(place, part(at, picks, rank_of(at)));
}

std::vector<operation> by_tuples() {
    operation made = make_operation<floating, std::int32_t>(
        "gather_nd", not_mapped{[](const auto& x, const auto& i, const attributes&) { return gather_nd(x, i); }},
        {indexed({}, 3,
                 {{{3, 3, 2}, {4, 2}}, {{3, 3}, {2, 3, 2}}, {{3, 5}, {1}}, {{3, 3, 3}, {0, 3}}, {{3, 4, 2}, {5, 1}}})});
    made.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        if (before[0].empty()) return false;
        for (std::int64_t rank = random.whole(0, 2); rank > 0; --rank) dims.push_back(random.whole(0, 4));
        dims.push_back(random.whole(1, std::min<std::int64_t>(3, rank_of(before[0]))));
        return before[0].size() + dims.size() <= 7;
    };
    made.draw = [](choices&, const std::vector<extents>& x, attributes&) { return !x[1].empty(); };
    made.index_limit = [](const std::vector<extents>& x, const attributes&) {
        std::int64_t least = 1000;
        for (std::int64_t k = 0; !x[1].empty() && k < x[1].back() && k < rank_of(x[0]); ++k)
            least = std::min(least, x[0][static_cast<std::size_t>(k)]);
        return least;
    };
    made.source = [](const std::vector<std::string>& x, const attributes&) {
        return "gather_nd(" + x[0] + ", " + x[1] + ")";
    };
    made.reference = [](const std::vector<array>& x, const attributes&) {
        const std::int64_t picks = rank_of(x[1].dims) - 1;
        array y(joined(part(x[1].dims, 0, picks), part(x[0].dims, x[1].dims.back(), rank_of(x[0].dims))));
        for (std::int64_t i = 0; i < y.size(); ++i) y[i] = x[0].at(place_of_tuple(x[1], unravel(i, y.dims), picks));
        return y;
    };
    operation back = make_operation<double, std::int64_t>(
        "scatter_nd", not_drawn{[](const auto& x, const auto& i, const attributes& with) {
            return scatter_nd(x, i, shape_of_words(with.whole));
        }},
        {indexed({{3, 4, 2}, {}}, 3, {{{7, 2}, {7, 2}}, {{2, 3, 2}, {2, 3, 2}}, {{0, 2}, {0, 2}}}, 16)});
    back.reference = [](const std::vector<array>& x, const attributes& with) {
        array y(with.whole);
        for (std::int64_t i = 0; i < x[0].size(); ++i)
            y.at(place_of_tuple(x[1], unravel(i, x[0].dims), rank_of(x[1].dims) - 1)) += x[0][i];
        return y;
    };
    return {made, back};
}

// whole: the number of classes, the axis; real: on and off.
array hot(const array& x, const attributes& with) {
    extents dims = x.dims;
    const std::int64_t axis = with.whole[1] + (with.whole[1] < 0 ? rank_of(dims) + 1 : 0);
    dims.insert(dims.begin() + axis, with.whole[0]);
    array y(dims, static_cast<real>(with.real[1]));
    for (std::int64_t i = 0; i < x.size(); ++i) {
        extents at = unravel(i, x.dims);
        at.insert(at.begin() + axis, index(x[i]));
        y.at(at) = static_cast<real>(with.real[0]);
    }
    return y;
}
row classes(attributes with) {
    return {.with = std::move(with), .shapes = {{{}}, {{3}}, {{2, 3}}, {{0}}}, .domains = {{0, 5}}, .derivatives = 0};
}

std::vector<operation> of_classes() {
    std::vector<operation> made{
        one_operand<std::int32_t>(
            "one_hot",
            [](const auto& i, const attributes& with) {
                return one_hot<double>(i, with.whole[0],
                                       {.on = with.real[0], .off = with.real[1], .axis = axis_of(with, 1)});
            },
            [](choices& random, const extents& x, attributes& with) {
                const bool plain = random.chance(0.5);
                with.whole = {random.whole(1, 5), plain ? -1 : random.whole(-rank_of(x) - 1, rank_of(x))};
                with.real = {plain ? 1. : 2., plain ? 0 : -0.5};
                return true;
            },
            [](const attributes& with) {
                return "tg::one_hot<element>($, " + text_of(with.whole[0]) + ", {.on = " + number_text(with.real[0]) +
                       ", .off = " + number_text(with.real[1]) + ", .axis = " + text_of(with.whole[1]) + "})";
            },
            hot, {classes({{5, -1}, {1, 0}}), classes({{5, 0}, {2, -0.5}})}),
        one_operand<std::int64_t>("one_hot<float> by default", not_drawn{[](const auto& i, const attributes& with) {
                                      return one_hot<float>(i, with.whole[0]);
                                  }},
                                  nullptr, nullptr, hot, {classes({{5, -1}, {1, 0}})})};
    made[0].weight = 2;
    made[0].index_limit = [](const std::vector<extents>&, const attributes& with) { return with.whole[0]; };
    return made;
}

// Cross entropy of logits and class numbers.
template <class T, class Index, class F>
operation entropy(const char* name, F call, std::vector<row> rows) {
    operation made = make_operation<T, Index>(name, call, std::move(rows));
    made.partner = [](choices&, std::size_t, const std::vector<extents>& before, extents& dims) {
        if (before[0].empty() || before[0].back() == 0) return false;
        dims = part(before[0], 0, rank_of(before[0]) - 1);
        return true;
    };
    made.index_limit = [](const std::vector<extents>& x, const attributes&) { return x[0].empty() ? 0 : x[0].back(); };
    made.draw = [](choices&, const std::vector<extents>& x, attributes&) {
        return !x[0].empty() && x[0].back() > 0 && part(x[0], 0, rank_of(x[0]) - 1) == x[1];
    };
    made.source = [](const std::vector<std::string>& x, const attributes&) {
        return "sparse_softmax_cross_entropy_with_logits(" + x[0] + ", " + x[1] + ")";
    };
    made.reference = [](const std::vector<array>& x, const attributes&) {
        array y(x[1].dims);
        const std::int64_t classes = x[0].dims.back();
        for (std::int64_t r = 0; r < y.size(); ++r) {
            real largest = x[0][r * classes], sum = 0;
            for (std::int64_t k = 1; k < classes; ++k) largest = std::max(largest, x[0][r * classes + k]);
            for (std::int64_t k = 0; k < classes; ++k) sum += std::exp(x[0][r * classes + k] - largest);
            y[r] = std::log(sum) - (x[0][r * classes + index(x[1][r])] - largest);
        }
        return y;
    };
    return made;
}
std::vector<operation> entropies() {
    const auto of = [](double classes, shape_list shapes) {
        row r = indexed({}, classes, std::move(shapes), 16, 4);
        r.domains[0] = {-3, 3};
        r.why = "rounding of exponentials and of their sum";
        return r;
    };
    constexpr auto call = [](const auto& x, const auto& z, const attributes&) {
        return sparse_softmax_cross_entropy_with_logits(x, z);
    };
    return {entropy<floating, std::int32_t>("sparse_softmax_cross_entropy_with_logits", call,
                                            {of(1, {{{1}, {}}, {{3, 1}, {3}}, {{0, 1}, {0}}}),
                                             of(3, {{{3}, {}}, {{5, 3}, {5}}, {{2, 3, 7}, {2, 3}}, {{0, 5}, {0}}}),
                                             of(70, {{{9, 70}, {9}}, {{2, 2100}, {2}}})}),
            entropy<double, std::int64_t>("sparse_softmax_cross_entropy_with_logits by int64", not_drawn{call},
                                          {of(3, {{{5, 3}, {5}}, {{40, 5}, {40}}})})};
}

} // namespace indexing

std::vector<operation> indexing_operations() {
    using namespace indexing;
    std::vector<operation> made{scattered()};
    for (const auto& part : {gathered(), along_an_axis(), by_tuples(), of_classes(), entropies()})
        made.insert(made.end(), part.begin(), part.end());
    return made;
}

} // namespace tapegraph::testing
