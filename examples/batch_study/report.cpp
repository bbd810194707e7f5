#include "report.hpp"
#include "../study/svg_chart.hpp"

#include <tapegraph/formats/csv.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace batch_study {

namespace {

namespace io = tapegraph::io;
using study::json;
using study::number;

constexpr double megabyte = 1e6;

std::string mode_of(const json& row) { return study::text(row, "mode"); }
std::int64_t size_of(const json& row) { return row.at("batch_size").get<std::int64_t>(); }

template <class T>
void add_new(std::vector<T>& values, const T& value) {
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

/// A bar chart with one group per batch size and one colour per mode.
study::chart bars(const study::results& all, const char* title, const char* unit, const char* member, double scale) {
    study::chart c{.title = title, .x_label = "batch size", .y_label = unit, .kind = study::chart_kind::grouped_bar};
    std::vector<std::int64_t> sizes;
    std::vector<std::string> modes;
    for (const json& row : all.rows()) {
        add_new(sizes, size_of(row));
        add_new(modes, mode_of(row));
    }
    std::sort(sizes.begin(), sizes.end());
    for (const auto size : sizes) c.categories.push_back(std::to_string(size));
    for (const auto& mode : modes) {
        study::chart_series s{.name = mode, .y = {}};
        for (const auto size : sizes) {
            const json* const row = all.find({{"mode", mode}, {"batch_size", size}});
            s.y.push_back(row != nullptr ? number(*row, member) / scale
                                         : std::nan("")); // NaN for a run that did not fit
        }
        c.series.push_back(std::move(s));
    }
    return c;
}

study::chart learning(const study::results& all) {
    study::chart c{.title = "Validation accuracy", .x_label = "epoch", .y_label = "accuracy", .from_zero = false};
    for (const json& row : all.rows()) {
        if (!study::finished(row)) continue;
        study::chart_series s{.name = mode_of(row) + " " + std::to_string(size_of(row)), .y = {}};
        for (const json& e : row.at("epochs")) {
            s.x.push_back(static_cast<double>(s.x.size() + 1));
            s.y.push_back(number(e, "validation_accuracy"));
        }
        c.series.push_back(std::move(s));
    }
    c.width = std::max(c.width, 100 * static_cast<int>(c.series.size())); // the legend is one line
    return c;
}

} // namespace

std::vector<std::string> columns() {
    return {"model",
            "mode",
            "batch_size",
            "seconds_per_epoch",
            "ms_per_step",
            "ms_ingestion",
            "samples_per_second",
            "peak_memory_bytes",
            "process_bytes",
            "train_loss",
            "train_accuracy",
            "validation_loss",
            "validation_accuracy",
            "device",
            "status",
            "needed_bytes",
            "memory_limit_bytes",
            "note"};
}

json row_of(const run_result& r) {
    double seconds = 0, waited = 0, steps = 0, records = 0;
    json epochs = json::array();
    for (const tapegraph::epoch_result& e : r.epochs) {
        seconds += e.seconds;
        waited += e.ingestion_seconds;
        steps += static_cast<double>(e.steps);
        records += static_cast<double>(e.records);
        epochs.push_back({{"steps", e.steps},
                          {"seconds", e.seconds},
                          {"train_loss", e.loss},
                          {"train_accuracy", e.accuracy},
                          {"validation_loss", e.validation_loss},
                          {"validation_accuracy", e.validation_accuracy}});
    }
    const tapegraph::epoch_result& last = r.epochs.back();
    return {
        {"seconds_per_epoch", static_cast<double>(r.records) * seconds / records}, // also where epochs stopped early
        {"ms_per_step", 1e3 * (seconds - waited) / steps},
        {"ms_ingestion", 1e3 * waited / steps},
        {"samples_per_second", records / seconds},
        {"peak_memory_bytes", r.library_bytes},
        {"process_bytes", r.process_bytes},
        {"train_loss", last.loss},
        {"train_accuracy", last.accuracy},
        {"validation_loss", last.validation_loss},
        {"validation_accuracy", last.validation_accuracy},
        {"device", r.device},
        {"stopped_early", r.epochs.front().steps < r.batches},
        {"epochs", std::move(epochs)}};
}

const json* report::find(const std::string& mode, std::int64_t batch_size) const {
    const json* const row = all_->find({{"mode", mode}, {"batch_size", batch_size}});
    return row != nullptr && study::finished(*row) ? row : nullptr;
}

std::string report::table_head() {
    return "            seconds  ms/step:   ms/step:   samples   peak MB:  peak MB:     train     train     valid.    "
           "valid.  eager/graph\n"
           "mode  batch  /epoch  training  ingestion      /s    arena+pool  process      loss  accuracy      loss  "
           "accuracy   time   mem.\n";
}

std::string report::line(const json& row) const {
    char text[256];
    std::snprintf(text, sizeof text, "%-5s %5lld ", mode_of(row).c_str(), static_cast<long long>(size_of(row)));
    std::string line = text;
    if (!study::finished(row)) return line + study::why_not(row);
    std::snprintf(text, sizeof text, "%8.2f %9.1f %10.2f %8.1f %12.1f %8.1f %9.4f %9.3f %9.4f %9.3f",
                  number(row, "seconds_per_epoch"), number(row, "ms_per_step"), number(row, "ms_ingestion"),
                  number(row, "samples_per_second"), number(row, "peak_memory_bytes") / megabyte,
                  number(row, "process_bytes") / megabyte, number(row, "train_loss"), number(row, "train_accuracy"),
                  number(row, "validation_loss"), number(row, "validation_accuracy"));
    line += text;
    // The ratio is in the line of whichever mode comes second.
    const json *const graph = find("graph", size_of(row)), *const eager = find("eager", size_of(row));
    if (graph != nullptr && eager != nullptr && &row == std::max(graph, eager)) {
        std::snprintf(text, sizeof text, " %6.2f %6.2f", number(*eager, "ms_per_step") / number(*graph, "ms_per_step"),
                      number(*eager, "peak_memory_bytes") / number(*graph, "peak_memory_bytes"));
        line += text;
    }
    return line;
}

std::string report::finish() const {
    {
        io::csv_writer epochs(all_->folder() / (name_ + "_epochs.csv"),
                              {"mode", "batch_size", "epoch", "steps", "seconds", "train_loss", "train_accuracy",
                               "validation_loss", "validation_accuracy"});
        for (const json& row : all_->rows()) {
            if (!study::finished(row)) continue;
            int number_of_epoch = 0;
            for (const json& e : row.at("epochs")) {
                std::vector<std::string> fields{mode_of(row), std::to_string(size_of(row)),
                                                std::to_string(++number_of_epoch)};
                for (const auto& [name, value] : e.items()) fields.push_back(study::csv_text(value));
                epochs.row(fields);
            }
        }
    }
    std::string files = all_->csv_file().string() + ", " + name_ + ".json, " + name_ + "_epochs.csv";
    const auto draw = [&](const std::string& suffix, const study::chart& c) {
        if (c.series.empty()) return; // interrupted before the first run was done
        study::write_svg_chart(all_->folder() / (name_ + suffix), c);
        files += ", " + name_ + suffix;
    };
    draw(".svg", bars(*all_, "Training speed", "samples per second", "samples_per_second", 1));
    draw("_memory.svg",
         bars(*all_, "Peak memory of arena and tensor pool", "megabytes", "peak_memory_bytes", megabyte));
    draw("_learning.svg", learning(*all_));
    return files;
}

} // namespace batch_study
