#include <fuzz/operations.hpp>

/// Convolutions and pooling. whole: stride, padding (0 valid, 1 same), dilation, groups; for pooling the window
/// instead.

namespace tapegraph::fuzz {

namespace {

padding padding_of(const attributes& with) { return with.whole[1] != 0 ? padding::same() : padding::valid(); }
std::string padding_text(const attributes& with) {
    return with.whole[1] != 0 ? "tg::padding::same()" : "tg::padding::valid()";
}

conv2d_options options2(const attributes& with) {
    return {.stride = {with.whole[0], with.whole[0]},
            .padding = padding_of(with),
            .dilation = {with.whole[2], 1},
            .groups = with.whole[3]};
}
conv1d_options options1(const attributes& with) {
    return {.stride = with.whole[0], .padding = padding_of(with), .dilation = with.whole[2], .groups = with.whole[3]};
}
std::string text2(const attributes& with) {
    const std::string s = std::to_string(with.whole[0]), d = std::to_string(with.whole[2]);
    return "{.stride = {" + s + ", " + s + "}, .padding = " + padding_text(with) + ", .dilation = {" + d +
           ", 1}, .groups = " + std::to_string(with.whole[3]) + "}";
}
std::string text1(const attributes& with) {
    return "{.stride = " + std::to_string(with.whole[0]) + ", .padding = " + padding_text(with) +
           ", .dilation = " + std::to_string(with.whole[2]) + ", .groups = " + std::to_string(with.whole[3]) + "}";
}

bool draw_window(choices& random, const std::vector<extents>& x, attributes& with) {
    const std::size_t rank = x[0].size();
    if (rank < 3 || rank > 4 || x[1].size() != rank) return false;
    const std::int64_t channels = x[0].back(), own = x[1][rank - 2];
    if (own == 0 || channels % own != 0) return false;
    const std::int64_t groups = channels / own;
    with.whole = {random.whole(1, 2), random.chance(0.5), random.chance(0.25) ? 2 : 1, groups};
    return groups > 0 && x[1].back() % groups == 0;
}

bool kernel_partner(choices& random, std::size_t k, const std::vector<extents>& before, extents& dims) {
    const extents& x = before[0];
    if (k == 2) {
        dims = {before[1].back()};
        return true;
    }
    if (x.size() < 3 || x.size() > 4 || x.back() == 0) return false;
    for (std::size_t i = 1; i + 1 < x.size(); ++i) dims.push_back(random.whole(1, 3));
    const bool depthwise = random.chance(0.2);
    dims.push_back(depthwise ? 1 : x.back());
    dims.push_back(depthwise ? x.back() * random.whole(1, 2) : random.whole(1, 4));
    return true;
}

array reference_of(const std::vector<array>& x, const attributes& with) {
    testing::window vertical{with.whole[0], with.whole[2], 0, 0, with.whole[1] != 0}, horizontal = vertical;
    if (x[0].dims.size() == 4) {
        horizontal.dilation = 1;
        return testing::convolution(x[0], x[1], vertical, horizontal, with.whole[3]);
    }
    const auto widened = [](const array& a, bool filter) {
        extents dims = a.dims;
        dims.insert(dims.begin() + (filter ? 0 : 1), 1);
        return array(dims, a.values);
    };
    array y = testing::convolution(widened(x[0], false), widened(x[1], true), {}, horizontal, with.whole[3]);
    y.dims.erase(y.dims.begin() + 1);
    return y;
}

template <class F>
operation pooling(const char* name, F f, real (*of_window)(const std::vector<real>&)) {
    operation row = make_operation<double>(name, f);
    row.weight = 2;
    row.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        with.whole = {random.whole(1, 2), random.chance(0.5), random.whole(1, 3), random.whole(1, 2)};
        return x[0].size() == 4;
    };
    row.source = [name](const std::vector<std::string>& x, const attributes& with) {
        const std::string s = std::to_string(with.whole[0]);
        return std::string(name) + "(" + x[0] + ", {.pool = " + braces({with.whole[2], with.whole[3]}) +
               ", .stride = {" + s + ", " + s + "}, .padding = " + padding_text(with) + "})";
    };
    row.reference = [of_window](const std::vector<array>& x, const attributes& with) {
        const testing::window w{with.whole[0], 1, 0, 0, with.whole[1] != 0};
        return testing::pool(x[0], with.whole[2], with.whole[3], w, w, of_window);
    };
    return row;
}
pool2d_options pool_of(const attributes& with) {
    return {
        .pool = {with.whole[2], with.whole[3]}, .stride = {with.whole[0], with.whole[0]}, .padding = padding_of(with)};
}

} // namespace

std::vector<operation> window_operations() {
    operation two = make_operation<double, double>(
        "conv2d", [](const auto& x, const auto& w, const attributes& with) { return conv2d(x, w, options2(with)); });
    two.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "conv2d(" + x[0] + ", " + x[1] + ", " + text2(with) + ")";
    };
    operation one = make_operation<double, double>(
        "conv1d", [](const auto& x, const auto& w, const attributes& with) { return conv1d(x, w, options1(with)); });
    one.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "conv1d(" + x[0] + ", " + x[1] + ", " + text1(with) + ")";
    };
    // What the pass for epilogues looks for; random neighbours alone would seldom spell it.
    operation layer = make_operation<double, double, double>(
        "conv2d_relu", [](const auto& x, const auto& w, const auto& b, const attributes& with) {
            return relu(conv2d(x, w, options2(with)) + b);
        });
    layer.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "relu(conv2d(" + x[0] + ", " + x[1] + ", " + text2(with) + ") + " + x[2] + ")";
    };
    std::vector<operation> r{two, one, layer};
    for (operation& row : r) {
        const std::size_t rank = row.name == "conv1d" ? 3 : 4;
        row.weight = 4;
        for (domain& d : row.domains) d = {-20, 20};
        row.partner = kernel_partner;
        row.draw = [rank](choices& random, const std::vector<extents>& x, attributes& with) {
            return x[0].size() == rank && (x.size() < 3 || x[2] == extents{x[1].back()}) &&
                   draw_window(random, x, with);
        };
        if (row.types.size() == 2) row.reference = reference_of;
    }
    r.push_back(pooling(
        "max_pooling2d", [](const auto& x, const attributes& with) { return max_pooling2d(x, pool_of(with)); },
        testing::max_of));
    r.push_back(pooling(
        "average_pooling2d", [](const auto& x, const attributes& with) { return average_pooling2d(x, pool_of(with)); },
        testing::mean_of));
    return r;
}

} // namespace tapegraph::fuzz
