#include <operations/windows.hpp>

/// Transposed, depthwise and separable convolutions. Lengths are Keras's: in * stride + max(span - stride, 0) for valid,
/// in * stride for same; with output_padding (in - 1) * stride + span - 2 * pad + output_padding, pad = span / 2 for same.

namespace tapegraph::testing {

namespace transposed_convolutions {

std::int64_t length(const window_words& v, int axis, const window& w, std::int64_t n, std::int64_t taps) {
    if (v.output_padding[axis] == default_output)
        return n * w.stride + (w.same ? 0 : std::max<std::int64_t>(w.span(taps) - w.stride, 0));
    const std::int64_t lost = w.same ? w.span(taps) / 2 * 2 : w.before + w.after;
    return (n - 1) * w.stride + w.span(taps) - lost + v.output_padding[axis];
}

// Every input times the kernel [taps, out of a group, in] is added where a convolution of the result would read it.
array transposed_reference(const std::vector<array>& operands, const attributes& with) {
    return in_two_dimensions(operands[0], with, [&](const array& x, window_words v) {
        const array k = filter(operands[1]);
        if (operands[0].dims.size() == 3) v.output_padding[0] = default_output, v.padding.top = v.padding.bottom = 0;
        const window down = along_axis(v, 0, k.dims[0]), across = along_axis(v, 1, k.dims[1]);
        const std::int64_t h = length(v, 0, down, x.dims[1], k.dims[0]), w = length(v, 1, across, x.dims[2], k.dims[1]);
        const std::int64_t top = down.front(h, k.dims[0]), left = across.front(w, k.dims[1]);
        const std::int64_t out = k.dims[2], own = x.dims[3] / v.groups;
        array y({x.dims[0], h, w, out * v.groups});
        for (std::int64_t i = 0; i < x.size(); ++i) {
            const extents at = unravel(i, x.dims);
            for (std::int64_t p = 0; p < k.dims[0]; ++p)
                for (std::int64_t q = 0; q < k.dims[1]; ++q) {
                    const std::int64_t r = at[1] * down.stride + p * down.dilation - top;
                    const std::int64_t s = at[2] * across.stride + q * across.dilation - left;
                    if (r < 0 || r >= h || s < 0 || s >= w) continue;
                    for (std::int64_t o = 0; o < out; ++o)
                        y.at({at[0], r, s, at[3] / own * out + o}) += x[i] * k.at({p, q, o, at[3]});
                }
        }
        return y;
    });
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
    const std::int64_t groups = random.chance(0.3) ? random.whole(1, 3) : 1;
    with = words({.stride = drawn_pair(random, 1, 2),
                  .padding = drawn_padding(random, false, false),
                  .dilation = {random.chance(0.25) ? 2 : 1, random.chance(0.15) ? 2 : 1},
                  .groups = groups});
    return x[0].size() == x[1].size() && x[0].back() == x[1].back() && x[0].back() > 0 && x[0].back() % groups == 0;
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
    with = words({.stride = drawn_pair(random, 1, 2),
                  .padding = drawn_padding(random, true, x[0].size() == 3),
                  .dilation = {random.chance(0.25) ? 2 : 1, random.chance(0.15) ? 2 : 1}});
    return x[0].size() == x[1].size() && x[0].back() == x[1][x[1].size() - 2];
}
// A kernel [taps, in, m] is one of `in` groups.
array depthwise_reference(const std::vector<array>& x, const attributes& with) {
    array w = x[1];
    const std::size_t last = w.dims.size() - 1;
    w.dims[last] *= w.dims[last - 1];
    window_words v = window_of(with);
    v.groups = std::exchange(w.dims[last - 1], 1);
    return convolution_reference({x[0], w}, words(v));
}
array separable_reference(const std::vector<array>& x, const attributes& with) {
    return convolution_reference({depthwise_reference(x, with), x[2]}, words({}));
}

template <class T, class F>
operation convolving(const char* name, std::size_t rank, F f, std::vector<row> rows) {
    operation made = make_operation<T, T>(name, f, std::move(rows));
    const bool transposed = made.name.find("transpose") != std::string::npos;
    made.domains = {{-20, 20}, {-20, 20}};
    made.weight = 2;
    made.partner = transposed ? transposed_partner : depthwise_partner;
    made.draw = [rank, transposed](choices& random, const std::vector<extents>& x, attributes& with) {
        return x[0].size() == rank && x[1].size() == rank &&
               (transposed ? draw_transposed : draw_depthwise)(random, x, with);
    };
    made.source = [name, rank](const std::vector<std::string>& x, const attributes& with) {
        return std::string(name) + "(" + x[0] + ", " + x[1] + ", " +
               options_text(with, rank, {"stride", "padding", "dilation", "groups"}) + ")";
    };
    made.reference = transposed ? transposed_reference : depthwise_reference;
    return made;
}

std::vector<operation> transposed() {
    const padding same = padding::same();
    return {convolving<floating>(
                "conv2d_transpose", 4, not_mapped{[](const auto& x, const auto& w, const attributes& with) {
                    return conv2d_transpose(x, w, options_from<conv2d_transpose_options>(with));
                }},
                {of_window({.stride = {2, 3}}, {{{1, 2, 3, 1}, {2, 2, 1, 1}},
                                                {{2, 3, 2, 3}, {3, 4, 2, 3}},
                                                {{1, 1, 1, 5}, {1, 1, 7, 5}},
                                                {{2, 5, 6, 7}, {3, 3, 11, 7}},
                                                {{0, 2, 3, 2}, {3, 3, 2, 2}}}),
                 of_window({.stride = {2, 1}, .padding = same},
                           {{{1, 2, 3, 2}, {3, 3, 2, 2}}, {{2, 3, 2, 1}, {2, 4, 3, 1}}, {{1, 3, 4, 2}, {1, 1, 1, 2}}}),
                 of_window({.stride = {2, 3}, .padding = same, .output_padding = {0, 2}},
                           {{{1, 2, 3, 2}, {3, 3, 2, 2}}, {{2, 1, 1, 3}, {3, 3, 1, 3}}}),
                 of_window({.stride = {2, 1},
                            .padding = padding::amounts(1, 0, 0, 2),
                            .dilation = {1, 2},
                            .groups = 2,
                            .output_padding = {1, 0}},
                           {{{1, 2, 3, 2}, {3, 2, 1, 2}}, {{2, 3, 4, 4}, {2, 3, 3, 4}}}),
                 of_window({}, {{{1, 3, 2, 2}, {2, 3, 2, 2}}})}),
            convolving<floating>(
                "conv1d_transpose", 3, not_mapped{[](const auto& x, const auto& w, const attributes& with) {
                    return conv1d_transpose(x, w, options_from<conv1d_transpose_options>(with));
                }},
                {of_window({.stride = 2, .dilation = 2},
                           {{{1, 3, 2}, {3, 2, 2}}, {{2, 5, 3}, {1, 1, 3}}, {{1, 1, 1}, {4, 5, 1}}}),
                 of_window({.stride = 2, .padding = padding::amounts(0, 0, 1, 2), .groups = 2, .output_padding = 1},
                           {{{1, 3, 2}, {3, 2, 2}}, {{2, 4, 4}, {4, 1, 4}}}),
                 of_window({}, {{{1, 3, 2}, {2, 2, 2}}})})};
}

std::vector<operation> depthwise() {
    return {
        convolving<floating>(
            "depthwise_conv2d", 4,
            [](const auto& x, const auto& w, const attributes& with) { return depthwise_conv2d(x, w, options2(with)); },
            {of_window({.stride = 2, .padding = padding::same()},
                       {{{1, 3, 4, 1}, {2, 2, 1, 1}}, {{2, 4, 3, 3}, {3, 3, 3, 2}}, {{1, 5, 5, 17}, {3, 3, 17, 1}}})}),
        convolving<double>(
            "depthwise_conv1d", 3,
            [](const auto& x, const auto& w, const attributes& with) { return depthwise_conv1d(x, w, options1(with)); },
            {of_window({.padding = padding::causal()}, {{{1, 4, 3}, {3, 3, 2}}})})};
}

std::vector<operation> separable() {
    std::vector<operation> made{
        make_operation<double, double, double>(
            "separable_conv2d", not_drawn{[](const auto& x, const auto& w, const auto& p, const attributes& with) {
                return separable_conv2d(x, w, p, options2(with));
            }},
            {of_window({.padding = padding::same()}, {{{1, 3, 3, 2}, {2, 3, 2, 2}, {1, 1, 4, 3}}})}),
        make_operation<double, double, double>(
            "separable_conv1d", not_drawn{[](const auto& x, const auto& w, const auto& p, const attributes& with) {
                return separable_conv1d(x, w, p, options1(with));
            }},
            {of_window({}, {{{1, 4, 2}, {2, 2, 1}, {1, 2, 3}}})})};
    for (operation& each : made) each.reference = separable_reference;
    return made;
}

} // namespace transposed_convolutions

std::vector<operation> transposed_operations() {
    using namespace transposed_convolutions;
    std::vector<operation> made;
    for (const auto& part : {transposed(), depthwise(), separable()}) made.insert(made.end(), part.begin(), part.end());
    return made;
}

} // namespace tapegraph::testing
