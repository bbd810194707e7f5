#include <operations/windows.hpp>

/// Convolutions. Convolution's full matrix of strides, paddings, dilations and groups, with integers, is
/// tests/cpu/convolution_test.cpp; here each geometry also goes through tape, first and second derivative.

namespace tapegraph::testing {

namespace convolutions {

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

// Groups follow from the kernel.
bool draw_window(choices& random, const std::vector<extents>& x, attributes& with) {
    const std::size_t rank = x[0].size();
    if (x[1].size() != rank || (x.size() == 3 && x[2] != extents{x[1].back()})) return false;
    const std::int64_t channels = x[0].back(), own = x[1][rank - 2];
    if (own == 0 || channels % own != 0) return false;
    window_words v{.stride = drawn_pair(random, 1, 2),
                   .padding = drawn_padding(random, true, rank == 3),
                   .groups = channels / own};
    if (random.chance(0.25)) v.dilation = random.chance(0.5) ? height_width(2) : height_width(2, 1);
    with = words(v);
    return v.groups > 0 && x[1].back() % v.groups == 0;
}

operation convolving(operation made, const std::string& name, std::size_t rank) {
    made.weight = 4;
    for (domain& d : made.domains) d = {-20, 20};
    made.partner = kernel_partner;
    made.draw = [rank](choices& random, const std::vector<extents>& x, attributes& with) {
        return x[0].size() == rank && draw_window(random, x, with);
    };
    made.source = [name, rank](const std::vector<std::string>& x, const attributes& with) {
        return name + "(" + x[0] + ", " + x[1] + ", " +
               options_text(with, rank, {"stride", "padding", "dilation", "groups"}) + ")";
    };
    made.reference = convolution_reference;
    return made;
}

operation in_images() {
    return convolving(
        make_operation<floating, floating>(
            "conv2d", [](const auto& x, const auto& w, const attributes& with) { return conv2d(x, w, options2(with)); },
            {of_window({}, {{{1, 3, 3, 1}, {2, 2, 1, 1}},
                            {{2, 4, 3, 2}, {3, 2, 2, 1}},
                            {{1, 1, 1, 3}, {1, 1, 3, 2}},
                            {{2, 7, 11, 5}, {3, 3, 5, 17}},
                            {{0, 3, 3, 1}, {2, 2, 1, 1}}}),
             of_window({.stride = {2, 1}, .padding = padding::same()},
                       {{{1, 4, 3, 1}, {3, 2, 1, 2}}, {{1, 5, 3, 1}, {2, 2, 1, 1}}, {{1, 2, 2, 1}, {5, 5, 1, 1}}}),
             of_window({.stride = {1, 2}, .padding = padding::amounts(1, 0, 0, 2), .dilation = {2, 1}, .groups = 2},
                       {{{1, 4, 3, 2}, {2, 2, 1, 4}}, {{2, 5, 4, 6}, {3, 2, 3, 4}}}),
             of_window({.padding = padding::same(), .groups = 3}, // depthwise
                       {{{1, 3, 3, 3}, {3, 3, 1, 3}}, {{2, 3, 2, 3}, {2, 2, 1, 6}}}),
             // Kernels larger than the image, single taps, primes of channels, strides beyond the kernel.
             of_window({.stride = 3},
                       {{{2, 7, 4, 3}, {1, 1, 3, 5}}, {{1, 1, 1, 1}, {1, 1, 1, 1}}, {{0, 7, 4, 3}, {1, 1, 3, 5}}}),
             of_window({.stride = {2, 1}, .padding = padding::amounts(3, 2, 1, 4)},
                       {{{2, 2, 1, 2}, {5, 4, 2, 3}}, {{1, 1, 2, 1}, {6, 7, 1, 1}}, {{2, 6, 5, 13}, {3, 3, 13, 7}}}),
             of_window({.stride = {1, 2}, .padding = padding::same(), .dilation = {3, 2}},
                       {{{1, 5, 6, 2}, {2, 3, 2, 3}}, {{1, 1, 1, 1}, {3, 3, 1, 2}}})}),
        "conv2d", 4);
}

operation in_lines() {
    return convolving(
        make_operation<floating, floating>(
            "conv1d", [](const auto& x, const auto& w, const attributes& with) { return conv1d(x, w, options1(with)); },
            {of_window({}, {{{1, 5, 1}, {2, 1, 1}}, {{2, 7, 3}, {3, 3, 2}}, {{3, 37, 5}, {4, 5, 9}}}),
             of_window({.padding = padding::causal(), .dilation = 2}, {{{1, 6, 2}, {3, 2, 2}}, {{2, 2, 1}, {3, 1, 1}}}),
             of_window({.stride = 3, .padding = padding::causal(), .groups = 2},
                       {{{2, 7, 4}, {4, 2, 6}}, {{1, 1, 2}, {4, 1, 2}}, {{1, 9, 2}, {4, 1, 4}}}),
             of_window({.stride = 3, .padding = padding::same()}, {{{1, 8, 2}, {5, 2, 1}}, {{1, 1, 1}, {2, 1, 1}}}),
             of_window({.stride = 2, .groups = 2}, {{{2, 7, 6}, {3, 3, 4}}, {{1, 2, 2}, {2, 1, 2}}})}),
        "conv1d", 3);
}

// What the pass for epilogues looks for; random neighbours alone would seldom spell it.
operation with_epilogue() {
    operation made =
        convolving(make_operation<double, double, double>(
                       "conv2d_relu", [](const auto& x, const auto& w, const auto& b,
                                         const attributes& with) { return relu(conv2d(x, w, options2(with)) + b); }),
                   "conv2d", 4);
    made.weight = 9;
    made.source = [product = made.source](const std::vector<std::string>& x, const attributes& with) {
        return "relu(" + product(x, with) + " + " + x[2] + ")";
    };
    made.reference = [](const std::vector<array>& x, const attributes& with) {
        return map({convolution_reference(x, with), x[2]},
                   [](const real* v) { return std::max(v[0] + v[1], real(0)); });
    };
    return made;
}

} // namespace convolutions

std::vector<operation> convolution_operations() {
    using namespace convolutions;
    return {in_images(), in_lines(), with_epilogue()};
}

} // namespace tapegraph::testing
