#include <operations/windows.hpp>

/// Pooling.

namespace tapegraph::testing {

namespace pools {

using taps = std::vector<real>;

row summed(const window_words& v, shape_list shapes, double order = 0) {
    row made = of_window(v, std::move(shapes));
    if (order != 0) made.with.real = {order};
    made.why = "sums";
    return made;
}

/// `of` makes a number of what a window sees and of the attributes.
template <class F, class Of>
operation pooling(const char* name, std::size_t rank, F f, const Of& of, std::vector<row> rows) {
    operation made = make_operation<floating>(name, f, std::move(rows));
    made.weight *= 2;
    made.draw = [rank, average = made.name.find("average") == 0](choices& random, const std::vector<extents>& x,
                                                                 attributes& with) {
        with = words({.stride = drawn_pair(random, 0, 3),
                      .padding = drawn_padding(random, false, false),
                      .dilation = random.chance(0.2) ? 2 : 1,
                      .pool_size = {random.whole(1, 3), random.whole(1, 3)},
                      .count_include_pad = average && random.chance(0.3)});
        // A dilated window may see nothing of a small image, and is minus infinity then.
        return x[0].size() == rank && (with.whole[8] == 1 || (x[0][1] > 4 && (rank == 3 || x[0][2] > 4)));
    };
    made.source = [name, rank](const std::vector<std::string>& x, const attributes& with) {
        return std::string(name) + "(" + x[0] + ", " + (with.real.empty() ? "" : number_text(with.real[0]) + ", ") +
               options_text(with, rank, {"pool_size", "stride", "padding", "dilation", "count_include_pad"}) + ")";
    };
    made.reference = [of](const std::vector<array>& x, const attributes& with) {
        return in_two_dimensions(x[0], with, [&](const array& images, window_words v) {
            for (int axis : {0, 1})
                if (v.stride[axis] == 0) v.stride[axis] = v.pool_size[axis];
            return pool(images, v.pool_size[0], v.pool_size[1], along_axis(v, 0, v.pool_size[0]),
                        along_axis(v, 1, v.pool_size[1]), [&](const taps& seen) { return of(seen, v, with); });
        });
    };
    return made;
}
real largest(const taps& seen, const window_words&, const attributes&) { return max_of(seen); }
real average(const taps& seen, const window_words& v, const attributes&) {
    return v.count_include_pad ? sum_of(seen) / static_cast<real>(v.pool_size[0] * v.pool_size[1]) : mean_of(seen);
}
real length(const taps& seen, const window_words&, const attributes& with) {
    const real p = static_cast<real>(with.real[0]);
    real sum = 0;
    for (const real x : seen) sum += std::pow(std::abs(x), p);
    return std::pow(sum, 1 / p);
}

std::vector<operation> in_images() {
    const padding same = padding::same();
    row beyond_zero = summed({.stride = {1, 2}, .padding = same, .pool_size = {3, 2}},
                             {{{1, 4, 3, 2}}, {{1, 1, 1, 1}}, {{2, 7, 5, 3}}}, 3.5);
    beyond_zero.domains = {positive};
    return {
        pooling(
            "max_pooling2d", 4,
            [](const auto& x, const attributes& with) { return max_pooling2d(x, options_from<pool2d_options>(with)); },
            largest,
            {summed({.stride = 0}, {{{1, 2, 2, 1}}, {{2, 5, 4, 3}}, {{1, 13, 9, 17}}}),
             summed({.stride = {2, 1}, .padding = same, .pool_size = {3, 2}},
                    {{{1, 4, 3, 2}}, {{1, 1, 1, 1}}, {{2, 7, 5, 3}}}),
             summed({.stride = {1, 2}, .padding = padding::amounts(1, 0, 2, 3), .dilation = 2, .pool_size = {2, 3}},
                    {{{1, 4, 3, 2}}, {{2, 7, 5, 19}}})}),
        pooling("average_pooling2d", 4,
                [](const auto& x, const attributes& with) {
                    return average_pooling2d(x, options_from<pool2d_options>(with));
                },
                average,
                {summed({.stride = 0, .pool_size = {2, 3}}, {{{1, 2, 3, 1}}, {{2, 5, 7, 3}}, {{1, 13, 9, 17}}}),
                 summed({.stride = {1, 2}, .padding = same, .pool_size = {3, 2}}, {{{1, 4, 3, 2}}, {{1, 1, 1, 1}}}),
                 summed({.stride = {2, 1}, .padding = same, .dilation = {1, 3}},
                        {{{1, 4, 5, 2}}, {{2, 3, 7, 17}}, {{0, 3, 7, 2}}}),
                 summed({.stride = {2, 1},
                         .padding = padding::amounts(1, 2, 1, 1),
                         .pool_size = {3, 2},
                         .count_include_pad = true},
                        {{{1, 4, 3, 2}}, {{1, 1, 1, 1}}, {{2, 5, 7, 17}}})}),
        pooling("lp_pooling2d", 4, not_drawn{[](const auto& x, const attributes& with) {
                    return lp_pooling2d(x, with.real[0], options_from<pool2d_options>(with));
                }},
                length,
                {summed({.stride = 0, .pool_size = {2, 3}}, {{{1, 2, 3, 1}}, {{2, 5, 7, 3}}, {{1, 13, 9, 17}}}, 2),
                 beyond_zero})};
}

std::vector<operation> in_lines() {
    const padding one = padding::amounts(0, 0, 1, 1);
    return {pooling("max_pooling1d", 3,
                    [](const auto& x, const attributes& with) {
                        return max_pooling1d(x, options_from<pool1d_options>(with));
                    },
                    largest,
                    {summed({.stride = 2, .padding = padding::same(), .pool_size = 3},
                            {{{1, 5, 1}}, {{2, 8, 3}}, {{1, 1, 17}}}),
                     summed({.stride = 0}, {{{1, 5, 1}}, {{1, 8, 3}}}),
                     summed({.stride = 1, .dilation = 2, .pool_size = 3}, {{{1, 5, 1}}, {{1, 8, 3}}})}),
            pooling("average_pooling1d", 3,
                    [](const auto& x, const attributes& with) {
                        return average_pooling1d(x, options_from<pool1d_options>(with));
                    },
                    average,
                    {summed({.stride = 0, .padding = one, .pool_size = 3}, {{{1, 4, 1}}, {{2, 11, 3}}}),
                     summed({.stride = 0, .padding = one, .pool_size = 3, .count_include_pad = true},
                            {{{1, 4, 1}}, {{2, 11, 3}}})}),
            pooling("lp_pooling1d", 3, not_drawn{[](const auto& x, const attributes& with) {
                        return lp_pooling1d(x, with.real[0], options_from<pool1d_options>(with));
                    }},
                    length,
                    {summed({.stride = 1, .dilation = 2, .pool_size = 3}, {{{1, 5, 1}}, {{1, 8, 3}}}, 2),
                     summed({.stride = 2, .padding = one, .pool_size = 3}, {{{1, 5, 1}}, {{2, 11, 3}}}, 4)})};
}

// whole: keepdims.
template <class F>
operation of_everything(const char* name, std::size_t rank, F f, real (*of)(const taps&), bool keepdims,
                        shape_list shapes) {
    operation made = make_operation<floating>(
        name, f, {{.with = {{keepdims}, {}}, .shapes = std::move(shapes), .ulps = 32, .floor = 4, .why = "sums"}});
    made.splits_ties = of == &max_of;
    made.draw = [rank](choices& random, const std::vector<extents>& x, attributes& with) {
        with.whole = {random.chance(0.5)};
        return x[0].size() == rank;
    };
    made.source = [name](const std::vector<std::string>& x, const attributes& with) {
        return std::string(name) + "(" + x[0] + ", {.keepdims = " + flag_text(with.whole[0]) + "})";
    };
    made.reference = [of](const std::vector<array>& x, const attributes& with) {
        std::vector<int> spatial{1};
        if (x[0].dims.size() == 4) spatial.push_back(2);
        return fold(x[0], spatial, with.whole[0] != 0, of);
    };
    return made;
}

std::vector<operation> of_whole_images() {
    const shape_list images{{{1, 1, 1, 1}}, {{2, 3, 5, 7}}}, lines{{{1, 1, 1}}, {{2, 5, 3}}};
    return {of_everything(
                "global_max_pooling2d", 4,
                [](const auto& x, const attributes& with) {
                    return global_max_pooling2d(x, keepdims_if{with.whole[0] != 0});
                },
                max_of, false, images),
            of_everything(
                "global_average_pooling2d", 4,
                [](const auto& x, const attributes& with) {
                    return global_average_pooling2d(x, keepdims_if{with.whole[0] != 0});
                },
                mean_of, true, images),
            of_everything(
                "global_max_pooling1d", 3,
                [](const auto& x, const attributes& with) {
                    return global_max_pooling1d(x, keepdims_if{with.whole[0] != 0});
                },
                max_of, false, lines),
            of_everything(
                "global_average_pooling1d", 3,
                [](const auto& x, const attributes& with) {
                    return global_average_pooling1d(x, keepdims_if{with.whole[0] != 0});
                },
                mean_of, false, lines)};
}

} // namespace pools

// Sums of some dozens of numbers of order one.
std::vector<operation> pooling_operations() {
    using namespace pools;
    std::vector<operation> made;
    for (const auto& part : {in_images(), in_lines(), of_whole_images()})
        made.insert(made.end(), part.begin(), part.end());
    return made;
}

} // namespace tapegraph::testing
