#include <study/svg_chart.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace svg_chart_test {

using tapegraph::argument_error;
using tapegraph::data_error;
using namespace study;

namespace {

/// Tags open and close in order, attributes are quoted: enough of XML to catch what a chart could get wrong.
bool well_formed(const std::string& xml) {
    std::vector<std::string> open;
    for (std::size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
        const std::size_t end = xml.find('>', at);
        if (end == std::string::npos) return false;
        const std::string tag = xml.substr(at + 1, end - at - 1);
        if (tag.find('<') != std::string::npos) return false;
        const std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
        if (tag[0] == '/') {
            if (open.empty() || open.back() != tag.substr(1)) return false;
            open.pop_back();
        } else if (tag.back() != '/') {
            open.push_back(name);
        }
    }
    return open.empty();
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

} // namespace

TEST_CASE("a line chart shows every series and point") {
    const chart c{.title = "a <b> & \"c\"",
                  .x_label = "batch size",
                  .y_label = "seconds",
                  .x = {1, 16, 64},
                  .series = {{"graph", {3, 2, 1}, {}}, {"eager", {4, NAN, 2}, {1, 16, 100}}}};
    const auto svg = svg_chart(c);
    CHECK(well_formed(svg));
    CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    CHECK(support::contains(svg, "a &lt;b&gt; &amp; &quot;c&quot;"));
    CHECK(count(svg, "<path ") == 2);
    CHECK(count(svg, "<circle ") == 5); // the NaN has none
    for (const char* tick : {">20<", ">100<", ">graph<", ">eager<", ">batch size<", ">seconds<", ">0<"})
        CHECK_MESSAGE(support::contains(svg, tick), tick);
    CHECK_FALSE(support::contains(svg, "nan"));
    CHECK_FALSE(support::contains(svg, "<script"));
}

TEST_CASE("points that are not joined have no line, however many they are") {
    std::vector<double> many(100);
    for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i);
    chart c{.series = {{.name = "points", .y = many, .x = many, .joined = false}}};
    CHECK(count(svg_chart(c), "<path ") == 0);
    CHECK(count(svg_chart(c), "<circle ") == 100);
    c.series[0].joined = true;
    CHECK(count(svg_chart(c), "<path ") == 1);
    CHECK(count(svg_chart(c), "<circle ") == 0);
}

TEST_CASE("bars begin at zero, also negative ones") {
    const chart c{
        .kind = chart_kind::grouped_bar, .categories = {"1", "16"}, .series = {{"a", {2, -1}, {}}, {"b", {1, 1}, {}}}};
    const auto svg = svg_chart(c);
    CHECK(well_formed(svg));
    CHECK(count(svg, "<title>") == 5); // the chart's and one per bar
    CHECK(support::contains(svg, ">-1<"));
}

TEST_CASE("axes end on round numbers, whatever the data") {
    CHECK(detail::linear_axis(0, 97).ticks == std::vector<double>{0, 20, 40, 60, 80, 100});
    CHECK(detail::linear_axis(5, 5).part(5) == doctest::Approx(0.5).epsilon(0.3));
    CHECK(detail::linear_axis(0, 0).low < detail::linear_axis(0, 0).high);
    for (const auto& ys : {std::vector<double>{}, {7}, {1e-30, 1e30}, {-1e9, -1e9 + 1}, {NAN, INFINITY}}) {
        std::vector<double> xs(ys.size());
        for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<double>(i);
        const auto svg = svg_chart({.x = xs, .series = {{"s", ys, {}}}});
        CHECK(well_formed(svg));
        CHECK_FALSE(support::contains(svg, "nan"));
        CHECK_FALSE(support::contains(svg, "inf"));
        CHECK(count(svg, "<text") < 40);
    }
}

TEST_CASE("charts that make no sense are refused") {
    const auto message = [](const chart& c) { return support::message_of<argument_error>([&] { svg_chart(c); }); };
    CHECK(message({.title = "t"}) == "svg_chart 't': no series");
    CHECK(
        support::contains(message({.x = {1, 2}, .series = {{"s", {1}, {}}}}), "series 's' has 1 values for 2 places"));
    CHECK(
        support::contains(message({.kind = chart_kind::grouped_bar, .series = {{"s", {1}, {}}}}), "for 0 categories"));
    CHECK(support::contains(message({.x = {NAN}, .series = {{"s", {1}, {}}}}), "point at x = nan"));
    CHECK(support::contains(message({.series = {{"s", {}, {}}}, .width = 10}), "10x440"));
    const support::temporary_folder folder;
    const chart good{.x = {1}, .series = {{"s", {1}, {}}}};
    CHECK_THROWS_AS(write_svg_chart(folder.path() / "none" / "c.svg", good), data_error);
    write_svg_chart(folder.path() / "c.svg", good);
    CHECK(support::read_text(folder.path() / "c.svg") == svg_chart(good));
}

} // namespace svg_chart_test
