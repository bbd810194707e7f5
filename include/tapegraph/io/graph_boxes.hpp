#pragma once

#include <tapegraph/io/graph_nodes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Folds a graph into boxes, one per scope, and places them in layers, for io/graph_picture.hpp.

namespace tapegraph::io::detail {

enum class box_kind { scope, input, output, bend }; // a bend is where an edge passes a layer

struct graph_box {
    box_kind kind = box_kind::scope;
    std::string name;
    std::vector<std::string> lines{};
    std::string gives{}; // shape of the first of its values that another box reads
    double flops = 0;
    std::int64_t parameters = 0;
    int layer = 0;
    double x = 0, y = 0, width = 0, height = 0; // of the centre
};
struct graph_edge {
    int from = 0, to = 0;
    std::vector<int> way{}; // bends between them
    bool back = false;      // against the order of the layers
};
struct graph_boxes {
    std::vector<graph_box> boxes;
    std::vector<graph_edge> edges;
    int scopes = 0; // number of boxes that are not bends
};

/// "f32 [?, 8]"
inline std::string item_shape(const graph_item& item) {
    std::string text = std::string(name_of(item.type)) + " [";
    for (std::size_t i = 0; i < item.shape.size(); ++i)
        text += (i > 0 ? ", " : "") + (item.shape[i] < 0 ? std::string("?") : std::to_string(item.shape[i]));
    return text + "]";
}

/// The first `depth` names of a scope.
inline std::string folded_scope(std::string_view scope, int depth) {
    std::size_t end = 0;
    for (int i = 0; i < depth && end < scope.size(); ++i) {
        const std::size_t next = scope.find('/', end == 0 ? 0 : end + 1);
        end = next == scope.npos ? scope.size() : next;
    }
    return std::string(scope.substr(0, end));
}

/// Folds the forward pass.
template <class = void>
graph_boxes fold_graph(const std::vector<graph_item>& items, int depth) {
    graph_boxes g;
    std::map<std::string, int> places;
    std::vector<int> box_of(items.size(), -1);
    std::vector<std::vector<std::string>> operations;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const graph_item& item = items[i];
        if (item.part != graph_part::forward && item.part != graph_part::loss) continue;
        const bool input = item.op == "Placeholder",
                   output = item.op == "Identity" && item.name.starts_with("outputs/");
        if (input && item.shape.empty()) continue; // a number
        std::string key, name;
        if (input || output) {
            key = item.name;
            name = output ? item.name.substr(8) : item.name;
        } else if (!item.scope.empty()) {
            name = folded_scope(item.scope, depth);
            key = "/" + name;
        } else if (item.part == graph_part::loss) {
            key = "/loss", name = "loss";
        } else if (item.inputs.empty()) {
            continue; // an unused constant
        } else {
            key = item.name, name = item.op;
        }
        const auto [at, made] = places.emplace(key, static_cast<int>(g.boxes.size()));
        if (made) {
            g.boxes.push_back({input ? box_kind::input : output ? box_kind::output : box_kind::scope, name});
            operations.emplace_back();
            if (input) g.boxes.back().lines.push_back(item_shape(item));
        }
        const int box = box_of[i] = at->second;
        graph_box& b = g.boxes[static_cast<std::size_t>(box)];
        b.flops += item.flops;
        if (item.op == "VariableV2") {
            std::int64_t size = 1;
            for (const std::int64_t extent : item.shape) size *= extent;
            b.parameters += size;
        } else if (!input && !output && item.op != "Const" && item.op != "extent") {
            auto& known = operations[static_cast<std::size_t>(box)];
            if (std::find(known.begin(), known.end(), item.op) == known.end()) known.push_back(item.op);
        }
        for (const int operand : item.inputs) {
            const int from = box_of[static_cast<std::size_t>(operand)];
            if (from < 0 || from == box) continue;
            const auto same = [&](const graph_edge& e) { return e.from == from && e.to == box; };
            if (std::any_of(g.edges.begin(), g.edges.end(), same)) continue;
            std::string& gives = g.boxes[static_cast<std::size_t>(from)].gives;
            if (gives.empty()) gives = item_shape(items[static_cast<std::size_t>(operand)]);
            g.edges.push_back({from, box, {}, from > box});
        }
    }
    for (std::size_t b = 0; b < g.boxes.size(); ++b) {
        constexpr std::size_t most = 4;
        const auto& known = operations[b];
        if (known.size() == 1 && known[0] == g.boxes[b].name) continue;
        std::string line;
        for (std::size_t i = 0; i < std::min(most, known.size()); ++i) {
            if (line.size() + known[i].size() > 34) {
                g.boxes[b].lines.push_back(line + ",");
                line.clear();
            }
            line += (line.empty() ? "" : ", ") + known[i];
        }
        if (known.size() > most) line += " and " + std::to_string(known.size() - most) + " more";
        if (!line.empty()) g.boxes[b].lines.push_back(line);
    }
    g.scopes = static_cast<int>(g.boxes.size());
    return g;
}

