#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/io/path.hpp>
#include <tapegraph/io/svg_chart.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Draws a confusion matrix.

namespace tapegraph::io {

struct confusion_chart {
    std::string title = "confusion matrix";
    std::vector<std::string> classes{}; ///< names; none: numbers from 0
};

/// Counts how often each label (row) was predicted as each class (column), [classes, classes].
/// Throws shape_error if the numbers of predictions and labels differ, and range_error for a class
/// outside [0, classes).
template <class L, class P>
tensor<double> confusion_counts(std::span<const L> labels, std::span<const P> predictions, std::int64_t classes) {
    if (labels.size() != predictions.size())
        throw shape_error("confusion_counts: " + std::to_string(labels.size()) + " labels, " +
                          std::to_string(predictions.size()) + " predictions");
    tensor<double> counts = zeros<double>({classes, classes});
    double* const to = counts.mutable_data();
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const auto row = static_cast<std::int64_t>(labels[i]), column = static_cast<std::int64_t>(predictions[i]);
        for (const std::int64_t each : {row, column})
            if (each < 0 || each >= classes)
                throw range_error(index_outside("confusion_counts", each, std::to_string(i), classes));
        ++to[row * classes + column];
    }
    return counts;
}
template <class L, class P>
tensor<double> confusion_counts(const std::vector<L>& labels, const std::vector<P>& predictions, std::int64_t classes) {
    return confusion_counts(std::span<const L>(labels), std::span<const P>(predictions), classes);
}

