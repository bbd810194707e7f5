#include "report.hpp"

#include <tapegraph/io/svg_chart.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <system_error>

namespace batch_study {

namespace {

namespace io = tapegraph::io;

constexpr double megabyte = 1e6;

const std::filesystem::path& made(const std::filesystem::path& folder) {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (!std::filesystem::is_directory(folder))
        throw tapegraph::data_error("--out '" + folder.string() + "': the folder cannot be made" +
                                    (failure ? ": " + failure.message() : std::string()));
    return folder;
}

const run_result* find(const std::vector<run_result>& runs, const std::string& mode, std::int64_t batch_size) {
    for (const auto& r : runs)
        if (r.key.mode == mode && r.key.batch_size == batch_size) return &r;
    return nullptr;
}

/// Bars, one group per batch size and one colour per mode.
template <class Value>
io::chart bars(const std::vector<run_result>& runs, std::string title, std::string unit, Value value) {
    io::chart c{.title = std::move(title),
                .x_label = "batch size",
                .y_label = std::move(unit),
                .kind = io::chart_kind::grouped_bar};
    std::vector<std::int64_t> sizes;
    std::vector<std::string> modes;
    for (const auto& r : runs) {
        if (std::find(sizes.begin(), sizes.end(), r.key.batch_size) == sizes.end()) sizes.push_back(r.key.batch_size);
        if (std::find(modes.begin(), modes.end(), r.key.mode) == modes.end()) modes.push_back(r.key.mode);
    }
    for (const auto size : sizes) c.categories.push_back(std::to_string(size));
    for (const auto& mode : modes) {
        io::chart_series s{.name = mode, .y = {}};
        for (const auto size : sizes) {
            const run_result* r = find(runs, mode, size);
            s.y.push_back(r != nullptr ? value(*r) : std::numeric_limits<double>::quiet_NaN());
        }
        c.series.push_back(std::move(s));
    }
    return c;
}

io::chart learning(const std::vector<run_result>& runs) {
    io::chart c{.title = "Validation accuracy", .x_label = "epoch", .y_label = "accuracy", .from_zero = false};
    for (const auto& r : runs) {
        io::chart_series s{.name = r.key.mode + " " + std::to_string(r.key.batch_size), .y = {}};
        for (const auto& e : r.epochs) {
            s.x.push_back(static_cast<double>(s.x.size() + 1));
            s.y.push_back(e.validation_accuracy);
        }
        c.series.push_back(std::move(s));
    }
    return c;
}

} // namespace

report::report(const std::filesystem::path& folder)
    : folder_(made(folder)),
      runs_csv_(folder / "batch_study.csv", {"mode", "batch_size", "seconds_per_epoch", "ms_per_step", "ms_ingestion",
                                             "samples_per_second", "peak_memory_bytes", "train_loss", "train_accuracy",
                                             "validation_loss", "validation_accuracy", "device"}),
      epochs_csv_(folder / "batch_study_epochs.csv", {"mode", "batch_size", "epoch", "steps", "seconds", "train_loss",
                                                      "train_accuracy", "validation_loss", "validation_accuracy"}) {}

std::string report::table_head() {
    return "            seconds  ms/step:   ms/step:    images   peak MB:  peak MB:     train     train     valid.    "
           "valid.  eager/graph\n"
           "mode  batch  /epoch  training  ingestion      /s    arena+pool  process      loss  accuracy      loss  "
           "accuracy   time   mem.\n";
}

std::string report::add(const run_result& r) {
    const tapegraph::epoch_result& last = r.epochs.back();
    runs_csv_.row(r.key.mode, r.key.batch_size, r.seconds_per_epoch(), r.training_ms(), r.ingestion_ms(),
                  r.images_per_second(), r.library_bytes, last.loss, last.accuracy, last.validation_loss,
                  last.validation_accuracy, r.device);
    for (std::size_t i = 0; i < r.epochs.size(); ++i) {
        const auto& e = r.epochs[i];
        epochs_csv_.row(r.key.mode, r.key.batch_size, i + 1, e.steps, e.seconds, e.loss, e.accuracy, e.validation_loss,
                        e.validation_accuracy);
    }
    runs_.push_back(r);

    char text[256];
    std::snprintf(text, sizeof text, "%-5s %5lld %8.2f %9.1f %10.2f %8.1f %12.1f %8.1f %9.4f %9.3f %9.4f %9.3f",
                  r.key.mode.c_str(), static_cast<long long>(r.key.batch_size), r.seconds_per_epoch(), r.training_ms(),
                  r.ingestion_ms(), r.images_per_second(), static_cast<double>(r.library_bytes) / megabyte,
                  static_cast<double>(r.process_bytes) / megabyte, last.loss, last.accuracy, last.validation_loss,
                  last.validation_accuracy);
    std::string line = text;
    // The ratio stands in the line of whichever mode comes second.
    const run_result* graph = find(runs_, "graph", r.key.batch_size);
    const run_result* eager = find(runs_, "eager", r.key.batch_size);
    if (graph != nullptr && eager != nullptr) {
        std::snprintf(text, sizeof text, " %6.2f %6.2f", eager->training_ms() / graph->training_ms(),
                      static_cast<double>(eager->library_bytes) / static_cast<double>(graph->library_bytes));
        line += text;
    }
    return line;
}

std::string report::finish() const {
    io::write_svg_chart(folder_ / "batch_study.svg", bars(runs_, "Training speed", "images per second",
                                                          [](const run_result& r) { return r.images_per_second(); }));
    io::write_svg_chart(folder_ / "batch_study_memory.svg",
                        bars(runs_, "Peak memory of arena and tensor pool", "megabytes",
                             [](const run_result& r) { return static_cast<double>(r.library_bytes) / megabyte; }));
    io::write_svg_chart(folder_ / "batch_study_learning.svg", learning(runs_));
    return (folder_ / "batch_study.csv").string() + ", batch_study_epochs.csv, batch_study.svg, " +
           "batch_study_memory.svg, batch_study_learning.svg";
}

} // namespace batch_study
