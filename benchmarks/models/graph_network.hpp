#pragma once

#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdint>

namespace models {

/// Two layers of a graph network (GraphSAGE, Hamilton et al. 2017, with sums): maps features of
/// nodes [n, 64] to ten logits for each. Edges `from` and `to` [n, 10] are indices of nodes, ten
/// times as many as nodes, in any order. A node's message is the sum over its incoming edges.
struct graph_network {
    static constexpr std::int64_t features = 64, hidden = 64, edges = 10;

    constexpr auto operator()(auto scope, auto nodes, auto from, auto to) const {
        namespace tg = tapegraph;
        const auto layer = [&](const auto& at, const auto& h, std::int64_t units) {
            const auto sent = gather(h, reshape(from, {-1}), 0);
            const auto received = scatter_add(sent, reshape(to, {-1}), tg::shape_of(h), 0);
            return tg::dense(at / "self", h, {.units = units}) +
                   tg::dense(at / "messages", 0.1 * received, {.units = units, .use_bias = false});
        };
        return layer(scope / 1, tg::eval(relu(layer(scope / 0, nodes, hidden))), 10);
    }
};

} // namespace models