namespace detail {

/// White to blue by the square root of a cell's fraction of its row, so that a few mistakes among
/// many are visible.
inline std::string confusion_colour(double share) {
    const double depth = std::sqrt(share);
    const auto mix = [&](int dark) { return static_cast<int>(255 + (dark - 255) * depth + 0.5); };
    return "rgb(" + std::to_string(mix(0x08)) + "," + std::to_string(mix(0x45)) + "," + std::to_string(mix(0x94)) + ")";
}
/// "1234", "12.5k", "3.2M": abbreviated to fit a cell.
inline std::string short_count(double count) {
    if (count < 10000) return decimal(count, "%.4g");
    return count < 1e6 ? decimal(count / 1e3, "%.3g") + "k" : decimal(count / 1e6, "%.3g") + "M";
}
/// The approximate width of 12-pixel text.
inline double text_width(std::string_view text) {
    std::size_t letters = 0;
    for (const char c : text) letters += (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; // UTF-8
    return 6.8 * static_cast<double>(letters);
}

} // namespace detail

/// A confusion matrix [classes, classes], rows labels and columns predictions, as an SVG document:
/// counts, coloured by their fraction of the row, which is also printed where there is room. Throws
/// shape_error for a matrix that is not square, and for a wrong number of names.
template <class T>
std::string confusion_svg(const tensor<T>& matrix, const confusion_chart& options = {}) {
    const std::int64_t n = matrix.rank() == 2 ? matrix.shape()[0].value : 0;
    if (n < 1 || matrix.shape()[1].value != n)
        throw shape_error("confusion_svg: shape " + to_string(matrix.shape()) + " is not [classes, classes]");
    std::vector<std::string> names = options.classes;
    if (names.empty())
        for (std::int64_t i = 0; i < n; ++i) names.push_back(std::to_string(i));
    if (static_cast<std::int64_t>(names.size()) != n)
        throw shape_error("confusion_svg: " + std::to_string(names.size()) + " names for " + std::to_string(n) +
                          " classes");
    double widest = 0, right = 0, total = 0;
    for (const std::string& name : names) widest = std::max(widest, detail::text_width(name));
    const double cell = std::clamp(640.0 / static_cast<double>(n), 16.0, 64.0);
    const bool slanted = widest > cell - 4;
    const double left = 52 + widest, top = 72, side = cell * static_cast<double>(n);
    const double below = (slanted ? widest * 0.71 + 26 : 30) + 30;
    const double wide = std::max(left + side + 28 + (slanted ? widest * 0.3 : 0), 360.0), high = top + side + below;
    const T* const at = matrix.data();
    std::string cells, texts;
    for (std::int64_t r = 0; r < n; ++r) {
        double sum = 0;
        for (std::int64_t c = 0; c < n; ++c) sum += static_cast<double>(at[r * n + c]);
        total += sum;
        right += static_cast<double>(at[r * n + r]);
        for (std::int64_t c = 0; c < n; ++c) {
            const auto count = static_cast<double>(at[r * n + c]);
            const double share = sum > 0 ? count / sum : 0, x = left + cell * static_cast<double>(c),
                         y = top + cell * static_cast<double>(r);
            cells += "<rect x=\"" + detail::place(x) + "\" y=\"" + detail::place(y) + "\" width=\"" +
                     detail::place(cell) + "\" height=\"" + detail::place(cell) + "\" fill=\"" +
                     detail::confusion_colour(share) + "\"><title>" + xml_text(names[static_cast<std::size_t>(r)]) +
                     " taken for " + xml_text(names[static_cast<std::size_t>(c)]) + ": " +
                     detail::decimal(count, "%.10g") + ", " + detail::decimal(100 * share, "%.1f") +
                     "%</title></rect>\n";
            if (cell < 24 || count == 0) continue;
            const bool both = cell >= 40;
            const std::string colour = std::string("text-anchor=\"middle\" fill=\"") +
                                       (share > 0.3 ? "#ffffff" : "#222222") + "\" font-size=\"";
            texts += detail::svg_text(x + cell / 2, y + cell / 2 + (both ? -1 : 4),
                                      (colour + (cell < 32 ? "9\"" : "12\"")).c_str(), detail::short_count(count));
            if (both)
                texts += detail::svg_text(x + cell / 2, y + cell / 2 + 13, (colour + "10\"").c_str(),
                                          detail::decimal(100 * share, share < 0.0995 ? "%.1f" : "%.0f") + "%");
        }
    }
    std::string out;
    for (std::int64_t i = 0; i < n; ++i) {
        const std::string& name = names[static_cast<std::size_t>(i)];
        const double middle = cell * (static_cast<double>(i) + 0.5);
        out += detail::svg_text(left - 8, top + middle + 4, "text-anchor=\"end\"", name);
        const double x = left + middle, y = top + side + 18;
        if (!slanted)
            out += detail::svg_text(x, y, "text-anchor=\"middle\"", name);
        else
            out += detail::svg_text(x + 4, y - 4,
                                    ("text-anchor=\"end\" transform=\"rotate(-45 " + detail::place(x + 4) + " " +
                                     detail::place(y - 4) + ")\"")
                                        .c_str(),
                                    name);
    }
    const std::string axis = "text-anchor=\"middle\" font-size=\"13\" fill=\"#444444\"";
    out += detail::svg_text(left + side / 2, high - 14, axis.c_str(), "prediction");
    out += detail::svg_text(18, top + side / 2,
                            (axis + " transform=\"rotate(-90 18 " + detail::place(top + side / 2) + ")\"").c_str(),
                            "label");
    out += detail::svg_text(left, 28, "font-size=\"16\" font-weight=\"bold\"", options.title);
    out += detail::svg_text(left, 50, "fill=\"#444444\"",
                            total > 0 ? detail::decimal(100 * right / total, "%.2f") + "% of " +
                                            detail::decimal(total, "%.10g") + " right"
                                      : "nothing was counted");
    const std::string width = detail::place(wide), height = detail::place(high);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
           "\" viewBox=\"0 0 " + width + " " + height +
           "\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n<title>" +
           xml_text(options.title) + "</title>\n<rect width=\"" + width + "\" height=\"" + height +
           "\" fill=\"#ffffff\"/>\n<g stroke=\"#ffffff\" stroke-width=\"1\">\n" + cells + "</g>\n<rect x=\"" +
           detail::place(left) + "\" y=\"" + detail::place(top) + "\" width=\"" + detail::place(side) + "\" height=\"" +
           detail::place(side) + "\" fill=\"none\" stroke=\"#999999\"/>\n" + texts + out + "</svg>\n";
}

/// Writes confusion_svg to a file, completely or not at all. Throws data_error on failure.
template <class T>
void write_confusion_svg(const files::path& path, const tensor<T>& matrix, const confusion_chart& options = {}) {
    const std::string text = confusion_svg(matrix, options);
    atomic_file out(path);
    out.write(text);
    out.commit();
}

} // namespace tapegraph::io
