#pragma once

#include <tapegraph/io/history_chart.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

/// A run as one self-contained HTML page: no scripts, no other files.

namespace tapegraph::io {

/// The content of the page in addition to the history.
struct training_page_text {
    std::string title = "training";
    std::vector<std::pair<std::string, std::string>> facts{}; ///< rows of a table: {"parameters", "1,234"}
    int refresh_seconds = 0;                                  ///< reload interval of the browser; 0: never
    double done = -1;                                         ///< fraction of the epochs, as a bar; negative: none
};

namespace detail {

/// One row per epoch, the newest first, with the best of each value marked.
template <class = void>
std::string history_table(const history& h) {
    const std::vector<std::string> names = h.names();
    std::vector<std::size_t> best;
    for (const std::string& name : names) {
        const std::vector<double> values = h[name];
        const bool number = std::any_of(values.begin(), values.end(), [](double v) { return !std::isnan(v); });
        best.push_back(name == "learning_rate" || !number ? values.size() : h.best_epoch(name));
    }
    std::string out = "<table>\n<tr><th>epoch</th>";
    for (const std::string& name : names) out += "<th>" + xml_text(name) + "</th>";
    out += "<th>seconds</th></tr>\n";
    for (std::size_t e = h.epochs.size(); e-- > 0;) {
        out += "<tr><td>" + std::to_string(h.epochs[e].epoch + 1) + "</td>";
        for (std::size_t n = 0; n < names.size(); ++n) {
            const double* const value = h.epochs[e].logs.find(names[n]);
            out += best[n] == e ? "<td class=\"best\">" : "<td>";
            out += value != nullptr ? decimal(*value, "%.5g") : "";
            out += "</td>";
        }
        out += "<td>" + decimal(h.epochs[e].seconds, "%.3g") + "</td></tr>\n";
    }
    return out + "</table>\n";
}

} // namespace detail

/// The page: facts, a chart for each value, and a table of all epochs.
template <class = void>
std::string training_page_html(const history& h, const training_page_text& text) {
    std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    if (text.refresh_seconds > 0)
        out += "<meta http-equiv=\"refresh\" content=\"" + std::to_string(text.refresh_seconds) + "\">\n";
    out += "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" + xml_text(text.title) +
           "</title>\n<style>\n"
           "body { font: 14px sans-serif; color: #222; max-width: 1160px; margin: 24px auto; padding: 0 16px; }\n"
           "h1 { font-size: 22px; margin: 0 0 12px; }\n"
           "h2 { font-size: 16px; margin: 20px 0 8px; }\n"
           ".facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 8px; }\n"
           ".facts div { background: #f5f5f5; border-radius: 4px; padding: 8px 10px; }\n"
           ".facts span { display: block; color: #666; font-size: 12px; }\n"
           ".bar { height: 6px; background: #e4e4e4; border-radius: 3px; margin: 12px 0; }\n"
           ".bar div { height: 6px; background: #0072B2; border-radius: 3px; }\n"
           ".charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 8px; }\n"
           ".charts svg { width: 100%; height: auto; }\n"
           "table { border-collapse: collapse; font-variant-numeric: tabular-nums; }\n"
           "th, td { text-align: right; padding: 4px 12px; border-bottom: 1px solid #e4e4e4; }\n"
           "th { color: #666; font-weight: normal; }\n"
           ".best { font-weight: bold; color: #00724f; }\n"
           "</style>\n</head>\n<body>\n<h1>" +
           xml_text(text.title) + "</h1>\n";
    if (!text.facts.empty()) {
        out += "<div class=\"facts\">\n";
        for (const auto& fact : text.facts)
            out += "<div><span>" + xml_text(fact.first) + "</span>" + xml_text(fact.second) + "</div>\n";
        out += "</div>\n";
    }
    if (text.done >= 0)
        out += "<div class=\"bar\"><div style=\"width: " + detail::decimal(100 * std::min(text.done, 1.0), "%.1f") +
               "%\"></div></div>\n";
    if (h.epochs.empty()) {
        out += "<p>The first epoch is under way.</p>\n";
    } else {
        out += "<div class=\"charts\">\n";
        for (const chart& c : history_charts(h)) out += svg_chart(c);
        out += "</div>\n<h2>Epochs</h2>\n" + detail::history_table(h);
    }
    return out + "</body>\n</html>\n";
}

} // namespace tapegraph::io
