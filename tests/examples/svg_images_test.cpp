#include <study/svg_images.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace svg_images_test {

using tapegraph::argument_error;
using namespace study;

TEST_CASE("runs of equally dark pixels are a path of their shade") {
    // Two rows of three: black, black, white; grey, white, black.
    const image_rows all{.title = "a & b",
                         .height = 2,
                         .width = 3,
                         .columns = 1,
                         .images = {{.pixels = {1, 1, 0, 0.2f, 0, 1}, .label = "7 < 8"}}};
    const std::string svg = svg_images(all);
    CHECK(support::contains(svg, "<path fill=\"rgb(0,0,0)\" d=\"M0 0h2v1h-2zM2 1h1v1h-1z\"/>"));
    CHECK(support::contains(svg, "<path fill=\"rgb(204,204,204)\" d=\"M0 1h1v1h-1z\"/>"));
    CHECK(support::contains(svg, "<title>a &amp; b</title>"));
    CHECK(support::contains(svg, ">7 &lt; 8</text>"));
    CHECK_FALSE(support::contains(svg, "D55E00"));
}

TEST_CASE("values beyond black and white count as these, and marks are red") {
    const image_rows all{.height = 1,
                         .width = 2,
                         .columns = 3,
                         .images = {{.pixels = {NAN, 7}}, {.pixels = {0, 0}, .label = "x", .marked = true}}};
    const std::string svg = svg_images(all);
    CHECK(support::contains(svg, "<path fill=\"rgb(0,0,0)\" d=\"M1 0h1v1h-1z\"/>"));
    CHECK(support::contains(svg, "fill=\"#D55E00\""));
    CHECK(svg.find("<path", svg.find("<path") + 1) == std::string::npos); // white has none
}

TEST_CASE("images without sense are refused by name") {
    CHECK_THROWS_WITH_AS(svg_images({.title = "t", .height = 1, .width = 1}), "svg_images 't': no images",
                         argument_error);
    CHECK_THROWS_WITH_AS(
        svg_images(
            {.title = "t", .height = 2, .width = 3, .images = {{.pixels = std::vector<float>(6)}, {.pixels = {1}}}}),
        "svg_images 't': image 1 has 1 pixels, not 2x3", argument_error);
    CHECK_THROWS_AS(svg_images({.height = 1, .width = 1, .columns = 0, .images = {{.pixels = {1}}}}), argument_error);
}

} // namespace svg_images_test
