#pragma once

#include "training.hpp"

#include "../study/svg_chart.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace character_model {

/// The written text as an SVG: the less likely the model held a character, the darker the ground below it.
inline std::string svg_of(const std::vector<written_character>& text, const std::string& title) {
    constexpr int columns = 72;
    constexpr double across = 9.64, down = 22, margin = 12, top = 44; // of a character of 16 pixels
    std::string grounds, letters;
    int column = 0, row = 0;
    for (const written_character& each : text) {
        if (each.text == "\n" || column == columns) ++row, column = 0;
        if (each.text == "\n") continue;
        const std::string x = study::detail::place(margin + across * column++);
        const double bits = std::min(-std::log2(std::max(each.chance, 1e-9)), 5.0);
        if (bits > 0.2)
            grounds += "<rect x=\"" + x + "\" y=\"" + study::detail::place(top + down * row) +
                       "\" width=\"9.64\" height=\"22\" fill-opacity=\"" + study::detail::decimal(bits / 5, "%.2f") +
                       "\"/>\n";
        if (each.text != " ")
            letters += "<text x=\"" + x + "\" y=\"" + study::detail::place(top + down * row + 16) + "\">" +
                       study::xml_text(each.text) + "</text>\n";
    }
    const std::string width = study::detail::place(2 * margin + across * columns);
    const std::string height = study::detail::place(top + down * (row + 1) + margin);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
           "\" viewBox=\"0 0 " + width + " " + height +
           "\" role=\"img\" font-family=\"monospace\" font-size=\"16\" fill=\"#222222\">\n<title>" +
           study::xml_text(title) + "</title>\n<rect width=\"" + width + "\" height=\"" + height +
           "\" fill=\"#ffffff\"/>\n" + "<text x=\"12\" y=\"28\" font-family=\"sans-serif\" font-weight=\"bold\">" +
           study::xml_text(title) + "</text>\n<g fill=\"#E69F00\">\n" + grounds + "</g>\n" + letters + "</svg>\n";
}

} // namespace character_model
