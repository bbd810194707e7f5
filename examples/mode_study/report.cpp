#include "report.hpp"
#include "../study/svg_chart.hpp"

#include <tapegraph/formats/file.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace mode_study {

namespace {

namespace io = tapegraph::io;
using study::json;
using study::number;

/// One way of training, with both modes side by side.
struct configuration {
    std::string training, source;

    std::string name() const { return training + ", " + (source == "arrays" ? "arrays" : "data set"); }
};

std::vector<configuration> configurations(const options& o) {
    std::vector<configuration> all;
    for (const std::string& training : o.trainings)
        for (const std::string& source : o.sources) all.push_back({training, source});
    return all;
}

/// Model and length of the table's rows, in order.
std::vector<std::pair<std::string, std::int64_t>> table_rows(const options& o) {
    std::vector<std::pair<std::string, std::int64_t>> rows;
    for (const cell& c : o.cells())
        if (rows.empty() || rows.back() != std::pair(c.model, c.length)) rows.emplace_back(c.model, c.length);
    return rows;
}

double seconds_of(const study::results& all, const cell& c) {
    const json* const row = all.find(key_of(c));
    return row != nullptr ? number(*row, "seconds_per_iteration") : std::nan("");
}

bool shortened(const json& row, const options& o) {
    return study::finished(row) && (number(row, "iterations") < static_cast<double>(o.iterations) ||
                                    number(row, "warm_up") < static_cast<double>(o.warm_up));
}

std::string with_digits(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

/// "0.0123", "0.5*" where fewer iterations were timed, "-" where there is no result.
std::string entry(const json* row, const options& o) {
    if (row == nullptr || !study::finished(*row)) return "-";
    return with_digits(number(*row, "seconds_per_iteration")) + (shortened(*row, o) ? "*" : "");
}

/// The meaning of the table's marks, once each, with the cells that they apply to.
std::string notes(const study::results& all, const options& o) {
    std::vector<std::pair<std::string, std::string>> notes_with_cells; // the note, and its cells
    for (const cell& c : o.cells()) {
        const json* const row = all.find(key_of(c));
        const std::string which = c.mode + ", " + configuration{c.training, c.source}.name();
        std::string what = c.model + ", L = " + std::to_string(c.length) + ": ";
        if (row == nullptr)
            what += "not yet measured";
        else if (!study::finished(*row))
            what += study::why_not(*row);
        else if (shortened(*row, o))
            what += with_digits(number(*row, "iterations")) + " iterations after " +
                    with_digits(number(*row, "warm_up")) + " of warm-up were all the time there was (*)";
        else
            continue;
        const auto found = std::find_if(notes_with_cells.begin(), notes_with_cells.end(),
                                        [&](const auto& note) { return note.first == what; });
        if (found == notes_with_cells.end())
            notes_with_cells.emplace_back(what, which);
        else
            found->second += "; " + which;
    }
    std::string text;
    const std::size_t in_row = configurations(o).size() * o.modes.size();
    for (const auto& [what, which] : notes_with_cells) {
        const auto cells = static_cast<std::size_t>(std::count(which.begin(), which.end(), ';')) + 1;
        text += "- " + what + (cells == in_row ? "" : " [" + which + "]") + "\n";
    }
    return text;
}

study::chart ratio_chart(const study::results& all, const options& o) {
    study::chart c{.title = "Eager over graph mode",
                   .x_label = "model and length",
                   .y_label = "time of an iteration",
                   .kind = study::chart_kind::grouped_bar};
    for (const configuration& how : configurations(o)) {
        study::chart_series s{.name = how.name(), .y = {}};
        for (const auto& [model, length] : table_rows(o))
            s.y.push_back(seconds_of(all, {model, length, "eager", how.training, how.source}) /
                          seconds_of(all, {model, length, "graph", how.training, how.source}));
        c.series.push_back(std::move(s));
    }
    for (const auto& [model, length] : table_rows(o)) c.categories.push_back(model + " " + std::to_string(length));
    c.width = std::max(c.width, 130 * static_cast<int>(c.categories.size()));
    return c;
}

/// For one model: time steps of a series per second, a unit that all lengths share.
study::chart speed_chart(const study::results& all, const options& o, const std::string& model) {
    study::chart c{.title = "Training speed, " + model,
                   .x_label = "length",
                   .y_label = "1,000 time steps per second",
                   .kind = study::chart_kind::grouped_bar,
                   .width = 1100};
    for (const auto& [name, length] : table_rows(o))
        if (name == model) c.categories.push_back(std::to_string(length));
    for (const configuration& how : configurations(o))
        for (const std::string& mode : o.modes) {
            study::chart_series s{.name = mode + ", " + how.name(), .y = {}};
            for (const auto& [name, length] : table_rows(o))
                if (name == model)
                    s.y.push_back(static_cast<double>(o.batch_size * length) / 1e3 /
                                  seconds_of(all, {model, length, mode, how.training, how.source}));
            c.series.push_back(std::move(s));
        }
    c.width = std::max(720, 190 * static_cast<int>(c.series.size())); // the legend is one line
    return c;
}

} // namespace

json key_of(const cell& c) {
    return {{"model", c.model}, {"length", c.length}, {"mode", c.mode}, {"training", c.training}, {"source", c.source}};
}

json row_of(const measurement& m, const options& o) {
    return {{"seconds_per_iteration", m.seconds},
            {"iterations", m.iterations},
            {"warm_up", m.warm_up},
            {"loss", m.loss},
            {"peak_memory_bytes", m.library_bytes},
            {"process_bytes", m.process_bytes},
            {"batch_size", o.batch_size},
            {"device", o.device.name()}};
}

std::vector<std::string> columns() {
    return {"model",
            "length",
            "mode",
            "training",
            "source",
            "batch_size",
            "seconds_per_iteration",
            "iterations",
            "warm_up",
            "loss",
            "peak_memory_bytes",
            "process_bytes",
            "device",
            "status",
            "needed_bytes",
            "memory_limit_bytes",
            "note"};
}

std::string outcome(const json& row, const options& o) {
    if (!study::finished(row)) return study::why_not(row);
    return with_digits(number(row, "seconds_per_iteration")) + " s an iteration" +
           (shortened(row, o) ? " (" + with_digits(number(row, "iterations")) + " timed)" : "");
}

std::string table(const study::results& all, const options& o) {
    const bool both = o.modes.size() == 2;
    std::string head = "| model | L |", rule = "| --- | ---: |", body;
    for (const configuration& how : configurations(o)) {
        for (const std::string& mode : o.modes) head += " " + how.name() + ": " + mode + " |", rule += " ---: |";
        if (both) head += " eager/graph |", rule += " ---: |";
    }
    for (const auto& [model, length] : table_rows(o)) {
        body += "| " + model + " | " + std::to_string(length) + " |";
        for (const configuration& how : configurations(o)) {
            for (const std::string& mode : o.modes)
                body += " " + entry(all.find(key_of({model, length, mode, how.training, how.source})), o) + " |";
            const double ratio = seconds_of(all, {model, length, "eager", how.training, how.source}) /
                                 seconds_of(all, {model, length, "graph", how.training, how.source});
            if (both) body += " " + (std::isnan(ratio) ? std::string("-") : with_digits(ratio)) + " |";
        }
        body += "\n";
    }
    const std::string below = notes(all, o);
    return "Seconds per iteration, batch size " + std::to_string(o.batch_size) + "\n\n" + head + "\n" + rule + "\n" +
           body + (below.empty() ? "" : "\n" + below);
}

std::string write_reports(const study::results& all, const options& o) {
    std::string files = all.csv_file().string() + ", mode_study.json, mode_study.md";
    tapegraph::io::atomic_file text(all.folder() / "mode_study.md");
    text.write(table(all, o));
    text.commit();
    const auto draw = [&](const std::string& name, const study::chart& c) {
        study::write_svg_chart(all.folder() / name, c);
        files += ", " + name;
    };
    if (o.modes.size() == 2) draw("mode_study.svg", ratio_chart(all, o));
    std::string last;
    for (const auto& [model, length] : table_rows(o))
        if (model != last) draw("mode_study_" + model + ".svg", speed_chart(all, o, last = model));
    return files;
}

} // namespace mode_study
