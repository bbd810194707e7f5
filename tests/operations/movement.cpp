#include <operations/builders.hpp>

/// Views and layouts.

namespace tapegraph::testing {

namespace movement {

array reordered(const array& x, const extents& order) {
    extents dims;
    for (std::size_t i = 0; i < order.size(); ++i) dims.push_back(x.dims[axis_in(x.dims, {order, {}}, i)]);
    return picked(x, dims, [&](extents& at) {
        const extents own = at;
        for (std::size_t i = 0; i < at.size(); ++i) at[axis_in(x.dims, {order, {}}, i)] = own[i];
        return true;
    });
}
extents in_order(const array& x) {
    extents order(x.dims.size());
    std::iota(order.begin(), order.end(), 0);
    return order;
}
array with_dims(const array& x, extents dims) { return {std::move(dims), x.values}; }

operation transposed() {
    return one_operand<floating>(
        "transpose",
        [](const auto& x, const attributes& with) {
            if (with.whole.empty()) return transpose(x);
            const std::vector<int> order(with.whole.begin(), with.whole.end());
            return with_list(order, [&](std::initializer_list<int> list) { return transpose(x, list); });
        },
        [](choices& random, const extents& x, attributes& with) {
            for (std::int64_t i = 0; i < rank_of(x); ++i) with.whole.insert(with.whole.begin() + random.whole(0, i), i);
            return rank_of(x) > 1;
        },
        [](const attributes& with) {
            return with.whole.empty() ? "transpose($)" : "transpose($, " + braces(with.whole) + ")";
        },
        [](const array& x, const attributes& with) {
            extents order = in_order(x);
            std::reverse(order.begin(), order.end());
            return reordered(x, with.whole.empty() ? order : with.whole);
        },
        {{.shapes = {{{}}, {{5}}, {{2, 3}}, {{2, 3, 5}}, {{0, 3}}, {{67, 131}}, {{2, 3, 2, 2, 1, 3, 2, 2}}}},
         {.with = {{2, 0, -2}, {}}, .shapes = {{{2, 3, 5}}, {{1, 5, 1}}, {{17, 9, 33}}}}});
}

operation reshaped() {
    return one_operand<floating>(
        "reshape", [](const auto& x, const attributes& with) { return reshape(x, shape_of_words(with.whole)); },
        [](choices& random, const extents& x, attributes& with) {
            // Primes of the count, dealt to a few axes.
            std::int64_t count = count_of(x);
            const std::int64_t rank = random.whole(0, 4);
            if (count == 0) {
                with.whole = {random.whole(0, 3), 0};
                return true;
            }
            with.whole.assign(static_cast<std::size_t>(rank), 1);
            for (std::int64_t p = 2; count > 1; ++p)
                for (; count % p == 0; count /= p) {
                    if (rank == 0) return false;
                    with.whole[static_cast<std::size_t>(random.whole(0, rank - 1))] *= p;
                }
            if (rank > 0 && random.chance(0.4)) with.whole[static_cast<std::size_t>(random.whole(0, rank - 1))] = -1;
            return true;
        },
        [](const attributes& with) { return "reshape($, " + braces(with.whole) + ")"; },
        [](const array& x, const attributes& with) {
            extents dims = with.whole;
            std::int64_t rest = 1;
            for (const std::int64_t d : dims) rest *= d < 0 ? 1 : d;
            for (std::int64_t& d : dims)
                if (d < 0) d = rest == 0 ? 0 : x.size() / rest;
            return with_dims(x, dims);
        },
        {{.with = {{3, -1, 2}, {}}, .shapes = {{{12}}, {{2, 3}}, {{6, 1, 5}}, {{0}}}}});
}

operation broadcast() {
    return one_operand<floating>(
        "broadcast_to",
        [](const auto& x, const attributes& with) { return broadcast_to(x, shape_of_words(with.whole)); },
        [](choices& random, const extents& x, attributes& with) {
            with.whole = x;
            for (std::int64_t& d : with.whole)
                if (d == 1 && random.chance(0.6)) d = random.whole(0, 4);
            for (std::int64_t extra = random.whole(0, 2); extra > 0 && with.whole.size() < 5; --extra)
                with.whole.insert(with.whole.begin(), random.whole(1, 3));
            return true;
        },
        [](const attributes& with) { return "broadcast_to($, " + braces(with.whole) + ")"; },
        [](const array& x, const attributes& with) {
            return map({x, array(with.whole)}, [](const real* v) { return v[0]; });
        },
        {{.with = {{4, 3, 5}, {}}, .shapes = {{{}}, {{1}}, {{5}}, {{3, 1}}, {{4, 3, 5}}, {{4, 1, 1}}, {{4, 1, 5}}}}});
}

// whole: an axis and another, or where it goes to.
bool draw_two_axes(choices& random, const extents& x, attributes& with) {
    if (!draw_axis(random, x, with)) return false;
    with.whole.push_back(random.whole(-rank_of(x), -1));
    return true;
}

std::vector<operation> of_axes() {
    return {one_operand<double>(
                "expand_dims", [](const auto& x, const attributes& with) { return expand_dims(x, axis_of(with)); },
                [](choices& random, const extents& x, attributes& with) {
                    with.whole = {random.whole(-rank_of(x) - 1, rank_of(x))};
                    return x.size() < 5;
                },
                [](const attributes& with) { return "expand_dims($, " + text_of(with.whole[0]) + ")"; },
                [](const array& x, const attributes& with) {
                    extents dims = x.dims;
                    const std::int64_t axis = with.whole[0] + (with.whole[0] < 0 ? rank_of(dims) + 1 : 0);
                    dims.insert(dims.begin() + axis, 1);
                    return with_dims(x, dims);
                },
                {{.with = {{0}, {}}, .shapes = {{{}}, {{3}}, {{2, 0}}}},
                 {.with = {{-1}, {}}, .shapes = {{{}}, {{3}}, {{2, 0}}}}}),
            one_operand<double>(
                "squeeze", [](const auto& x, const attributes& with) { return squeeze(x, axis_of(with)); },
                [](choices& random, const extents& x, attributes& with) {
                    for (int attempt = 0; attempt < 8; ++attempt)
                        if (draw_axis(random, x, with) && x[static_cast<std::size_t>(with.whole[0])] == 1) return true;
                    return false;
                },
                [](const attributes& with) { return "squeeze($, " + text_of(with.whole[0]) + ")"; },
                [](const array& x, const attributes& with) {
                    extents dims = x.dims;
                    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis_in(dims, with)));
                    return with_dims(x, dims);
                },
                {{.with = {{-2}, {}}, .shapes = {{{1, 3}}, {{2, 1, 3}}}}}),
            one_operand<double>(
                "swap_axes",
                [](const auto& x, const attributes& with) { return swap_axes(x, axis_of(with), axis_of(with, 1)); },
                draw_two_axes,
                [](const attributes& with) {
                    return "swap_axes($, " + text_of(with.whole[0]) + ", " + text_of(with.whole[1]) + ")";
                },
                [](const array& x, const attributes& with) {
                    extents order = in_order(x);
                    std::swap(order[axis_in(x.dims, with)], order[axis_in(x.dims, with, 1)]);
                    return reordered(x, order);
                },
                {{.with = {{0, -1}, {}}, .shapes = {{{5}}, {{2, 3}}, {{3, 7, 33}}, {{2, 0, 3}}}}}),
            one_operand<double>(
                "move_axis",
                [](const auto& x, const attributes& with) { return move_axis(x, axis_of(with), axis_of(with, 1)); },
                draw_two_axes,
                [](const attributes& with) {
                    return "move_axis($, " + text_of(with.whole[0]) + ", " + text_of(with.whole[1]) + ")";
                },
                [](const array& x, const attributes& with) {
                    extents order = in_order(x);
                    order.erase(order.begin() + static_cast<std::ptrdiff_t>(axis_in(x.dims, with)));
                    order.insert(order.begin() + static_cast<std::ptrdiff_t>(axis_in(x.dims, with, 1)),
                                 static_cast<std::int64_t>(axis_in(x.dims, with)));
                    return reordered(x, order);
                }),
            one_operand<double>( // numpy.moveaxis(x, [0, 1], [-1, 0])
                "move_axis of two", not_drawn{[](const auto& x, const attributes&) {
                    return move_axis(x, {0, 1}, {-1, 0});
                }},
                nullptr, nullptr,
                [](const array& x, const attributes&) {
                    extents order = in_order(x);
                    order.erase(order.begin());
                    order.push_back(0);
                    return reordered(x, order);
                },
                {{.shapes = {{{2, 3}}, {{2, 3, 5}}, {{2, 3, 5, 7}}, {{1, 2, 1, 2, 1, 2, 1, 3}}}}})};
}

