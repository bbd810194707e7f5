#pragma once

#include <tapegraph/formats/csv_field.hpp>
#include <tapegraph/graph/text_table.hpp>
#include <tapegraph/profile/result.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

/// Formats a profile as text and as comma-separated values.

namespace tapegraph {

namespace profiling {

using tapegraph::detail::formatted, tapegraph::detail::shortened, tapegraph::detail::text_table,
    tapegraph::detail::with_prefix;

/// Seconds as milliseconds with three digits.
inline std::string milliseconds(double seconds) { return formatted("%.3f", seconds * 1e3); }
/// A share as percent with one digit.
inline std::string percent(double share) { return formatted("%.1f%%", 100 * share); }

/// The line above the tables: steps, device, threads and times.
inline std::string head_of(const profile_result& r) {
    std::string s = formatted("%d steps on %s, %d threads: median ", static_cast<int>(r.steps.size()), r.device.c_str(),
                              r.threads) +
                    milliseconds(r.step.median) + " ms, least " + milliseconds(r.step.least) + " ms; " +
                    std::to_string(r.calls.size()) + " calls are " + percent(r.calls_share) + " of it\n";
    s += with_prefix(r.flops(), "FLOP");
    if (r.step.median > 0) s += ", " + with_prefix(r.flops() / r.step.median, "FLOP/s");
    if (r.arena_bytes > 0) s += ", arena " + with_prefix(static_cast<double>(r.arena_bytes), "B");
    if (r.kept_bytes > 0) s += ", kept " + with_prefix(static_cast<double>(r.kept_bytes), "B");
    if (r.peaks.flops > 0) s += "; peaks " + with_prefix(r.peaks.flops, "FLOP/s");
    if (r.peaks.memory_bandwidth() > 0) s += ", " + with_prefix(r.peaks.memory_bandwidth(), "B/s") + " of memory";
    s += '\n';
    for (const phase p : {phase::ingestion, phase::forward, phase::backward, phase::update})
        if (const double seconds = r.seconds_of(p); seconds > 0)
            s += std::string(s.ends_with('\n') ? "" : ", ") + name_of(p) + ' ' + milliseconds(seconds) + " ms";
    return s + "\n";
}

/// The table of calls, the longest first.
inline std::string calls_of(const profile_result& r, const table_options& options) {
    std::vector<const call*> shown;
    double sum = 0;
    for (const call& c : r.calls) {
        shown.push_back(&c);
        sum += c.seconds.median;
    }
    if (!options.in_order)
        std::stable_sort(shown.begin(), shown.end(),
                         [](const auto* a, const auto* b) { return a->seconds.median > b->seconds.median; });
    const std::size_t most = options.rows < 0 ? shown.size() : static_cast<std::size_t>(options.rows);
    const std::size_t left_out = shown.size() - std::min(most, shown.size());
    shown.resize(shown.size() - left_out);
    text_table table(
        {"ms", "least", "share", "GFLOP/s", "GB/s", "reached", "phase", "layer", "operation", "shape", "line"}, 5);
    for (const call* c : shown) {
        const double seconds = c->seconds.least;
        const auto rate = [&](double n) { return seconds > 0 && n > 0 ? formatted("%.1f", n / seconds / 1e9) : ""; };
        table.add({milliseconds(c->seconds.median), milliseconds(seconds),
                   sum > 0 ? percent(c->seconds.median / sum) : "", rate(c->flops), rate(c->bytes),
                   c->bound > 0 ? formatted("%.2f", c->reached) : "", name_of(c->phase), shortened(c->layer),
                   shortened(c->operation), shortened(c->shape, 64), c->line});
    }
    std::string s = table.text();
    if (left_out > 0) s += "and " + std::to_string(left_out) + " more calls\n";
    return s;
}

/// The table of layers.
inline std::string layers_of(const profile_result& r) {
    text_table table({"ms", "forward", "backward", "update", "calls", "GFLOP", "MB", "reached", "layer"}, 1);
    for (const layer& l : r.layers)
        table.add({milliseconds(l.seconds), milliseconds(l.forward), milliseconds(l.backward), milliseconds(l.update),
                   std::to_string(l.calls), formatted("%.3f", l.flops / 1e9), formatted("%.1f", l.bytes / 1e6),
                   l.bound > 0 && l.least > 0 ? formatted("%.2f", l.bound / l.least) : "",
                   l.path.empty() ? "(no layer)" : l.path});
    return table.text();
}

/// Which calls are far from the peaks, and what that costs.
inline std::string off_the_bound_of(const profile_result& r) {
    const auto off = r.off_the_bound();
    double all = 0, seconds = 0;
    for (const call& c : r.calls)
        if (c.bound > 0) all += c.seconds.median;
    for (const call* c : off) seconds += c->seconds.median;
    if (off.empty() || !(all > 0)) return {};
    std::string s = "outside 0.5 to 1.2 of the bound: " + std::to_string(off.size()) + " calls, " +
                    percent(seconds / all) + " of the time\n";
    for (std::size_t i = 0; i < off.size() && i < 5; ++i)
        s += "  " + formatted("%.2f", off[i]->reached) + "  " + milliseconds(off[i]->seconds.median) + " ms  " +
             (off[i]->layer.empty() ? "" : off[i]->layer + ": ") + shortened(off[i]->operation) + "  " +
             shortened(off[i]->shape, 64) + "\n";
    return s;
}

/// The line of the processor's counters.
inline std::string counters_of(const profile_result& r) {
    counter_values sum;
    for (const call& c : r.calls) sum += c.counted;
    std::string s = "counters per step";
    for (int i = 0; i < counter_count; ++i)
        if (const std::string name = name_of(static_cast<counter>(i));
            r.missing_counters.find(name + ':') == std::string::npos)
            s += ", " + name + ' ' + with_prefix(sum.at[i], "");
    return s + "\n" + r.missing_counters;
}

} // namespace profiling

inline std::string profile_result::text(const profiling::table_options& options) const {
    std::string s = profiling::head_of(*this);
    if (counted) s += profiling::counters_of(*this);
    if (options.rows != 0) s += "\n" + profiling::calls_of(*this, options);
    if (options.layers && !layers.empty()) s += "\n" + profiling::layers_of(*this);
    if (const std::string off = profiling::off_the_bound_of(*this); !off.empty()) s += "\n" + off;
    return s;
}

inline std::string profile_result::csv() const {
    using io::csv_field;
    std::string s =
        "phase,layer,line,operation,shape,calls,median_ms,least_ms,flops,bytes,bound_ms,reached,arena_bytes,"
        "live_bytes";
    for (int i = 0; counted && i < profiling::counter_count; ++i)
        s.append(",").append(profiling::name_of(static_cast<profiling::counter>(i)));
    s += '\n';
    for (const profiling::call& c : calls) {
        for (const std::string& field :
             {std::string(profiling::name_of(c.phase)), c.layer, c.line, c.operation, c.shape})
            s += csv_field(std::string_view(field)) + ',';
        s += csv_field(c.count);
        for (const double number : {c.seconds.median * 1e3, c.seconds.least * 1e3, c.flops, c.bytes, c.bound * 1e3,
                                    c.reached, static_cast<double>(c.arena_bytes), static_cast<double>(c.live_bytes)})
            s += ',' + csv_field(number);
        for (int i = 0; counted && i < profiling::counter_count; ++i) {
            s += ',';
            const std::string name = profiling::name_of(static_cast<profiling::counter>(i));
            if (missing_counters.find(name + ':') == std::string::npos) s += csv_field(c.counted.at[i]);
        }
        s += '\n';
    }
    return s;
}

} // namespace tapegraph
