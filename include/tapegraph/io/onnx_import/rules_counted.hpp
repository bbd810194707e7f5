#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

/// Operators that are computed from numbers, not by nodes: results have as many elements as values say, or
/// other bits than arithmetic gives. Where their operands depend on inputs, stages.hpp cuts the graph at
/// them.

namespace tapegraph::io::onnx_import {

namespace rules {

inline const array& values_of(call& c, int i) {
    c.operand(i);
    if (c.known(i) == nullptr || c.known(i)->symbolic()) refuse_symbols("of values that are not known before");
    return *c.known(i);
}

inline void non_zero(call& c) {
    const array& x = values_of(c, 0);
    std::vector<std::vector<std::int64_t>> found(static_cast<std::size_t>(x.rank()));
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < x.size(); ++i) {
        if (x.number(i) == 0) continue;
        ++count;
        std::int64_t rest = i;
        for (int k = x.rank() - 1; k >= 0; --k) {
            const auto axis = static_cast<std::size_t>(k);
            found[axis].push_back(rest % x.dims()[axis]);
            rest /= x.dims()[axis];
        }
    }
    array a(dtype::i64, {x.rank(), count});
    auto* to = static_cast<std::int64_t*>(a.data());
    for (const auto& row : found) to = std::copy(row.begin(), row.end(), to);
    c.give_known(0, std::move(a));
}
inline void compress(call& c) {
    const array& keep = values_of(c, 1);
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < keep.size(); ++i)
        if (keep.integer(i) != 0) places.push_back(i);
    const attribute* const a = c.find("axis");
    const node x = a != nullptr ? c.plain(0) : ravel(c.plain(0));
    const int axis = a != nullptr ? c.axis(a->i, c.rank(0)) : 0;
    if (const extent size = x.shape()[axis]; !places.empty() && size.known() && places.back() >= size.value)
        refuse("a condition for element " + std::to_string(places.back()) + " of " + std::to_string(size.value));
    c.give(0, gather(x, c.on.constant(array::integers(places)), axis), c.type(0));
}

/// Corners of a box: y and x of the lower one, then of the upper one.
struct box {
    double low[2], high[2];
    double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};
inline double intersection_over_union(const box& a, const box& b) {
    double common = 1;
    for (const int k : {0, 1}) common *= std::max(std::min(a.high[k], b.high[k]) - std::max(a.low[k], b.low[k]), 0.0);
    const double all = a.area() + b.area() - common;
    return common > 0 && a.area() > 0 && b.area() > 0 ? common / all : 0;
}
inline void non_max_suppression(call& c) {
    const array &boxes = values_of(c, 0), &scores = values_of(c, 1);
    const bool centers = c.integer("center_point_box", 0) != 0;
    const std::int64_t most = c.has(2) ? static_cast<std::int64_t>(c.scalar(2, "a number of boxes")) : 0;
    const double overlap = c.has(3) ? c.scalar(3, "a threshold") : 0;
    const bool limited = c.has(4);
    const double least = limited ? c.scalar(4, "a threshold") : 0;
    if (boxes.rank() != 3 || scores.rank() != 3 || boxes.dims()[2] != 4 || boxes.dims()[0] != scores.dims()[0] ||
        boxes.dims()[1] != scores.dims()[2])
        refuse("boxes of shape " + to_string(boxes.shape()) + " with scores of " + to_string(scores.shape()));
    const std::int64_t batch = scores.dims()[0], classes = scores.dims()[1], count = scores.dims()[2];
    std::vector<std::int64_t> selected;
    std::int64_t total = 0;
    for (std::int64_t b = 0; b < batch; ++b) {
        std::vector<box> corners;
        for (std::int64_t i = 0; i < count; ++i) {
            double v[4];
            for (int k = 0; k < 4; ++k) v[k] = boxes.number((b * count + i) * 4 + k);
            if (centers) // x, y, width, height
                corners.push_back({{v[1] - v[3] / 2, v[0] - v[2] / 2}, {v[1] + v[3] / 2, v[0] + v[2] / 2}});
            else // y, x of two opposite corners
                corners.push_back(
                    {{std::min(v[0], v[2]), std::min(v[1], v[3])}, {std::max(v[0], v[2]), std::max(v[1], v[3])}});
        }
        for (std::int64_t k = 0; k < classes; ++k) {
            const auto score = [&](std::int64_t i) { return scores.number((b * classes + k) * count + i); };
            std::vector<std::int64_t> order, kept;
            for (std::int64_t i = 0; i < count; ++i)
                if (!std::isnan(score(i)) && (!limited || score(i) > least)) order.push_back(i);
            std::stable_sort(order.begin(), order.end(), [&](auto x, auto y) { return score(x) > score(y); });
            for (const std::int64_t i : order) {
                if (static_cast<std::int64_t>(kept.size()) >= most) break;
                const bool covered = std::any_of(kept.begin(), kept.end(), [&](std::int64_t other) {
                    return intersection_over_union(corners[static_cast<std::size_t>(i)],
                                                   corners[static_cast<std::size_t>(other)]) > overlap;
                });
                if (!covered) kept.push_back(i);
            }
            for (const std::int64_t i : kept) selected.insert(selected.end(), {b, k, i}), ++total;
        }
    }
    array a = array::integers(selected);
    a.set_dims({total, 3});
    c.give_known(0, std::move(a));
}

