#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/path.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Charts as standalone SVG: lines or grouped bars, several series, no scripts.

namespace study {

enum class chart_kind { line, grouped_bar };

struct chart_series {
    std::string name;
    std::vector<double> y;   ///< one per x or category; NaN leaves a gap
    std::vector<double> x{}; ///< lines only; empty: the chart's x
    bool joined = true;      ///< lines only; false: points alone
};

struct chart {
    std::string title{}, x_label{}, y_label{};
    chart_kind kind = chart_kind::line;
    std::vector<double> x{};               ///< lines: positions of the points
    std::vector<std::string> categories{}; ///< bars: one group each
    std::vector<chart_series> series{};
    bool from_zero = true; ///< start the y axis at zero if all values are positive
    int width = 720, height = 440;
};

/// Escapes text for XML; control characters, which XML does not support, become blanks.
inline std::string xml_text(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '"')
            out += "&quot;";
        else
            out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out;
}

namespace detail {

// Okabe and Ito's palette, which is distinguishable with any kind of colour vision.
inline constexpr std::array<const char*, 7> chart_colours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                          "#E69F00", "#56B4E9", "#555555"};

inline std::string decimal(double value, const char* format = "%.6g") {
    char text[40];
    std::snprintf(text, sizeof text, format, value);
    return text;
}
inline std::string place(double pixels) { return decimal(pixels, "%.2f"); }

struct chart_axis {
    double low, high;
    std::vector<double> ticks;

    double part(double value) const { return (value - low) / (high - low); }
};

/// About five ticks at multiples of 1, 2 or 5 times a power of ten; the axis ends on ticks.
inline chart_axis linear_axis(double low, double high) {
    if (!(low < high)) {
        const double room = low == 0 ? 1 : std::abs(low) * 0.5;
        low -= low > 0 ? std::min(room, low) : room;
        high += room;
    }
    const double rough = (high - low) / 5;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    const double step = power * (rough / power <= 1 ? 1 : rough / power <= 2 ? 2 : rough / power <= 5 ? 5 : 10);
    const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
    chart_axis axis{first * step, last * step, {}};
    for (double k = first; k <= last; ++k) axis.ticks.push_back(k * step);
    return axis;
}

inline std::string svg_text(double x, double y, const char* attributes, std::string_view text) {
    return "<text x=\"" + place(x) + "\" y=\"" + place(y) + "\" " + attributes + ">" + xml_text(text) + "</text>\n";
}

/// The position of the plot in the picture, and the mapping of coordinates.
struct chart_frame {
    double left, right, top, bottom;
    chart_axis x, y;

    double at_x(double value) const { return left + x.part(value) * (right - left); }
    double at_y(double value) const { return bottom - y.part(value) * (bottom - top); }
};

inline const std::vector<double>& chart_x(const chart& c, const chart_series& s) { return s.x.empty() ? c.x : s.x; }

inline void check_chart(const chart& c) {
    const std::string operation = "svg_chart '" + c.title + "': ";
    if (c.series.empty()) throw tapegraph::argument_error(operation + "no series");
    if (c.width < 200 || c.height < 150)
        throw tapegraph::argument_error(operation + std::to_string(c.width) + "x" + std::to_string(c.height) +
                                        " is smaller than 200x150");
    for (const auto& s : c.series) {
        const bool bars = c.kind == chart_kind::grouped_bar;
        const std::size_t expected = bars ? c.categories.size() : chart_x(c, s).size();
        if (s.y.size() != expected)
            throw tapegraph::argument_error(operation + "series '" + s.name + "' has " + std::to_string(s.y.size()) +
                                            " values for " + std::to_string(expected) +
                                            (bars ? " categories" : " places on x"));
        if (bars) continue;
        for (const double x : chart_x(c, s))
            if (!std::isfinite(x))
                throw tapegraph::argument_error(operation + "series '" + s.name + "' has a point at x = " + decimal(x));
    }
}

