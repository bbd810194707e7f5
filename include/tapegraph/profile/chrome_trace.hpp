#pragma once

#include <tapegraph/formats/json_reader.hpp>
#include <tapegraph/profile/result.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

/// A profile in Chrome's Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing
/// open.

namespace tapegraph {

namespace profiling {

/// Events of one process and one thread; times in microseconds from the first step's start.
class trace_events {
public:
    /// A span. Spans that begin within another one end within it.
    void span(const std::string& name, const char* category, double start, double seconds,
              const std::string& arguments) {
        add("\"ph\":\"X\",\"name\":" + io::json_string(name) + ",\"cat\":\"" + category +
            "\",\"ts\":" + io::json_number(start * 1e6) + ",\"dur\":" + io::json_number(seconds * 1e6) +
            ",\"tid\":1,\"args\":{" + arguments + "}");
    }
    /// Adds a value of a counter at a time in seconds.
    void count(const char* name, double at, double value) {
        add(std::string("\"ph\":\"C\",\"name\":\"") + name + "\",\"ts\":" + io::json_number(at * 1e6) +
            ",\"args\":{\"bytes\":" + io::json_number(value) + "}");
    }
    /// Gives the process or a thread its name.
    void name(const char* what, const std::string& text) {
        add(std::string("\"ph\":\"M\",\"name\":\"") + what +
            "\",\"tid\":1,\"args\":{\"name\":" + io::json_string(text) + "}");
    }
    /// The file's text.
    std::string json() const { return "{\"traceEvents\":[\n" + events_ + "\n],\"displayTimeUnit\":\"ns\"}\n"; }

private:
    void add(const std::string& event) {
        events_ += (events_.empty() ? "{\"pid\":1," : ",\n{\"pid\":1,") + event + "}";
    }
    std::string events_;
};

/// What Chrome shows when a call is selected.
inline std::string arguments_of(const call& c) {
    std::string s = "\"phase\":\"" + std::string(name_of(c.phase)) + "\"";
    const auto text = [&](const char* name, const std::string& value) {
        if (!value.empty()) s.append(",\"").append(name).append("\":").append(io::json_string(value));
    };
    const auto number = [&](const char* name, double value) {
        if (value > 0) s.append(",\"").append(name).append("\":").append(io::json_number(value));
    };
    text("layer", c.layer);
    text("line", c.line);
    text("shape", c.shape);
    number("flops", c.flops);
    number("bytes", c.bytes);
    number("bound_us", c.bound * 1e6);
    number("reached", c.reached);
    number("arena_bytes", static_cast<double>(c.arena_bytes));
    return s;
}

} // namespace profiling

inline std::string profile_result::chrome_trace() const {
    profiling::trace_events events;
    events.name("process_name", "tapegraph");
    events.name("thread_name", "steps on " + device);
    const double origin = steps.empty() ? 0 : steps.front().start;
    for (std::size_t i = 0; i < steps.size(); ++i)
        events.span("step " + std::to_string(i + 1), "step", steps[i].start - origin, steps[i].seconds, "");
    struct moment {
        const profiling::call* of;
        const profiling::sample* at;
    };
    std::vector<moment> moments;
    for (const profiling::call& c : calls)
        for (const profiling::sample& s : c.samples) moments.push_back({&c, &s});
    std::stable_sort(moments.begin(), moments.end(),
                     [](const moment& a, const moment& b) { return a.at->start < b.at->start; });
    std::vector<std::string> arguments;
    for (const profiling::call& c : calls) arguments.push_back(profiling::arguments_of(c));
    for (const moment& m : moments) {
        events.span(m.of->operation, name_of(m.of->phase), m.at->start - origin, m.at->seconds,
                    arguments[static_cast<std::size_t>(m.of - calls.data())]);
        if (arena_bytes == 0) continue;
        events.count("live bytes of the arena", m.at->start - origin, static_cast<double>(m.of->live_bytes));
    }
    return events.json();
}

} // namespace tapegraph