/// Assigns layers: a box is below all its operands, and inputs are just above their first reader.
/// Long edges get bends.
template <class = void>
void set_layers(graph_boxes& g) {
    // Edges lead from earlier boxes to later ones, except for those that go back.
    for (int box = 0; box < g.scopes; ++box)
        for (const graph_edge& e : g.edges)
            if (!e.back && e.to == box) {
                int& layer = g.boxes[static_cast<std::size_t>(box)].layer;
                layer = std::max(layer, g.boxes[static_cast<std::size_t>(e.from)].layer + 1);
            }
    for (int box = 0; box < g.scopes; ++box) {
        graph_box& b = g.boxes[static_cast<std::size_t>(box)];
        if (b.kind != box_kind::input) continue;
        int first = -1;
        for (const graph_edge& e : g.edges) {
            const int layer = g.boxes[static_cast<std::size_t>(e.to)].layer;
            if (e.from == box && !e.back && (first < 0 || layer < first)) first = layer;
        }
        if (first > 0) b.layer = first - 1;
    }
    for (graph_edge& e : g.edges) {
        if (e.back) continue;
        const int last = g.boxes[static_cast<std::size_t>(e.to)].layer;
        for (int layer = g.boxes[static_cast<std::size_t>(e.from)].layer + 1; layer < last; ++layer) {
            e.way.push_back(static_cast<int>(g.boxes.size()));
            graph_box bend{box_kind::bend, ""};
            bend.layer = layer;
            g.boxes.push_back(std::move(bend));
        }
    }
}

/// Computes x and y: each layer is sorted by and moved towards the mean of its neighbours, down and
/// up again.
template <class = void>
void set_places(graph_boxes& g, double gap, double between) {
    std::vector<std::vector<int>> layers, above(g.boxes.size()), below(g.boxes.size());
    for (std::size_t b = 0; b < g.boxes.size(); ++b) {
        const auto layer = static_cast<std::size_t>(g.boxes[b].layer);
        if (layers.size() <= layer) layers.resize(layer + 1);
        layers[layer].push_back(static_cast<int>(b));
    }
    for (const graph_edge& e : g.edges) {
        if (e.back) continue;
        int from = e.from;
        const auto link = [&](int to) {
            below[static_cast<std::size_t>(from)].push_back(to);
            above[static_cast<std::size_t>(to)].push_back(from);
            from = to;
        };
        for (const int bend : e.way) link(bend);
        link(e.to);
    }
    const auto box = [&](int b) -> graph_box& { return g.boxes[static_cast<std::size_t>(b)]; };
    const auto pack = [&](std::vector<int>& layer, const std::vector<std::vector<int>>& near, bool order) {
        std::vector<std::pair<double, int>> wanted;
        for (const int b : layer) {
            double sum = 0;
            for (const int other : near[static_cast<std::size_t>(b)]) sum += box(other).x;
            const auto count = static_cast<double>(near[static_cast<std::size_t>(b)].size());
            wanted.emplace_back(count > 0 ? sum / count : box(b).x, b);
        }
        if (order)
            std::stable_sort(wanted.begin(), wanted.end(),
                             [](const auto& p, const auto& q) { return p.first < q.first; });
        double shift = 0, last = 0;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            graph_box& b = box(wanted[i].second);
            layer[i] = wanted[i].second;
            b.x = i == 0 ? wanted[i].first : std::max(wanted[i].first, last + b.width / 2 + gap);
            last = b.x + b.width / 2;
            shift += wanted[i].first - b.x;
        }
        shift /= static_cast<double>(std::max<std::size_t>(wanted.size(), 1));
        for (const int b : layer) box(b).x += shift;
    };
    for (int round = 0; round < 12; ++round) {
        const bool order = round < 8;
        for (std::size_t l = 0; l < layers.size(); ++l) pack(layers[l], above, order);
        for (std::size_t l = layers.size(); l-- > 0;) pack(layers[l], below, order && round % 2 == 0);
    }
    double y = 0, least = 0;
    for (const auto& layer : layers) {
        double highest = 0;
        for (const int b : layer) highest = std::max(highest, box(b).height);
        for (const int b : layer) {
            box(b).y = y + highest / 2;
            least = std::min(least, box(b).x - box(b).width / 2);
        }
        y += highest + between;
    }
    for (graph_box& b : g.boxes) b.x -= least;
}

} // namespace tapegraph::io::detail
