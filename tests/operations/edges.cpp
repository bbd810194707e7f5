#include <operations/indexed.hpp>

/// Sums over the edges of a graph.

namespace tapegraph::testing {

namespace indexing {

// whole: the axis, how many axes in front are batches, the target's extents. Indices are below the smaller of both axes.
template <class T, class From, class To, class... Weight, class F>
operation messages(const char* name, F call, std::vector<row> rows) {
    operation made = make_operation<T, From, To, Weight...>(name, call, std::move(rows));
    made.partner = [](choices& random, std::size_t k, const std::vector<extents>& before, extents& dims) {
        if (k > 1) {
            dims = before[1];
            return true;
        }
        dims = part(before[0], 0, random.whole(0, std::min<std::int64_t>(2, rank_of(before[0]))));
        for (std::int64_t rank = random.whole(0, 2); rank > 0; --rank) dims.push_back(random.whole(0, 4));
        return before[0].size() + dims.size() <= 6;
    };
    made.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        for (std::size_t k = 2; k < x.size(); ++k)
            if (x[k] != x[1]) return false;
        if (!draw_axis(random, x[0], with)) return false;
        std::int64_t batch = 0;
        while (batch < with.whole[0] && batch < rank_of(x[1]) &&
               x[0][static_cast<std::size_t>(batch)] == x[1][static_cast<std::size_t>(batch)])
            ++batch;
        with.whole.push_back(random.whole(0, batch));
        with.whole.insert(with.whole.end(), x[0].begin(), x[0].end());
        with.whole[2 + static_cast<std::size_t>(with.whole[0])] = random.whole(1, 4);
        return true;
    };
    made.index_limit = [](const std::vector<extents>& x, const attributes& with) {
        const auto axis = static_cast<std::size_t>(with.whole[0]);
        return axis < x[0].size() && axis + 2 < with.whole.size() ? std::min(x[0][axis], with.whole[axis + 2]) : 0;
    };
    made.source = [](const std::vector<std::string>& x, const attributes& with) {
        std::string text = "gather_scatter_add(" + x[0] + ", " + x[1] + ", " + x[2] + ", ";
        if (x.size() > 3) text += x[3] + ", ";
        return text + "tg::shape" + braces({with.whole.begin() + 2, with.whole.end()}) + ", " + text_of(with.whole[0]) +
               ", " + text_of(with.whole[1]) + ")";
    };
    made.reference = [](const std::vector<array>& x, const attributes& with) {
        const std::int64_t axis = with.whole[0], batch = with.whole[1], picks = rank_of(x[1].dims) - batch;
        array y(extents(with.whole.begin() + 2, with.whole.end()));
        const extents before = part(x[0].dims, 0, axis), after = part(x[0].dims, axis + 1, rank_of(x[0].dims));
        const array of_messages(joined(before, part(x[1].dims, batch, batch + picks), after));
        for (std::int64_t i = 0; i < of_messages.size(); ++i) {
            const extents at = unravel(i, of_messages.dims);
            const extents edge = joined(part(at, 0, batch), part(at, axis, axis + picks));
            const extents rest = part(at, axis + picks, rank_of(at));
            y.at(joined(part(at, 0, axis), {index(x[2].at(edge))}, rest)) +=
                x[0].at(joined(part(at, 0, axis), {index(x[1].at(edge))}, rest)) * (x.size() > 3 ? x[3].at(edge) : 1);
        }
        return y;
    };
    return made;
}

std::vector<operation> along_edges() {
    constexpr auto call = [](const auto& x, const auto& from, const auto& to, const attributes& with) {
        const shape target = shape_of_words({with.whole.begin() + 2, with.whole.end()});
        if (with.whole[0] == 0 && with.whole[1] == 0) return gather_scatter_add(x, from, to, target);
        return gather_scatter_add(x, from, to, target, axis_of(with), axis_of(with, 1));
    };
    constexpr auto weighted = [](const auto& x, const auto& from, const auto& to, const auto& weights,
                                 const attributes& with) {
        const shape target = shape_of_words({with.whole.begin() + 2, with.whole.end()});
        if (with.whole[0] == 0 && with.whole[1] == 0) return gather_scatter_add(x, from, to, weights, target);
        return gather_scatter_add(x, from, to, weights, target, axis_of(with), axis_of(with, 1));
    };
    // Narrow rows and wide ones, no edges, no nodes, no features, up to sixty messages in one sum.
    const auto rows = [](bool of_weights) {
        const auto edges = [&](attributes with, double largest, const shape_list& of) {
            shape_list shapes;
            for (const auto& each : of) {
                shapes.push_back({each[0], each[1], each[1]});
                if (of_weights) shapes.back().push_back(each[1]);
            }
            row made = indexed(std::move(with), largest, std::move(shapes), 8, 16);
            made.domains = {{}, {0, largest}, {0, largest}};
            if (of_weights) made.domains.push_back({});
            return made;
        };
        return std::vector<row>{
            edges({{0, 0, 4, 2}, {}}, 4, {{{5, 2}, {3}}, {{5, 2}, {2, 3}}, {{5, 2}, {0}}, {{5, 2}, {60}}}),
            edges({{0, 0, 5}, {}}, 4, {{{4}, {7}}, {{4}, {}}}),
            edges({{0, 0, 3, 0}, {}}, 3, {{{4, 0}, {3}}}),
            edges({{0, 0, 0, 3}, {}}, 1, {{{0, 3}, {0}}}),
            edges({{0, 0, 5, 37}, {}}, 5, {{{7, 37}, {31}}}),
            edges({{1, 0, 2, 4, 19}, {}}, 3, {{{2, 3, 19}, {5}}}),
            edges({{1, 1, 2, 4, 3}, {}}, 3, {{{2, 3, 3}, {2, 5}}}),
            edges({{2, 1, 2, 3, 4, 17}, {}}, 3, {{{2, 3, 3, 17}, {2, 5}}})};
    };
    std::vector<operation> made{
        messages<floating, std::int32_t, std::int32_t>("gather_scatter_add", call, rows(false)),
        messages<floating, std::int32_t, std::int32_t, floating>("gather_scatter_add_weighted", weighted, rows(true)),
        messages<double, std::int64_t, std::int32_t>("gather_scatter_add from int64", not_drawn{call}, rows(false)),
        messages<double, std::int32_t, std::int64_t, double>("gather_scatter_add to int64, weighted",
                                                             not_drawn{weighted}, rows(true))};
    return made;
}

} // namespace indexing

std::vector<operation> edges_operations() { return indexing::along_edges(); }

} // namespace tapegraph::testing
