#include "table.hpp"

/// Products, convolutions and pooling; channels stand last.

namespace tapegraph::testing {

namespace {

std::string text_of_words(const attributes& with) { return {with.whole.begin(), with.whole.end()}; }
height_width pair_at(const attributes& with, std::size_t word) { return {with.whole[word], with.whole[word + 1]}; }
padding amounts_at(const attributes& with, std::size_t word) {
    return padding::amounts(with.whole[word], with.whole[word], with.whole[word + 1], with.whole[word + 1]);
}
conv2d_options convolved(const attributes& with) {
    return {.stride = pair_at(with, 0),
            .padding = amounts_at(with, 2),
            .dilation = pair_at(with, 4),
            .groups = with.whole[6]};
}
pool2d_options pooled(const attributes& with) {
    return {.pool_size = pair_at(with, 0),
            .stride = pair_at(with, 2),
            .padding = amounts_at(with, 4),
            .dilation = pair_at(with, 6),
            .count_include_pad = with.whole[8] != 0};
}
tensordot_axes pairs_of(const attributes& with) {
    tensordot_axes made(static_cast<int>(with.whole.size() / 2));
    made.named = true;
    for (int i = 0; i < made.count; ++i) {
        made.first[i] = static_cast<std::int8_t>(with.whole[static_cast<std::size_t>(i)]);
        made.second[i] = static_cast<std::int8_t>(with.whole[static_cast<std::size_t>(i + made.count)]);
    }
    return made;
}

} // namespace

std::vector<operation> products_for_pytorch() {
    return {
        TG_TWO("matmul", matmul(x, y)),
        TG_TWO("dot", tapegraph::dot(x, y)),
        TG_TWO("inner", inner(x, y)),
        TG_TWO("outer", outer(x, y)),
        TG_TWO("vdot", vdot(x, y)),
        TG_TWO("tensordot", tensordot(x, y, pairs_of(with))),
        TG_TWO("einsum", einsum(text_of_words(with), x, y)),
        TG_ONE("einsum of one", einsum(text_of_words(with), x)),
        TG_TWO("conv2d", conv2d(x, y, convolved(with))),
        TG_ONE("max_pooling2d", max_pooling2d(x, pooled(with))),
        TG_ONE("average_pooling2d", average_pooling2d(x, pooled(with))),
    };
}

} // namespace tapegraph::testing
