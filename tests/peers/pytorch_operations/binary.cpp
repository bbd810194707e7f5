#include "table.hpp"

#include <tapegraph/nn/losses/all.hpp>

namespace tapegraph::testing {

std::vector<operation> binary_for_pytorch() {
    return {
        TG_TWO("add", x + y),
        TG_TWO("atan2", atan2(x, y)),
        TG_TWO("divide", x / y),
        TG_TWO("elu", elu(x, y)),
        TG_TWO("equal", x == y),
        TG_TWO("floor_divide", floor_divide(x, y)),
        TG_TWO("greater", x > y),
        TG_TWO("greater_equal", x >= y),
        TG_TWO("hypot", hypot(x, y)),
        TG_TWO("leaky_relu", leaky_relu(x, y)),
        TG_TWO("less", x < y),
        TG_TWO("less_equal", x <= y),
        TG_TWO("logical_and", logical_and(x != 0, y != 0)),
        TG_TWO("logical_or", logical_or(x != 0, y != 0)),
        TG_TWO("logical_xor", logical_xor(x != 0, y != 0)),
        TG_TWO("maximum", maximum(x, y)),
        TG_TWO("minimum", minimum(x, y)),
        TG_TWO("multiply", x * y),
        TG_TWO("not_equal", x != y),
        TG_TWO("pow", pow(x, y)),
        TG_TWO("remainder", x % y),
        TG_TWO("squared_difference", squared_difference(x, y)),
        TG_TWO("subtract", x - y),
        TG_THREE("clip", clip(x, y, z)),
        TG_THREE("lerp", lerp(x, y, z)),
        named("where",
              TG_OF(where(x, y, z), TG_TYPES(bool, floating, floating), const auto& x, const auto& y, const auto& z)),
        TG_TWO("mean_squared_error", mean_squared_error{}(x, y)),
        TG_TWO("mean_absolute_error", mean_absolute_error{}(x, y)),
        TG_TWO("huber", huber{.delta = k}(x, y)),
        TG_TWO("sigmoid_cross_entropy", sigmoid_cross_entropy{}(x, y)),
        TG_TWO("softmax_cross_entropy", softmax_cross_entropy{}(x, y)),
        named("sparse_softmax_cross_entropy", TG_OF(sparse_softmax_cross_entropy{}(x, y),
                                                    TG_TYPES(floating, std::int32_t), const auto& x, const auto& y)),
    };
}

} // namespace tapegraph::testing
