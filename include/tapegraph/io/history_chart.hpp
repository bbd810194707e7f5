#pragma once

#include <tapegraph/io/path.hpp>
#include <tapegraph/io/svg_chart.hpp>
#include <tapegraph/nn/history.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Draws the result of fit: learning curves.

namespace tapegraph::io {

/// A chart for each value of the history over its epochs, counted from 1, with its training and
/// validation curves.
template <class = void>
std::vector<chart> history_charts(const history& h) {
    std::vector<double> epochs;
    for (const epoch_result& e : h.epochs) epochs.push_back(static_cast<double>(e.epoch + 1));
    const std::vector<std::string> names = h.names();
    const auto has = [&](const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    std::vector<chart> charts;
    for (const std::string& name : names) {
        const bool validated = name.starts_with("val_");
        if (validated && has(name.substr(4))) continue; // part of the other one's chart
        chart c;
        c.title = name;
        c.x_label = "epoch";
        c.x = epochs;
        c.from_zero = false;
        c.whole_x = true;
        c.width = 560, c.height = 340;
        c.series.push_back({validated ? "validation" : "training", h[name]});
        if (has("val_" + name)) c.series.push_back({"validation", h["val_" + name]});
        charts.push_back(std::move(c));
    }
    return charts;
}

/// The charts of a history as one SVG document, `columns` per row. Throws argument_error for a
/// history without epochs.
template <class = void>
std::string history_svg(const history& h, int columns = 2) {
    const std::vector<chart> charts = history_charts(h);
    if (charts.empty()) throw argument_error("history_svg: the history has no epochs");
    if (columns < 1) throw argument_error("history_svg: " + std::to_string(columns) + " columns");
    const int across = std::min(columns, static_cast<int>(charts.size()));
    const int down = (static_cast<int>(charts.size()) + across - 1) / across;
    const std::string width = std::to_string(across * charts[0].width),
                      height = std::to_string(down * charts[0].height);
    std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
                      "\" viewBox=\"0 0 " + width + " " + height + "\" role=\"img\">\n<rect width=\"" + width +
                      "\" height=\"" + height + "\" fill=\"#ffffff\"/>\n";
    for (std::size_t i = 0; i < charts.size(); ++i) {
        const auto place = static_cast<int>(i);
        out += "<svg x=\"" + std::to_string(place % across * charts[i].width) + "\" y=\"" +
               std::to_string(place / across * charts[i].height) + "\"" + svg_chart(charts[i]).substr(4);
    }
    return out + "</svg>\n";
}

/// Writes history_svg to a file, completely or not at all. Throws data_error on failure.
template <class = void>
void write_history_svg(const files::path& path, const history& h, int columns = 2) {
    const std::string text = history_svg(h, columns);
    atomic_file out(path);
    out.write(text);
    out.commit();
}

} // namespace tapegraph::io
