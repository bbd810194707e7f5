#include <tapegraph/tapegraph.hpp>

#include <tapegraph/io/confusion_chart.hpp>
#include <tapegraph/io/eager_picture.hpp>
#include <tapegraph/io/graph_picture.hpp>
#include <tapegraph/io/history_chart.hpp>
#include <tapegraph/nn/callbacks.hpp>
#include <tapegraph/nn/callbacks/training_page.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace plots_test {

namespace tg = tapegraph;

namespace {

int count(const std::string& text, std::string_view what) {
    int n = 0;
    for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + what.size())) ++n;
    return n;
}

/// Whether every tag is closed, in order: what browsers ask of SVG.
bool well_formed(const std::string& xml) {
    std::vector<std::string> open;
    for (std::size_t at = xml.find('<'); at != xml.npos; at = xml.find('<', at + 1)) {
        const std::size_t end = xml.find('>', at);
        if (end == xml.npos) return false;
        const std::string tag = xml.substr(at + 1, end - at - 1);
        const std::string name =
            tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" />", 1) - (tag[0] == '/' ? 1 : 0));
        if (tag[0] == '/') {
            if (open.empty() || open.back() != name) return false;
            open.pop_back();
        } else if (tag.back() != '/') {
            open.push_back(name);
        }
    }
    return open.empty();
}

tg::history history_of(std::vector<double> loss, std::vector<double> validation) {
    tg::history h;
    for (std::size_t e = 0; e < loss.size(); ++e) {
        tg::epoch_result r;
        r.epoch = static_cast<std::int64_t>(e);
        r.seconds = 1.5;
        r.logs.set("loss", loss[e]);
        if (!std::isnan(validation[e])) r.logs.set("val_loss", validation[e]);
        h.epochs.push_back(r);
    }
    return h;
}

struct line {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "line", x, {.units = 1}); }
};
struct net {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = relu(tg::dense(scope / "block" / 0 / "first", x, {.units = 8}));
        const auto k = tg::dense(scope / "block" / 1 / "second", h, {.units = 8});
        return tg::dense(scope / "out", h + k, {.units = 3});
    }
};

} // namespace

TEST_CASE("a history's charts: training beside validation, epochs from 1") {
    const double none = std::nan("");
    const auto h = history_of({30, 20, 10}, {none, 25, none});
    const auto charts = tg::io::history_charts(h);
    REQUIRE(charts.size() == 1);
    CHECK(charts[0].title == "loss");
    CHECK(charts[0].x == std::vector<double>{1, 2, 3});
    REQUIRE(charts[0].series.size() == 2);
    CHECK(charts[0].series[0].y == std::vector<double>{30, 20, 10});
    CHECK(std::isnan(charts[0].series[1].y[0]));
    CHECK(charts[0].series[1].y[1] == 25);
    const std::string svg = tg::io::history_svg(h);
    CHECK(well_formed(svg));
    CHECK(count(svg, "<svg ") == 2);
    CHECK_FALSE(support::contains(svg, ">1.5</text>")); // no half epochs on the axis of x
    CHECK(support::message_of<tg::argument_error>([] { tg::io::history_svg({}); }) ==
          "history_svg: the history has no epochs");
    CHECK(support::message_of<tg::argument_error>([&] { tg::io::history_svg(h, 0); }) == "history_svg: 0 columns");
    const support::temporary_folder folder;
    tg::io::write_history_svg(folder.path() / "h.svg", h);
    CHECK(support::read_text(folder.path() / "h.svg") == svg);
    CHECK(well_formed(tg::io::history_svg(history_of({1}, {none}), 5))); // one epoch
}

