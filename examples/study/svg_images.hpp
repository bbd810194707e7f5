#pragma once

#include "svg_chart.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Rows of small grey images with a line of text below each, as a standalone SVG.

namespace study {

struct svg_image {
    std::vector<float>
        pixels; ///< [height, width], 0 (white) to 1 (black); what is beyond counts as these, NaN as white
    std::string label{};
    bool marked = false; ///< the label is red
};

struct image_rows {
    std::string title{};
    std::int64_t height = 0, width = 0; ///< of an image, in pixels
    std::int64_t columns = 10;
    double scale = 2; ///< of a pixel
    std::vector<svg_image> images{};
};

namespace detail {

/// Runs of equally dark pixels, by sixteen shades: a path for each shade.
inline std::string svg_pixels(const image_rows& all, const svg_image& image, double left, double top) {
    constexpr int shades = 16;
    std::vector<std::string> paths(shades);
    for (std::int64_t row = 0; row < all.height; ++row)
        for (std::int64_t column = 0, end = 0; column < all.width; column = end) {
            const auto shade = [&](std::int64_t at) {
                const float value = image.pixels[static_cast<std::size_t>(row * all.width + at)];
                return static_cast<int>((value > 0 ? std::min(value, 1.f) : 0.f) * (shades - 1) + 0.5f);
            };
            for (end = column + 1; end < all.width && shade(end) == shade(column);) ++end;
            paths[static_cast<std::size_t>(shade(column))] += "M" + std::to_string(column) + " " + std::to_string(row) +
                                                              "h" + std::to_string(end - column) + "v1h-" +
                                                              std::to_string(end - column) + "z";
        }
    std::string out =
        "<g transform=\"translate(" + place(left) + " " + place(top) + ") scale(" + decimal(all.scale) + ")\">\n";
    for (int shade = 1; shade < shades; ++shade) {
        const std::string grey = std::to_string(255 - 255 * shade / (shades - 1));
        if (const std::string& path = paths[static_cast<std::size_t>(shade)]; !path.empty())
            out += "<path fill=\"rgb(" + grey + "," + grey + "," + grey + ")\" d=\"" + path + "\"/>\n";
    }
    return out + "</g>\n";
}

} // namespace detail

/// The images as an SVG document. Throws argument_error for no images, no columns, and an image of another size.
inline std::string svg_images(const image_rows& all) {
    const std::string operation = "svg_images '" + all.title + "': ";
    if (all.images.empty()) throw tapegraph::argument_error(operation + "no images");
    if (all.height < 1 || all.width < 1 || all.columns < 1 || !(all.scale > 0))
        throw tapegraph::argument_error(operation + "height, width, columns and scale must be positive");
    for (std::size_t i = 0; i < all.images.size(); ++i)
        if (all.images[i].pixels.size() != static_cast<std::size_t>(all.height * all.width))
            throw tapegraph::argument_error(operation + "image " + std::to_string(i) + " has " +
                                            std::to_string(all.images[i].pixels.size()) + " pixels, not " +
                                            std::to_string(all.height) + "x" + std::to_string(all.width));
    constexpr double gap = 8, line = 18, title = 40;
    const double across = static_cast<double>(all.width) * all.scale,
                 down = static_cast<double>(all.height) * all.scale;
    const auto rows = (static_cast<std::int64_t>(all.images.size()) + all.columns - 1) / all.columns;
    const std::string width = detail::place(gap + static_cast<double>(all.columns) * (across + gap));
    const std::string height = detail::place(title + static_cast<double>(rows) * (down + line + gap));
    std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
                      "\" viewBox=\"0 0 " + width + " " + height +
                      "\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n<title>" +
                      xml_text(all.title) + "</title>\n<rect width=\"" + width + "\" height=\"" + height +
                      "\" fill=\"#ffffff\"/>\n" +
                      detail::svg_text(gap, 26, "font-size=\"16\" font-weight=\"bold\"", all.title);
    for (std::size_t i = 0; i < all.images.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const double left = gap + static_cast<double>(at % all.columns) * (across + gap);
        const double top = title + static_cast<double>(at / all.columns) * (down + line + gap);
        out += "<rect x=\"" + detail::place(left) + "\" y=\"" + detail::place(top) + "\" width=\"" +
               detail::place(across) + "\" height=\"" + detail::place(down) + "\" fill=\"#f4f4f4\"/>\n" +
               detail::svg_pixels(all, all.images[i], left, top) +
               detail::svg_text(left + across / 2, top + down + 14,
                                all.images[i].marked ? "text-anchor=\"middle\" fill=\"#D55E00\" font-weight=\"bold\""
                                                     : "text-anchor=\"middle\"",
                                all.images[i].label);
    }
    return out + "</svg>\n";
}

/// Writes them to a file, completely or not at all. Throws data_error on failure.
inline void write_svg_images(const tapegraph::files::path& path, const image_rows& all) {
    const std::string text = svg_images(all);
    tapegraph::io::atomic_file out(path);
    out.write(text);
    out.commit();
}

} // namespace study
