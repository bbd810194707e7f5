#include "table.hpp"

namespace tapegraph::testing {

namespace {

int axis(const attributes& with, std::size_t word = 0) { return static_cast<int>(with.whole[word]); }
shape dims_from(const attributes& with, std::size_t first) {
    return shape_from(
        std::vector<std::int64_t>(with.whole.begin() + static_cast<std::ptrdiff_t>(first), with.whole.end()));
}
axes axes_at(const attributes& with, std::size_t first, std::size_t count) {
    const auto begin = with.whole.begin() + static_cast<std::ptrdiff_t>(first);
    return axes_of_words(std::vector<int>(begin, begin + static_cast<std::ptrdiff_t>(count)));
}
std::vector<padding_amount> amounts(const attributes& with, std::size_t first) {
    std::vector<padding_amount> made;
    for (std::size_t i = first; i + 1 < with.whole.size(); i += 2) made.push_back({with.whole[i], with.whole[i + 1]});
    return made;
}
std::vector<range> ranges(const attributes& with) { // begin, end, step of each axis
    std::vector<range> made;
    for (std::size_t i = 0; i + 2 < with.whole.size(); i += 3)
        made.emplace_back(with.whole[i], with.whole[i + 1], with.whole[i + 2]);
    return made;
}

#define TG_INDEXED(name, ...)                                                                                          \
    named(name, TG_OF((__VA_ARGS__), TG_TYPES(floating, std::int64_t), const auto& x, const auto& i))

} // namespace

std::vector<operation> movement_for_pytorch() {
    return {
        TG_ONE("reshape", reshape(x, dims_from(with, 0))),
        TG_ONE("ravel", ravel(x)),
        TG_ONE("expand_dims", expand_dims(x, axes_at(with, 0, with.whole.size()))),
        TG_ONE("squeeze", squeeze(x, axes_at(with, 0, with.whole.size()))),
        TG_ONE("transpose", with_list(std::vector<int>(with.whole.begin(), with.whole.end()),
                                      [&](std::initializer_list<int> order) { return transpose(x, order); })),
        TG_ONE("swap_axes", swap_axes(x, axis(with), axis(with, 1))),
        TG_ONE("move_axis", move_axis(x, axes_at(with, 0, with.whole.size() / 2),
                                      axes_at(with, with.whole.size() / 2, with.whole.size() / 2))),
        TG_ONE("broadcast_to", broadcast_to(x, dims_from(with, 0))),
        TG_ONE("slice", with_list(ranges(with), [&](std::initializer_list<range> of) { return slice(x, of); })),
        TG_ONE("take", take(x, with.whole[1], axis(with))),
        TG_ONE("reverse", reverse(x, axes_at(with, 0, with.whole.size()))),
        TG_ONE("pad", with_list(amounts(with, 0),
                                [&](std::initializer_list<padding_amount> of) { return pad(x, of, {.value = k}); })),
        TG_ONE("pad by mode",
               with_list(amounts(with, 1),
                         [&](std::initializer_list<padding_amount> of) {
                             constexpr pad_mode modes[3]{pad_mode::reflect, pad_mode::edge, pad_mode::wrap};
                             return pad(x, of, {.mode = modes[with.whole[0]]});
                         })),
        TG_ONE("tile", with_list(with.whole, [&](std::initializer_list<std::int64_t> of) { return tile(x, of); })),
        TG_ONE("repeat", repeat(x, with.whole[1], axis(with))),
        TG_ONE("roll", roll(x, with.whole[1], axis(with))),
        TG_ONE("tril", tril(x, with.whole[0])),
        TG_ONE("triu", triu(x, with.whole[0])),
        TG_ONE("diag", diag(x, with.whole[0])),
        TG_ONE("diag_part", diag_part(x, with.whole[0])),
        TG_ONE("concat of one", concat({x}, axis(with))),
        TG_TWO("concat of two", concat({x, y}, axis(with))),
        TG_THREE("concat of three", concat({x, y, z}, axis(with))),
        TG_ONE("stack of one", stack({x}, axis(with))),
        TG_TWO("stack of two", stack({x, y}, axis(with))),
        TG_THREE("stack of three", stack({x, y, z}, axis(with))),
        TG_INDEXED("gather", gather(x, i, axis(with))),
        TG_INDEXED("scatter_add", scatter_add(x, i, dims_from(with, 1), axis(with))),
        TG_INDEXED("take_along", take_along(x, i, axis(with))),
        TG_INDEXED("put_along", put_along(x, i, dims_from(with, 1), axis(with))),
        named("one_hot", TG_OF(one_hot<std::int64_t>(i, with.whole[0]), TG_TYPES(std::int64_t), const auto& i)),
    };
}

} // namespace tapegraph::testing
