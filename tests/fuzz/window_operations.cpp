#include <fuzz/operations.hpp>

#include <utility>

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
        return std::string(name) + "(" + x[0] + ", {.pool_size = " + braces({with.whole[2], with.whole[3]}) +
               ", .stride = {" + s + ", " + s + "}, .padding = " + padding_text(with) + "})";
    };
    row.reference = [of_window](const std::vector<array>& x, const attributes& with) {
        const testing::window w{with.whole[0], 1, 0, 0, with.whole[1] != 0};
        return testing::pool(x[0], with.whole[2], with.whole[3], w, w, of_window);
    };
    return row;
}
pool2d_options pool_of(const attributes& with) {
    return {.pool_size = {with.whole[2], with.whole[3]},
            .stride = {with.whole[0], with.whole[0]},
            .padding = padding_of(with)};
}

// Of three axes: whole: stride, padding, window, dilation, whether padding counts.
pool1d_options pool1_of(const attributes& with) {
    return {.pool_size = with.whole[2],
            .stride = with.whole[0],
            .padding = padding_of(with),
            .dilation = with.whole[3],
            .count_include_pad = with.whole[4] != 0};
}
array widened(const array& a) {
    extents dims = a.dims;
    dims.insert(dims.begin() + 1, 1);
    return array(dims, a.values);
}

template <class F>
operation pooling1(const char* name, bool average, F f) {
    operation row = make_operation<double>(name, f);
    row.weight = 2;
    row.draw = [average](choices& random, const std::vector<extents>& x, attributes& with) {
        with.whole = {random.whole(0, 3), random.chance(0.5), random.whole(1, 3), random.chance(0.2) ? 2 : 1,
                      average && random.chance(0.3)};
        // A dilated window may see nothing of a short image, and is minus infinity then.
        return x[0].size() == 3 && (with.whole[3] == 1 || x[0][1] > 4);
    };
    row.source = [name](const std::vector<std::string>& x, const attributes& with) {
        return std::string(name) + "(" + x[0] + ", {.pool_size = " + std::to_string(with.whole[2]) +
               ", .stride = " + std::to_string(with.whole[0]) + ", .padding = " + padding_text(with) +
               ", .dilation = " + std::to_string(with.whole[3]) +
               ", .count_include_pad = " + (with.whole[4] != 0 ? "true" : "false") + "})";
    };
    row.reference = [average](const std::vector<array>& x, const attributes& with) {
        const std::int64_t stride = with.whole[0] != 0 ? with.whole[0] : with.whole[2];
        const testing::window w{stride, with.whole[3], 0, 0, with.whole[1] != 0};
        const auto taps = static_cast<real>(with.whole[2]);
        const auto of = [&](const std::vector<real>& v) {
            return !average ? testing::max_of(v) : with.whole[4] != 0 ? testing::sum_of(v) / taps : testing::mean_of(v);
        };
        array y = testing::pool(widened(x[0]), 1, with.whole[2], {}, w, of);
        y.dims.erase(y.dims.begin() + 1);
        return y;
    };
    return row;
}

template <class F>
operation global_pooling(const char* name, std::size_t rank, F f) {
    operation row = make_operation<double>(name, f);
    row.splits_ties = std::string(name).find("max") != std::string::npos;
    row.draw = [rank](choices& random, const std::vector<extents>& x, attributes& with) {
        with.whole = {random.chance(0.5)};
        return x[0].size() == rank;
    };
    row.source = [name](const std::vector<std::string>& x, const attributes& with) {
        return std::string(name) + "(" + x[0] + ", {.keepdims = " + (with.whole[0] != 0 ? "true" : "false") + "})";
    };
    row.reference = [average = !row.splits_ties](const std::vector<array>& x, const attributes& with) {
        std::vector<int> spatial{1};
        if (x[0].dims.size() == 4) spatial.push_back(2);
        return testing::fold(x[0], spatial, with.whole[0] != 0, average ? testing::mean_of : testing::max_of);
    };
    return row;
}

// Transposed: the kernel is [taps, out of a group, in], whole: stride, padding, dilation, groups.
conv2d_transpose_options transpose2(const attributes& with) {
    return {.stride = {with.whole[0], with.whole[0]},
            .padding = padding_of(with),
            .dilation = {with.whole[2], 1},
            .groups = with.whole[3]};
}
conv1d_transpose_options transpose1(const attributes& with) {
    return {.stride = with.whole[0], .padding = padding_of(with), .dilation = with.whole[2], .groups = with.whole[3]};
}

// Every input times the kernel is added where a convolution of the result would read it.
array transposed_reference(const std::vector<array>& operands, const attributes& with) {
    const bool flat = operands[0].dims.size() == 3;
    array x = operands[0], w = operands[1];
    if (flat) x = widened(x), w.dims.insert(w.dims.begin(), 1);
    const testing::window across{with.whole[0], flat ? with.whole[2] : 1, 0, 0, with.whole[1] != 0};
    testing::window down{with.whole[0], with.whole[2], 0, 0, with.whole[1] != 0};
    if (flat) down = {};
    const auto length = [](const testing::window& v, std::int64_t n, std::int64_t taps) {
        return n * v.stride + (v.same ? 0 : std::max<std::int64_t>(v.span(taps) - v.stride, 0));
    };
    const std::int64_t h = length(down, x.dims[1], w.dims[0]), v = length(across, x.dims[2], w.dims[1]);
    const std::int64_t top = down.front(h, w.dims[0]), left = across.front(v, w.dims[1]);
    const std::int64_t groups = with.whole[3], own = x.dims[3] / groups;
    array y({x.dims[0], h, v, w.dims[2] * groups});
    for (std::int64_t i = 0; i < x.size(); ++i) {
        const extents at = testing::unravel(i, x.dims);
        for (std::int64_t k = 0; k < w.size() / std::max<std::int64_t>(w.dims[3], 1); ++k) {
            const extents tap = testing::unravel(k, {w.dims[0], w.dims[1], w.dims[2]});
            const std::int64_t r = at[1] * down.stride + tap[0] * down.dilation - top;
            const std::int64_t s = at[2] * across.stride + tap[1] * across.dilation - left;
            if (r < 0 || r >= h || s < 0 || s >= v) continue;
            y.at({at[0], r, s, at[3] / own * w.dims[2] + tap[2]}) += x[i] * w.at({tap[0], tap[1], tap[2], at[3]});
        }
    }
    if (flat) y.dims.erase(y.dims.begin() + 1);
    return y;
}