bool always(choices&, const extents&, attributes&) { return true; }

std::vector<operation> of_shapes() {
    return {one_operand<floating>(
                "flatten", [](const auto& x, const attributes&) { return flatten(x); }, always,
                [](const attributes&) { return std::string("flatten($)"); },
                [](const array& x, const attributes&) {
                    if (x.dims.empty()) return with_dims(x, {1, 1});
                    return with_dims(x, {x.dims[0], count_of({x.dims.begin() + 1, x.dims.end()})});
                },
                {{.shapes = {{{3}}, {{2, 3}}, {{2, 3, 5}}, {{2, 0, 5}}}}}),
            one_operand<double>(
                "ravel", [](const auto& x, const attributes&) { return ravel(x); }, always,
                [](const attributes&) { return std::string("ravel($)"); },
                [](const array& x, const attributes&) { return with_dims(x, {x.size()}); },
                {{.shapes = {{{}}, {{2, 3}}, {{2, 0}}}}}),
            one_operand<double>("expand_dims of two axes", not_drawn{[](const auto& x, const attributes&) {
                                    return expand_dims(x, {0, -1});
                                }},
                                nullptr, nullptr,
                                [](const array& x, const attributes&) {
                                    return with_dims(x, {1, x.size(), 1});
                                },
                                {{.shapes = {{{1}}, {{6}}, {{0}}}}}),
            one_operand<double>("squeeze all", not_drawn{[](const auto& x, const attributes&) { return squeeze(x); }},
                                nullptr, nullptr,
                                [](const array& x, const attributes&) {
                                    extents dims = x.dims;
                                    dims.erase(std::remove(dims.begin(), dims.end(), 1), dims.end());
                                    return with_dims(x, dims);
                                },
                                {{.shapes = {{{}}, {{1, 1}}, {{1, 3, 1, 2}}, {{1, 0}}}}}),
            one_operand<double>("reshape a formula to a scalar",
                                not_drawn{[](const auto& x, const attributes&) { return reshape(2 * x, shape{}); }},
                                nullptr, nullptr,
                                [](const array& x, const attributes&) {
                                    return with_dims(map({x}, [](const real* v) { return 2 * *v; }), {});
                                },
                                {{.shapes = {{{1}}, {{1, 1}}, {{}}}}})};
}

} // namespace movement

// Elements are moved, so values are equal; the exceptions add.
std::vector<operation> movement_operations() {
    using namespace movement;
    std::vector<operation> made{transposed(), reshaped(), broadcast()};
    made[0].weight = 2;
    for (const auto& part : {of_axes(), of_shapes()}) made.insert(made.end(), part.begin(), part.end());
    for (operation& each : made) exact(each);
    return made;
}

} // namespace tapegraph::testing