inline void unique_rule(call& c) {
    const array& given = values_of(c, 0);
    const bool sorted = c.integer("sorted", 1) != 0;
    const attribute* const along = c.find("axis");
    const int axis = along != nullptr ? c.axis(along->i, given.rank()) : 0;
    std::vector<int> order;
    for (int i = 0; i < given.rank(); ++i) order.push_back(i);
    if (along != nullptr) std::swap(order[0], order[static_cast<std::size_t>(axis)]);
    const array x = along != nullptr ? given.transposed(order) : given; // slices are rows
    const std::int64_t rows = along != nullptr ? x.dims()[0] : x.size(), width = rows > 0 ? x.size() / rows : 0;
    const auto compared = [&](std::int64_t a, std::int64_t b) { // < 0, 0 or > 0; NaN comes last
        for (std::int64_t k = 0; k < width; ++k) {
            const std::int64_t i = a * width + k, j = b * width + k;
            if (!is_floating(x.type())) {
                const std::int64_t u = x.integer(i), v = x.integer(j);
                if (u == v) continue;
                return (x.type() == dtype::u64 ? std::uint64_t(u) < std::uint64_t(v) : u < v) ? -1 : 1;
            }
            const double u = x.number(i), v = x.number(j);
            if (u == v || (std::isnan(u) && std::isnan(v))) continue;
            return std::isnan(v) || u < v ? -1 : 1;
        }
        return 0;
    };
    std::vector<std::int64_t> by_value(static_cast<std::size_t>(rows)), first, counts, group(by_value.size());
    std::iota(by_value.begin(), by_value.end(), 0);
    std::stable_sort(by_value.begin(), by_value.end(), [&](auto a, auto b) { return compared(a, b) < 0; });
    for (std::size_t i = 0; i < by_value.size(); ++i) {
        if (i == 0 || compared(by_value[i - 1], by_value[i]) != 0) first.push_back(by_value[i]), counts.push_back(0);
        ++counts.back();
        group[static_cast<std::size_t>(by_value[i])] = static_cast<std::int64_t>(first.size()) - 1;
    }
    std::vector<std::int64_t> places(first.size()), rank(first.size());
    std::iota(places.begin(), places.end(), 0);
    const auto at = [](const std::vector<std::int64_t>& list, std::int64_t i) {
        return list[static_cast<std::size_t>(i)];
    };
    if (!sorted) std::sort(places.begin(), places.end(), [&](auto a, auto b) { return at(first, a) < at(first, b); });
    std::vector<std::int64_t> dims = along != nullptr ? x.dims() : std::vector<std::int64_t>{0}, firsts, numbers;
    dims[0] = static_cast<std::int64_t>(first.size());
    array y(x.type(), dims);
    const std::size_t bytes = static_cast<std::size_t>(width) * size_of(x.type());
    for (std::size_t k = 0; k < places.size(); ++k) {
        const std::int64_t row = at(first, places[k]);
        rank[static_cast<std::size_t>(places[k])] = static_cast<std::int64_t>(k);
        if (bytes > 0)
            std::memcpy(static_cast<std::byte*>(y.data()) + k * bytes,
                        static_cast<const std::byte*>(x.data()) + static_cast<std::size_t>(row) * bytes, bytes);
        firsts.push_back(row);
        numbers.push_back(at(counts, places[k]));
    }
    for (std::int64_t& g : group) g = at(rank, g);
    c.give_known(0, along != nullptr ? y.transposed(order) : y);
    c.give_known(1, array::integers(firsts));
    c.give_known(2, array::integers(group));
    c.give_known(3, array::integers(numbers));
}