TEST_CASE("confusion matrices: counts, shares, names") {
    const auto counts = tg::io::confusion_counts(std::vector<int>{0, 0, 1, 2, 2}, std::vector<int>{0, 1, 1, 2, 0}, 3);
    CHECK(counts.to_vector() == std::vector<double>{1, 1, 0, 0, 1, 0, 1, 0, 1});
    const std::string svg = tg::io::confusion_svg(counts, {.title = "a < b", .classes = {"x", "y & z", "w"}});
    CHECK(well_formed(svg));
    CHECK(support::contains(svg, "a &lt; b"));
    CHECK(support::contains(svg, ">60.00% of 5 right<"));
    CHECK(support::contains(svg, "<title>x taken for y &amp; z: 1, 50.0%</title>"));
    CHECK(count(svg, "<rect ") == 2 + 9); // background, frame, cells
    CHECK(well_formed(tg::io::confusion_svg(tg::zeros<std::int64_t>({1, 1}))));
    CHECK(support::contains(tg::io::confusion_svg(tg::zeros<float>({2, 2})), "nothing was counted"));
    CHECK(well_formed(tg::io::confusion_svg(tg::ones<float>({101, 101}))));
    const auto message = [](const auto& f) { return support::message_of<tg::error>(f); };
    CHECK(message([] {
              tg::io::confusion_svg(tg::zeros<float>({2, 3}));
          }) == "confusion_svg: shape [2, 3] is not [classes, classes]");
    CHECK(message([] {
              tg::io::confusion_svg(tg::zeros<float>({2, 2}), {.classes = {"a"}});
          }) == "confusion_svg: 1 names for 2 classes");
    CHECK(message([] {
              tg::io::confusion_counts(std::vector<int>{0}, std::vector<int>{0, 1}, 2);
          }) == "confusion_counts: 1 labels, 2 predictions");
    CHECK(message([] {
              tg::io::confusion_counts(std::vector<int>{0, 1}, std::vector<int>{0, 2}, 2);
          }) == "confusion_counts: index 2 at position 1 is outside [0, 2)");
}

TEST_CASE("an eager model is drawn as the same model in graph mode") {
    const auto compared = [](const auto& drawn, const auto& expected) {
        const tg::io::graph_picture options{.title = "net", .depth = 2};
        CHECK(tg::io::graph_svg(drawn, options) == tg::io::graph_svg(expected, options));
        CHECK(tg::to_dot(drawn) == tg::to_dot(expected));
        const support::temporary_folder folder;
        tg::io::write_graph_svg(folder.path() / "g.svg", drawn, options);
        CHECK(support::read_text(folder.path() / "g.svg") == tg::io::graph_svg(expected, options));
    };
    using spec = tg::spec<float, tg::dyn, 5>;
    compared(tg::compile<tg::eager>(net{}, spec{}, tg::softmax_cross_entropy{}, tg::adam{}),
             tg::compile<tg::graph>(net{}, spec{}, tg::softmax_cross_entropy{}, tg::adam{}));
    // Of a model that only predicts, the outputs alone.
    const std::string prediction = tg::io::graph_svg(tg::compile<tg::eager>(net{}, spec{}), {.depth = 2});
    CHECK(well_formed(prediction));
    CHECK(support::contains(prediction, ">block/1<"));
    CHECK(!support::contains(prediction, ">loss<"));
}

