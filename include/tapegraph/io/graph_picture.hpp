#pragma once

#include <tapegraph/io/graph_boxes.hpp>
#include <tapegraph/io/path.hpp>
#include <tapegraph/io/svg_chart.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Draws a compiled model without Graphviz: its scopes as boxes from inputs to loss. graph/dot.hpp
/// draws every node.

namespace tapegraph::io {

struct graph_picture {
    std::string title{};
    int depth = 1; ///< depth to which scopes are drawn: for "encoder/3/attention" at 1 "encoder", at 2 "encoder/3"
    explain_options extents{}; ///< extents for which costs are predicted
};

namespace detail {

inline const char* box_fill(box_kind kind) {
    return kind == box_kind::input ? "#E8F1FA" : kind == box_kind::output ? "#FBEBDD" : "#F5F5F5";
}
inline const char* box_stroke(box_kind kind) {
    return kind == box_kind::input ? "#0072B2" : kind == box_kind::output ? "#D55E00" : "#777777";
}

template <class = void>
std::string edge_path(const graph_boxes& g, const graph_edge& e) {
    const auto& from = g.boxes[static_cast<std::size_t>(e.from)];
    const auto& to = g.boxes[static_cast<std::size_t>(e.to)];
    std::string path;
    double x = from.x, y = from.y + from.height / 2;
    path = "M" + place(x) + " " + place(y);
    const auto curve = [&](double next_x, double next_y) {
        const double middle = (y + next_y) / 2;
        path += " C" + place(x) + " " + place(middle) + " " + place(next_x) + " " + place(middle) + " " +
                place(next_x) + " " + place(next_y);
        x = next_x, y = next_y;
    };
    for (const int bend : e.way)
        curve(g.boxes[static_cast<std::size_t>(bend)].x, g.boxes[static_cast<std::size_t>(bend)].y);
    if (e.back) { // around the right side
        const double side = std::max(from.x + from.width / 2, to.x + to.width / 2) + 30;
        return "M" + place(from.x + from.width / 2) + " " + place(from.y) + " C" + place(side) + " " + place(from.y) +
               " " + place(side) + " " + place(to.y) + " " + place(to.x + to.width / 2 + 2) + " " + place(to.y);
    }
    curve(to.x, to.y - to.height / 2 - 2);
    return path;
}

} // namespace detail

/// The forward pass of a program as an SVG document: a box for each scope with its operations,
/// parameters and fraction of the floating-point operations, its result, and arrows to its readers.
/// Throws argument_error for a depth below 1.
template <class = void>
std::string graph_svg(const ir::program_view& view, const graph_picture& options = {}) {
    if (options.depth < 1) throw argument_error("graph_svg: depth is " + std::to_string(options.depth));
    detail::graph_boxes g = detail::fold_graph(graph_items(view, options.extents), options.depth);
    double flops = 0;
    for (const auto& b : g.boxes) flops += b.flops;
    for (detail::graph_box& b : g.boxes) {
        std::string last;
        if (b.kind == detail::box_kind::scope && !b.gives.empty()) b.lines.push_back("gives " + b.gives);
        if (b.parameters > 0) last = ir::detail::report::number(static_cast<double>(b.parameters)) + " parameters";
        if (b.flops > 0.001 * flops)
            last += (last.empty() ? "" : ", ") + detail::decimal(100 * b.flops / flops, "%.2g") + "% of flops";
        if (!last.empty()) b.lines.push_back(last);
        std::size_t widest = b.name.size() + 2;
        for (const std::string& line : b.lines) widest = std::max(widest, line.size());
        b.width = std::max(90.0, 6.3 * static_cast<double>(widest) + 24);
        b.height = 28 + 15 * static_cast<double>(b.lines.size());
    }
    detail::set_layers(g);
    for (std::size_t b = static_cast<std::size_t>(g.scopes); b < g.boxes.size(); ++b) g.boxes[b].width = 30;
    detail::set_places(g, 36, 46);

    const double margin = 24, top = options.title.empty() ? margin : 60;
    double wide = 320, high = 0;
    for (detail::graph_box& b : g.boxes) {
        b.x += margin, b.y += top;
        wide = std::max(wide, b.x + b.width / 2 + margin);
        high = std::max(high, b.y + b.height / 2 + margin);
    }
    std::string arrows, boxes;
    for (const detail::graph_edge& e : g.edges) {
        arrows += "<path d=\"" + detail::edge_path(g, e) + "\"" + (e.back ? " stroke-dasharray=\"5 4\"" : "") +
                  " marker-end=\"url(#arrow)\"/>\n";
    }
    for (const detail::graph_box& b : g.boxes) {
        if (b.kind == detail::box_kind::bend) continue;
        const double x = b.x - b.width / 2, y = b.y - b.height / 2;
        boxes += "<rect x=\"" + detail::place(x) + "\" y=\"" + detail::place(y) + "\" width=\"" +
                 detail::place(b.width) + "\" height=\"" + detail::place(b.height) + "\" rx=\"" +
                 (b.kind == detail::box_kind::scope ? "4" : "12") + "\" fill=\"" + detail::box_fill(b.kind) +
                 "\" stroke=\"" + detail::box_stroke(b.kind) + "\"/>\n";
        boxes += detail::svg_text(b.x, y + 19, "text-anchor=\"middle\" font-weight=\"bold\"", b.name);
        for (std::size_t i = 0; i < b.lines.size(); ++i)
            boxes += detail::svg_text(b.x, y + 35 + 15 * static_cast<double>(i),
                                      "text-anchor=\"middle\" font-size=\"11\" fill=\"#444444\"", b.lines[i]);
    }
    const std::string width = detail::place(wide), height = detail::place(high);
    const std::string title = options.title.empty() ? "graph" : options.title;
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
           "\" viewBox=\"0 0 " + width + " " + height +
           "\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n<title>" + xml_text(title) +
           "</title>\n<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
           "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#777777\"/></marker></defs>\n"
           "<rect width=\"" +
           width + "\" height=\"" + height + "\" fill=\"#ffffff\"/>\n" +
           (options.title.empty()
                ? std::string()
                : detail::svg_text(margin, 32, "font-size=\"16\" font-weight=\"bold\"", options.title)) +
           "<g fill=\"none\" stroke=\"#777777\" stroke-width=\"1.3\">\n" + arrows + "</g>\n" + boxes + "</svg>\n";
}
/// The same for a graph model's training step.
template <class Model>
    requires requires(const Model& m) { m.training_view(); }
std::string graph_svg(const Model& model, const graph_picture& options = {}) {
    return graph_svg(model.training_view(), options);
}

/// Writes graph_svg to a file, completely or not at all. Throws data_error on failure.
template <class Model>
void write_graph_svg(const files::path& path, const Model& model, const graph_picture& options = {}) {
    const std::string text = graph_svg(model, options);
    atomic_file out(path);
    out.write(text);
    out.commit();
}

} // namespace tapegraph::io