inline chart_frame frame_of(const chart& c) {
    double low = HUGE_VAL, high = -HUGE_VAL, left = HUGE_VAL, right = -HUGE_VAL;
    for (const auto& s : c.series) {
        for (const double y : s.y)
            if (std::isfinite(y)) low = std::min(low, y), high = std::max(high, y);
        if (c.kind == chart_kind::line)
            for (const double x : chart_x(c, s)) left = std::min(left, x), right = std::max(right, x);
    }
    if (low > high) low = 0, high = 1; // only the axes are shown
    const bool bars = c.kind == chart_kind::grouped_bar;
    if (c.from_zero || bars) low = std::min(low, 0.0);
    if (bars) high = std::max(high, 0.0);
    if (left > right) left = 0, right = 1;
    chart_frame frame{72, c.width - 24.0, c.title.empty() ? 16.0 : 44.0, c.height - 52.0, {0, 1, {}}, {0, 1, {}}};
    frame.top += 22; // the line of the legend
    frame.y = linear_axis(low, high);
    if (!bars) frame.x = linear_axis(left, right);
    return frame;
}

inline std::string svg_axes(const chart& c, const chart_frame& f) {
    std::string out = "<g stroke=\"#dddddd\" stroke-width=\"1\">\n";
    const auto line = [&](double x1, double y1, double x2, double y2) {
        out += "<line x1=\"" + place(x1) + "\" y1=\"" + place(y1) + "\" x2=\"" + place(x2) + "\" y2=\"" + place(y2) +
               "\"/>\n";
    };
    for (const double tick : f.y.ticks) line(f.left, f.at_y(tick), f.right, f.at_y(tick));
    out += "</g>\n<g stroke=\"#333333\" stroke-width=\"1\">\n";
    const double base = f.y.low < 0 && f.y.high > 0 ? f.at_y(0) : f.bottom;
    line(f.left, base, f.right, base);
    line(f.left, f.top, f.left, f.bottom);
    for (const double tick : f.x.ticks) line(f.at_x(tick), f.bottom, f.at_x(tick), f.bottom + 5);
    out += "</g>\n";
    // A multiple of the step that should be zero may deviate by rounding.
    const auto label = [](double tick, const chart_axis& axis) {
        return decimal(std::abs(tick) < 1e-9 * (axis.high - axis.low) ? 0 : tick);
    };
    for (const double tick : f.y.ticks)
        out += svg_text(f.left - 8, f.at_y(tick) + 4, "text-anchor=\"end\"", label(tick, f.y));
    for (const double tick : f.x.ticks)
        out += svg_text(f.at_x(tick), f.bottom + 20, "text-anchor=\"middle\"", label(tick, f.x));
    const double middle = (f.top + f.bottom) / 2;
    const std::string turned = "text-anchor=\"middle\" transform=\"rotate(-90 18 " + place(middle) + ")\"";
    out += svg_text((f.left + f.right) / 2, c.height - 12.0, "text-anchor=\"middle\"", c.x_label);
    out += svg_text(18, middle, turned.c_str(), c.y_label);
    out += svg_text(c.width / 2.0, 26, "text-anchor=\"middle\" font-size=\"16\" font-weight=\"bold\"", c.title);
    return out;
}

