#pragma once

#include <operations/builders.hpp>

/// The options of convolutions and pooling as words of attributes, and plain loops over windows.

namespace tapegraph::testing {

/// In one dimension the second of two numbers counts, and padding's left and right.
struct window_words {
    height_width stride = 1; ///< pooling: 0 is the window's own
    tapegraph::padding padding{};
    height_width dilation = 1;
    std::int64_t groups = 1;
    height_width pool_size = 2;
    height_width output_padding = default_output;
    bool count_include_pad = false;
};

inline attributes words(const window_words& v) {
    return {{v.stride[0], v.stride[1], static_cast<std::int64_t>(v.padding.mode), v.padding.top, v.padding.bottom,
             v.padding.left, v.padding.right, v.dilation[0], v.dilation[1], v.groups, v.pool_size[0], v.pool_size[1],
             v.output_padding[0], v.output_padding[1], v.count_include_pad},
            {}};
}
inline window_words window_of(const attributes& with) {
    const auto& w = with.whole;
    if (w.size() != 15 || w[2] < 0 || w[2] > 3) throw argument_error("these are not the words of a window");
    return {{w[0], w[1]},   {static_cast<padding_mode>(w[2]), w[3], w[4], w[5], w[6]},
            {w[7], w[8]},   w[9],
            {w[10], w[11]}, {w[12], w[13]},
            w[14] != 0};
}

/// Options from the words, where they differ from the documented defaults; the others are left out, so that
/// the library's defaults are tested, too.
template <class Options>
Options options_from(const attributes& with) {
    const window_words v = window_of(with);
    Options options;
    const auto set = [](auto& option, const height_width& value, std::int64_t by_default) {
        if (value[0] == by_default && value[1] == by_default) return;
        if constexpr (std::is_same_v<decltype(option), height_width&>)
            option = value;
        else
            option = value[1];
    };
    constexpr bool pools = requires { options.pool_size; };
    set(options.stride, v.stride, pools ? 0 : 1);
    set(options.dilation, v.dilation, 1);
    if (v.padding.mode != padding_mode::valid) options.padding = v.padding;
    if constexpr (requires { options.output_padding; }) set(options.output_padding, v.output_padding, default_output);
    if constexpr (requires { options.groups; })
        if (v.groups != 1) options.groups = v.groups;
    if constexpr (pools) {
        set(options.pool_size, v.pool_size, 2);
        if (v.count_include_pad) options.count_include_pad = true;
    }
    return options;
}
inline conv2d_options options2(const attributes& with) { return options_from<conv2d_options>(with); }
inline conv1d_options options1(const attributes& with) { return options_from<conv1d_options>(with); }

/// The options in C++ of an operand of this rank; `named` says which further ones there are.
inline std::string options_text(const attributes& with, std::size_t rank, const std::vector<std::string>& named) {
    const window_words v = window_of(with);
    const auto both = [&](const height_width& of) { return rank == 4 ? braces({of[0], of[1]}) : text_of(of[1]); };
    const auto& [mode, top, bottom, left, right] = v.padding;
    const std::string amounts = braces({top, bottom, left, right});
    const std::string padding = mode == padding_mode::same     ? "same()"
                                : mode == padding_mode::causal ? "causal()"
                                : mode == padding_mode::valid
                                    ? "valid()"
                                    : "amounts(" + amounts.substr(1, amounts.size() - 2) + ")";
    std::string text;
    for (const std::string& name : named)
        text += (text.empty() ? "{." : ", .") + name + " = " +
                (name == "stride"      ? both(v.stride)
                 : name == "padding"   ? "tg::padding::" + padding
                 : name == "dilation"  ? both(v.dilation)
                 : name == "groups"    ? text_of(v.groups)
                 : name == "pool_size" ? both(v.pool_size)
                                       : flag_text(v.count_include_pad));
    return text + "}";
}

/// The window of one spatial axis, 0 or 1, with so many taps.
inline window along_axis(const window_words& v, int axis, std::int64_t taps) {
    const bool first = axis == 0;
    window made{v.stride[axis], v.dilation[axis], first ? v.padding.top : v.padding.left,
                first ? v.padding.bottom : v.padding.right, v.padding.mode == padding_mode::same};
    if (v.padding.mode == padding_mode::causal) made.before = made.span(taps) - 1;
    return made;
}

/// One dimension is two with a height of 1.
inline array image(array x) {
    if (x.dims.size() == 3) x.dims.insert(x.dims.begin() + 1, 1);
    return x;
}
inline array filter(array k) {
    if (k.dims.size() == 3) k.dims.insert(k.dims.begin(), 1);
    return k;
}
/// f of the words, images and kernels in two dimensions.
template <class F>
array in_two_dimensions(const array& x, const attributes& with, const F& f) {
    window_words v = window_of(with);
    if (x.dims.size() == 3) v.stride[0] = v.dilation[0] = v.pool_size[0] = 1, v.padding.top = v.padding.bottom = 0;
    array y = f(image(x), v);
    if (x.dims.size() == 3) y.dims.erase(y.dims.begin() + 1);
    return y;
}

inline array convolution_reference(const std::vector<array>& x, const attributes& with) {
    return in_two_dimensions(x[0], with, [&](const array& images, const window_words& v) {
        const array k = filter(x[1]);
        return convolution(images, k, along_axis(v, 0, k.dims[0]), along_axis(v, 1, k.dims[1]), v.groups);
    });
}

/// Sums of some hundred products of order one.
inline row of_window(const window_words& v, shape_list shapes) {
    return {.with = words(v), .shapes = std::move(shapes), .ulps = 32, .floor = 4, .why = "sums of products"};
}

/// Padding that random programs have.
inline padding drawn_padding(choices& random, bool amounts, bool causal) {
    if (random.chance(0.45)) return padding::same();
    if (causal && random.chance(0.3)) return padding::causal();
    if (!amounts || random.chance(0.7)) return padding::valid();
    const auto some = [&] { return random.whole(0, 2); };
    const std::int64_t top = some(), bottom = some(), left = some(), right = some();
    return causal ? padding::amounts(0, 0, left, right) : padding::amounts(top, bottom, left, right);
}
inline height_width drawn_pair(choices& random, std::int64_t low, std::int64_t high) {
    const std::int64_t both = random.whole(low, high);
    return random.chance(0.7) ? height_width(both) : height_width(both, random.whole(low, high));
}

} // namespace tapegraph::testing