TEST_CASE("a graph as boxes: scopes folded at a depth, layers downwards") {
    const auto model =
        tg::compile<tg::graph>(net{}, tg::spec<float, tg::dyn, 5>{}, tg::softmax_cross_entropy{}, tg::adam{});
    const auto items = tg::io::graph_items(model.training_view(), tg::explain_options{});
    const auto names = [&](int depth) {
        std::vector<std::string> found;
        for (const auto& b : tg::io::detail::fold_graph(items, depth).boxes) found.push_back(b.name);
        return found;
    };
    CHECK(names(1) == std::vector<std::string>{"input", "block", "out", "labels", "loss", "loss", "accuracy"});
    CHECK(names(2) ==
          std::vector<std::string>{"input", "block/0", "block/1", "out", "labels", "loss", "loss", "accuracy"});
    auto g = tg::io::detail::fold_graph(items, 2);
    CHECK(g.boxes[1].parameters == 5 * 8 + 8);
    tg::io::detail::set_layers(g);
    for (const auto& e : g.edges)
        if (!e.back)
            CHECK(g.boxes[static_cast<std::size_t>(e.from)].layer + 1 + static_cast<int>(e.way.size()) ==
                  g.boxes[static_cast<std::size_t>(e.to)].layer);
    for (auto& b : g.boxes) b.width = 100, b.height = 20;
    tg::io::detail::set_places(g, 10, 30);
    for (std::size_t a = 0; a < g.boxes.size(); ++a) // nothing over anything else
        for (std::size_t b = 0; b < a; ++b)
            if (g.boxes[a].layer == g.boxes[b].layer) CHECK(std::abs(g.boxes[a].x - g.boxes[b].x) > 109.9);
    const std::string svg = tg::io::graph_svg(model, {.title = "net", .depth = 2});
    CHECK(well_formed(svg));
    CHECK(support::contains(svg, ">block/1<"));
    CHECK(support::contains(svg, "48 parameters"));
    CHECK(support::contains(svg, ">gives f32 [?, 8]<"));
    CHECK(support::message_of<tg::argument_error>([&] { tg::io::graph_svg(model, {.depth = 0}); }) ==
          "graph_svg: depth is 0");
    const support::temporary_folder folder;
    tg::io::write_graph_svg(folder.path() / "g.svg", model, {.title = "net", .depth = 2});
    CHECK(support::read_text(folder.path() / "g.svg") == svg);
    CHECK(tg::io::detail::folded_scope("a/b/c", 2) == "a/b");
    CHECK(tg::io::detail::folded_scope("a", 2) == "a");
}

TEST_CASE("the page of a run is whole after every epoch, and no longer read again at the end") {
    const support::temporary_folder folder;
    const std::string path = (folder.path() / "run.html").string();
    std::vector<float> x(40), y(20);
    for (std::size_t i = 0; i < 20; ++i) x[2 * i] = static_cast<float>(i % 3), y[i] = x[2 * i];
    tg::data::dataset set;
    set.add("x", x, {2}).add("y", y, {1});
    auto model = tg::compile<tg::eager>(line{}, tg::spec<float, tg::dyn, 2>{}, tg::mean_squared_error{}, tg::sgd{});
    std::vector<std::string> pages;
    model.fit(set, {.epochs = 2, .validation_split = 0.25, .verbose = 0},
              tg::training_page{.path = path, .title = "A & B", .refresh_seconds = 7, .facts = {{"data", "<none>"}}},
              tg::on_epoch_begin([&](tg::training_state&) { pages.push_back(support::read_text(path)); }));
    REQUIRE(pages.size() == 2);
    CHECK(support::contains(pages[0], "The first epoch is under way."));
    CHECK(support::contains(pages[0], "<meta http-equiv=\"refresh\" content=\"7\">"));
    CHECK(support::contains(pages[1], "1 of 2"));
    const std::string last = support::read_text(path);
    CHECK_FALSE(support::contains(last, "refresh"));
    CHECK(support::contains(last, "<h1>A &amp; B</h1>"));
    CHECK(support::contains(last, "&lt;none&gt;"));
    CHECK(support::contains(last, "2 of 2"));
    CHECK(support::contains(last, "finished"));
    CHECK(count(last, "<tr>") == 3);
    CHECK(last.ends_with("</html>\n"));
    CHECK(support::message_of<tg::data_error>([&] {
              model.fit(set, {.verbose = 0}, tg::training_page{.path = (folder.path() / "no" / "x.html").string()});
          }).find("cannot be written") != std::string::npos);
    CHECK(support::message_of<tg::argument_error>([&] {
              model.fit(set, {.verbose = 0}, tg::training_page{.path = path, .refresh_seconds = -1});
          }) == "training_page: refresh_seconds is -1, not at least 0");
}

} // namespace plots_test
