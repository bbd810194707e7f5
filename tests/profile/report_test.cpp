#include <tapegraph/profile.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace report_test {

namespace tg = tapegraph;
using tg::profiling::phase;

namespace {

double ticks = 0;
double ticking() { return ticks += 0.25; }

// Three calls in two steps, and a wait.
tg::profile_result small() {
    tg::profile_result r;
    const auto call = [](phase p, const char* layer, const char* operation, const char* shape, double first,
                         double second) {
        tg::profiling::call c;
        c.phase = p;
        c.layer = layer;
        c.operation = operation;
        c.shape = shape;
        c.count = 2;
        c.seconds = {(first + second) / 2, std::min(first, second)};
        return c;
    };
    r.calls.push_back(call(phase::ingestion, "", "wait for a batch", "", 0.5, 0.5));
    r.calls.back().samples = {{0, 10, 0.5}, {1, 20, 0.5}};
    r.calls.push_back(call(phase::forward, "a, \"b\"", "matmul", "f32[2,3] f32[3] -> f32[2]", 1, 3));
    r.calls.back().samples = {{0, 11, 1}, {1, 21, 3}};
    r.calls.back().flops = 12;
    r.calls.back().bytes = 44;
    r.calls.back().bound = 0.5;
    r.calls.back().reached = 0.5;
    r.calls.back().live_bytes = 8;
    r.calls.push_back(call(phase::update, "c", "subtract", "-> f32[2]", 2, 2));
    r.calls.back().samples = {{0, 13, 2}, {1, 25, 2}};
    r.steps = {{0, 10, 6}, {1, 20, 8}};
    r.step = {7, 6};
    r.arena_bytes = 64;
    return r;
}

struct network {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "score", x, {.units = 2}); }
};

} // namespace

TEST_CASE("a trace is JSON whose spans nest") {
    const auto trace = nlohmann::json::parse(small().chrome_trace());
    CHECK(trace["displayTimeUnit"] == "ns");
    std::vector<nlohmann::json> spans;
    int names = 0;
    std::vector<double> counted;
    for (const auto& e : trace["traceEvents"]) {
        CHECK(e["pid"] == 1);
        if (e["ph"] == "X") spans.push_back(e);
        if (e["ph"] == "M") ++names;
        if (e["ph"] == "C") counted.push_back(e["args"]["bytes"]);
    }
    CHECK(names == 2);
    CHECK(counted == std::vector<double>{0, 8, 0, 0, 8, 0});
    REQUIRE(spans.size() == 2 + 6);
    CHECK(spans[0]["name"] == "step 1");
    CHECK(spans[0]["ts"] == 0);
    CHECK(spans[0]["dur"] == 6e6);
    CHECK(spans[3]["name"] == "matmul");
    CHECK(spans[3]["ts"] == 1e6);
    CHECK(spans[3]["args"]["layer"] == "a, \"b\"");
    CHECK(spans[3]["args"]["flops"] == 12);
    CHECK(spans[3]["cat"] == "forward");
    for (const auto& a : spans)
        for (const auto& b : spans) {
            const double first = a["ts"], last = first + a["dur"].get<double>(), from = b["ts"],
                         to = from + b["dur"].get<double>();
            CHECK((to <= first || last <= from || (first <= from && to <= last) || (from <= first && last <= to)));
        }
}

TEST_CASE_TEMPLATE("the trace of a model", Mode, tg::graph, tg::eager) {
    auto model = tg::compile<Mode>(network{}, tg::spec<float, tg::dyn, 3>{}, tg::mean_squared_error{}, tg::sgd{});
    const tg::profile_result r = tg::profile(model, tg::ones<float>({2, 3}), tg::ones<float>({2, 2}),
                                             {.steps = 4, .peak_flops = 1, .bandwidth = 1, .clock = ticking});
    const auto trace = nlohmann::json::parse(r.chrome_trace());
    std::vector<std::pair<double, double>> steps, calls;
    for (const auto& e : trace["traceEvents"]) {
        if (e["ph"] != "X") continue;
        auto& to = e["cat"] == "step" ? steps : calls;
        to.emplace_back(e["ts"].get<double>(), e["ts"].get<double>() + e["dur"].get<double>());
    }
    CHECK(steps.size() == 4);
    CHECK(calls.size() == 4 * r.calls.size());
    for (const auto& c : calls)
        CHECK(std::any_of(steps.begin(), steps.end(),
                          [&](const auto& s) { return s.first <= c.first && c.second <= s.second; }));
    for (std::size_t i = 1; i < calls.size(); ++i) CHECK(calls[i - 1].second <= calls[i].first);
}

TEST_CASE("comma-separated values") {
    const std::string csv = small().csv();
    CHECK(csv == "phase,layer,line,operation,shape,calls,median_ms,least_ms,flops,bytes,bound_ms,reached,arena_bytes,"
                 "live_bytes\n"
                 "ingestion,,,wait for a batch,,2,500,500,0,0,0,0,0,0\n"
                 "forward,\"a, \"\"b\"\"\",,matmul,\"f32[2,3] f32[3] -> f32[2]\",2,2000,1000,12,44,500,0.5,0,8\n"
                 "update,c,,subtract,-> f32[2],2,2000,2000,0,0,0,0,0,0\n");
}

TEST_CASE("the table") {
    auto r = small();
    const auto position = [](const std::string& text, std::string_view what) { return text.find(what); };
    const std::string in_order = r.text({.in_order = true}), by_time = r.text();
    CHECK(position(in_order, "wait for a batch") < position(in_order, "matmul"));
    CHECK(position(by_time, "wait for a batch") > position(by_time, "subtract"));
    CHECK(position(by_time, "ingestion 500.000 ms, forward 2000.000 ms, update 2000.000 ms\n") != std::string::npos);
    CHECK(position(r.text({.rows = 1}), "and 2 more calls\n") != std::string::npos);
    CHECK(position(r.text({.rows = -1}), "more calls") == std::string::npos);
    CHECK(position(r.text({.rows = 0}), "phase") == std::string::npos);
    // Columns are aligned: the head's "phase" stands where the rows' phases begin.
    const std::size_t head = by_time.find("  phase"), line = by_time.rfind('\n', head);
    const std::size_t next = by_time.find('\n', head);
    CHECK(by_time.substr(next + (head - line), 9) == "  forward");
    CHECK(position(by_time, "outside") == std::string::npos);
    r.calls[1].reached = 0.4;
    CHECK(position(r.text(),
                   "outside 0.5 to 1.2 of the bound: 1 calls, 100.0% of the time\n  0.40  2000.000 ms  a, \"b\": "
                   "matmul  f32[2,3]") != std::string::npos);
}

TEST_CASE("nothing measured") {
    const tg::profile_result none;
    CHECK(none.text().find("0 calls") != std::string::npos);
    const std::string csv = none.csv();
    CHECK(std::count(csv.begin(), csv.end(), '\n') == 1); // the names of the columns
    CHECK(nlohmann::json::parse(none.chrome_trace())["traceEvents"].size() == 2);
}

} // namespace report_test