/// Between integers of one size this is arithmetic; other elements keep their bytes.
inline void bit_cast_rule(call& c) {
    const dtype from = c.type(0);
    const auto number = static_cast<int>(c.integer("to", 0));
    const auto to = element_type(number);
    if (!to || size_of(*to) != size_of(from))
        refuse(std::string("of ") + name_of(from) + " to " + element_type_name(number));
    if (c.known(0) == nullptr && is_integer(from) && is_integer(*to))
        return c.give(0, converted(c.plain(0), from, *to), *to);
    const array& x = values_of(c, 0);
    array y(*to, x.dims());
    if (x.byte_count() > 0) std::memcpy(y.data(), x.data(), x.byte_count());
    c.give_known(0, std::move(y));
}

/// Counts of n-grams of integers, whose items may be a few places apart.
inline void tf_idf_vectorizer(call& c) {
    if (!c.texts("pool_strings").empty()) refuse("n-grams of strings (attribute pool_strings)");
    const std::vector<std::int64_t> pool = c.integers("pool_int64s"), starts = c.integers("ngram_counts"),
                                    indexes = c.integers("ngram_indexes");
    const std::int64_t shortest = c.integer("min_gram_length", 1), longest = c.integer("max_gram_length", 1),
                       skips = c.integer("max_skip_count", 0);
    const std::string mode = c.text("mode", "TF");
    const std::vector<float> weights = c.numbers("weights");
    if (mode != "TF" && mode != "IDF" && mode != "TFIDF") refuse("mode = '" + mode + "'");
    if (shortest < 1 || longest < shortest || skips < 0 || indexes.empty()) refuse("lengths of n-grams, or no n-grams");
    if (!weights.empty() && weights.size() != indexes.size())
        refuse(std::to_string(weights.size()) + " weights for " + std::to_string(indexes.size()) + " n-grams");
    std::map<std::vector<std::int64_t>, std::size_t> grams;
    std::size_t next = 0;
    for (std::size_t k = 0; k < starts.size(); ++k) {
        const auto size = static_cast<std::int64_t>(k) + 1;
        const std::int64_t end = k + 1 < starts.size() ? starts[k + 1] : static_cast<std::int64_t>(pool.size());
        if (starts[k] < 0 || end > static_cast<std::int64_t>(pool.size())) refuse("ngram_counts beyond the pool");
        for (std::int64_t i = starts[k]; i + size <= end; i += size)
            grams.emplace(std::vector<std::int64_t>(pool.begin() + i, pool.begin() + i + size), next++);
    }
    if (next != indexes.size())
        refuse(std::to_string(indexes.size()) + " ngram_indexes for " + std::to_string(next) + " n-grams");
    std::int64_t width = 0;
    for (const std::int64_t i : indexes) {
        if (i < 0 || i > 100000000) refuse("ngram_indexes of " + std::to_string(i));
        width = std::max(width, i + 1);
    }
    const array& x = values_of(c, 0);
    if (x.rank() < 1 || x.rank() > 2) refuse("of rank " + std::to_string(x.rank()));
    const std::int64_t rows = x.rank() == 2 ? x.dims()[0] : 1, columns = x.dims().back();
    array y(dtype::f32, x.rank() == 2 ? std::vector<std::int64_t>{rows, width} : std::vector<std::int64_t>{width});
    auto* const out = static_cast<float*>(y.data());
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t step = 1; step <= skips + 1; ++step)
            for (std::int64_t begin = 0; begin < columns; ++begin) {
                std::vector<std::int64_t> gram;
                for (std::int64_t i = begin; i < columns && static_cast<std::int64_t>(gram.size()) < longest;
                     i += step) {
                    gram.push_back(x.integer(row * columns + i));
                    const auto size = static_cast<std::int64_t>(gram.size());
                    if (size < shortest || (size == 1 && step > 1)) continue; // one item has nothing to skip
                    const auto found = grams.find(gram);
                    if (found != grams.end()) out[row * width + indexes[found->second]] += 1;
                }
            }
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::size_t k = 0; k < indexes.size() && mode != "TF"; ++k) {
            float& count = out[row * width + indexes[k]];
            if (mode == "IDF") count = std::min(count, 1.0f);
            if (!weights.empty()) count *= weights[k];
        }
    c.give_known(0, std::move(y));
}

inline std::span<const operator_rule> counted() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"NonZero", &non_zero},
        {"Compress", &compress},
        {"NonMaxSuppression", &non_max_suppression},
        {"Unique", &unique_rule},
        {"BitCast", &bit_cast_rule},
        {"TfIdfVectorizer", &tf_idf_vectorizer},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