inline std::string svg_lines(const chart& c, const chart_frame& f) {
    std::string out;
    for (std::size_t s = 0; s < c.series.size(); ++s) {
        const std::string colour = chart_colours[s % chart_colours.size()];
        const auto& xs = chart_x(c, c.series[s]);
        std::string path, marks;
        bool pen_down = false;
        for (std::size_t i = 0; i < xs.size(); ++i) {
            const double value = c.series[s].y[i];
            if (!std::isfinite(value)) {
                pen_down = false;
                continue;
            }
            const std::string x = place(f.at_x(xs[i])), y = place(f.at_y(value));
            path += (pen_down ? " L" : path.empty() ? "M" : " M") + x + " " + y;
            marks += "<circle cx=\"" + x + "\" cy=\"" + y + (c.series[s].joined ? "\" r=\"3\"/>\n" : "\" r=\"2\"/>\n");
            pen_down = true;
        }
        if (path.empty()) continue;
        // Series beyond the palette repeat its colours with dashes.
        const char* dash = s >= chart_colours.size() ? " stroke-dasharray=\"6 4\"" : "";
        if (c.series[s].joined)
            out +=
                "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"2\"" + dash + "/>\n";
        if (xs.size() <= 40 || !c.series[s].joined) out += "<g fill=\"" + colour + "\">\n" + marks + "</g>\n";
    }
    return out;
}

inline std::string svg_bars(const chart& c, const chart_frame& f) {
    std::string out;
    const double group = (f.right - f.left) / static_cast<double>(std::max<std::size_t>(c.categories.size(), 1));
    const double bar = group * 0.8 / static_cast<double>(c.series.size());
    for (std::size_t s = 0; s < c.series.size(); ++s) {
        out += std::string("<g fill=\"") + chart_colours[s % chart_colours.size()] + "\">\n";
        for (std::size_t g = 0; g < c.categories.size(); ++g) {
            const double value = c.series[s].y[g];
            if (!std::isfinite(value)) continue;
            const double top = f.at_y(std::max(value, 0.0)), base = f.at_y(std::min(value, 0.0));
            out += "<rect x=\"" +
                   place(f.left + group * (static_cast<double>(g) + 0.1) + bar * static_cast<double>(s)) + "\" y=\"" +
                   place(top) + "\" width=\"" + place(bar * 0.94) + "\" height=\"" + place(base - top) + "\"><title>" +
                   xml_text(c.series[s].name + ", " + c.categories[g] + ": " + decimal(value)) + "</title></rect>\n";
        }
        out += "</g>\n";
    }
    for (std::size_t g = 0; g < c.categories.size(); ++g)
        out += svg_text(f.left + group * (static_cast<double>(g) + 0.5), f.bottom + 20, "text-anchor=\"middle\"",
                        c.categories[g]);
    return out;
}

inline std::string svg_legend(const chart& c, const chart_frame& f) {
    std::string out;
    double x = f.left;
    for (std::size_t s = 0; s < c.series.size(); ++s) {
        out += "<rect x=\"" + place(x) + "\" y=\"" + place(f.top - 23) + "\" width=\"12\" height=\"12\" fill=\"" +
               chart_colours[s % chart_colours.size()] + "\"/>\n";
        out += svg_text(x + 17, f.top - 13, "text-anchor=\"start\"", c.series[s].name);
        x += 17 + 7.2 * static_cast<double>(c.series[s].name.size()) + 18; // the approximate width of 12-pixel text
    }
    return out;
}

} // namespace detail

/// The chart as an SVG document. Throws argument_error for no series, series of the wrong length, or an x that
/// is not finite.
inline std::string svg_chart(const chart& c) {
    detail::check_chart(c);
    const auto frame = detail::frame_of(c);
    const std::string width = std::to_string(c.width), height = std::to_string(c.height);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
           "\" viewBox=\"0 0 " + width + " " + height +
           "\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n<title>" +
           xml_text(c.title) + "</title>\n<rect width=\"" + width + "\" height=\"" + height +
           "\" fill=\"#ffffff\"/>\n" + detail::svg_axes(c, frame) +
           (c.kind == chart_kind::line ? detail::svg_lines(c, frame) : detail::svg_bars(c, frame)) +
           detail::svg_legend(c, frame) + "</svg>\n";
}

/// Writes the chart to a file, completely or not at all. Throws data_error on failure.
inline void write_svg_chart(const tapegraph::files::path& path, const chart& c) {
    const std::string text = svg_chart(c);
    tapegraph::io::atomic_file out(path);
    out.write(text);
    out.commit();
}

} // namespace study