bool transposed_partner(choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
    const extents& x = before[0];
    if (x.size() < 3 || x.size() > 4 || x.back() == 0) return false;
    for (std::size_t i = 1; i + 1 < x.size(); ++i) dims.push_back(random.whole(1, 3));
    dims.push_back(random.whole(1, 3));
    dims.push_back(x.back());
    return true;
}

bool draw_transposed(choices& random, const std::vector<extents>& x, attributes& with) {
    if (x[0].size() != x[1].size() || x[0].back() != x[1].back()) return false;
    const std::int64_t groups = random.chance(0.3) ? random.whole(1, 3) : 1;
    with.whole = {random.whole(1, 2), random.chance(0.5), random.chance(0.25) ? 2 : 1, groups};
    return x[0].back() > 0 && x[0].back() % groups == 0;
}

bool depthwise_partner(choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
    const extents& x = before[0];
    if (x.size() < 3 || x.size() > 4 || x.back() == 0) return false;
    for (std::size_t i = 1; i + 1 < x.size(); ++i) dims.push_back(random.whole(1, 3));
    dims.push_back(x.back());
    dims.push_back(random.whole(1, 2));
    return true;
}

// Groups follow from the kernel; the option is not looked at.
bool draw_depthwise(choices& random, const std::vector<extents>& x, attributes& with) {
    with.whole = {random.whole(1, 2), random.chance(0.5), random.chance(0.25) ? 2 : 1, 1};
    return x[0].size() == x[1].size() && x[0].back() == x[1][x[1].size() - 2];
}

array depthwise_reference(const std::vector<array>& x, const attributes& with) {
    array w = x[1];
    const std::size_t last = w.dims.size() - 1;
    w.dims[last] *= w.dims[last - 1];
    attributes grouped = with;
    grouped.whole[3] = std::exchange(w.dims[last - 1], 1);
    return reference_of({x[0], w}, grouped);
}

template <class F>
operation convolving(const char* name, std::size_t rank, F f) {
    operation row = make_operation<double, double>(name, f);
    const bool transposed = std::string(name).find("transpose") != std::string::npos;
    row.domains = {{-20, 20}, {-20, 20}};
    row.weight = 2;
    row.partner = transposed ? transposed_partner : depthwise_partner;
    row.draw = [rank, transposed](choices& random, const std::vector<extents>& x, attributes& with) {
        return x[0].size() == rank && x[1].size() == rank &&
               (transposed ? draw_transposed : draw_depthwise)(random, x, with);
    };
    row.source = [name, rank](const std::vector<std::string>& x, const attributes& with) {
        return std::string(name) + "(" + x[0] + ", " + x[1] + ", " + (rank == 4 ? text2(with) : text1(with)) + ")";
    };
    row.reference = transposed ? transposed_reference : depthwise_reference;
    return row;
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
        row.weight = row.name == "conv2d_relu" ? 9 : 4;
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
    r.push_back(pooling1("max_pooling1d", false,
                         [](const auto& x, const attributes& with) { return max_pooling1d(x, pool1_of(with)); }));
    r.push_back(pooling1("average_pooling1d", true,
                         [](const auto& x, const attributes& with) { return average_pooling1d(x, pool1_of(with)); }));
    r.push_back(global_pooling("global_average_pooling2d", 4, [](const auto& x, const attributes& with) {
        return global_average_pooling2d(x, {.keepdims = with.whole[0] != 0});
    }));
    r.push_back(global_pooling("global_max_pooling2d", 4, [](const auto& x, const attributes& with) {
        return global_max_pooling2d(x, {.keepdims = with.whole[0] != 0});
    }));
    r.push_back(global_pooling("global_max_pooling1d", 3, [](const auto& x, const attributes& with) {
        return global_max_pooling1d(x, {.keepdims = with.whole[0] != 0});
    }));
    r.push_back(convolving("conv2d_transpose", 4, not_mapped{[](const auto& x, const auto& w, const attributes& with) {
                               return conv2d_transpose(x, w, transpose2(with));
                           }}));
    r.push_back(convolving("conv1d_transpose", 3, not_mapped{[](const auto& x, const auto& w, const attributes& with) {
                               return conv1d_transpose(x, w, transpose1(with));
                           }}));
    r.push_back(convolving("depthwise_conv2d", 4, [](const auto& x, const auto& w, const attributes& with) {
        return depthwise_conv2d(x, w, options2(with));
    }));
    r.push_back(convolving("depthwise_conv1d", 3, [](const auto& x, const auto& w, const attributes& with) {
        return depthwise_conv1d(x, w, options1(with));
    }));
    return r;
}

} // namespace tapegraph::fuzz
