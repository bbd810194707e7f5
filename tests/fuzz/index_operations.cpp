#include <fuzz/rows.hpp>

#include <algorithm>

/// Choices by index, and order.

namespace tapegraph::fuzz {

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

    const auto one_axis = [](const char* name, auto f, std::string (*source)(const attributes&)) {
        return one_operand<double>(name, f, draw_axis, source);
    };
    std::vector<operation> r{gathered, scattered, taken};
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
    return r;
}

} // namespace tapegraph::fuzz
