#include "trained_model.hpp"

#include "../models/graph_network.hpp"

#include <algorithm>

/// A graph network on n nodes and ten times as many random edges, ten classes of nodes, Adam.
int main(int argc, char** argv) {
    using namespace compare;
    using models::graph_network;
    constexpr auto edges = graph_network::edges;
    using ends = tg::spec<std::int32_t, tg::dyn, edges>;
    using inputs = decltype(tg::inputs{tg::input<"nodes">(tg::spec<float, tg::dyn, graph_network::features>{}),
                                       tg::input<"from">(ends{}), tg::input<"to">(ends{})});
    return serve(argc, argv, [](const row& r, bool, const std::string& weights) {
        const auto nodes = [&](std::int64_t first) {
            auto x = tg::tensor<std::int32_t>::uninitialized({r.size, edges});
            for (std::int64_t i = 0; i < x.size(); ++i)
                x.mutable_data()[i] = static_cast<std::int32_t>(std::min<double>(
                    (noise_at(first + i) + 1.0) / 2 * static_cast<double>(r.size), static_cast<double>(r.size - 1)));
            return x;
        };
        return training_of<graph_network, inputs>(
            r, weights, std::tuple(noise({r.size, graph_network::features}, 1), nodes(0), nodes(r.size * edges)),
            in_turns(r.size, 10), tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 1e-3});
    });
}
