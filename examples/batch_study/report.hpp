#pragma once

#include "run.hpp"

#include <tapegraph/io/csv.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace batch_study {

/// The printed table and the files of the --out folder; each run is in them as soon as it is done.
class report {
public:
    /// Makes the folder and the CSV files. Throws tapegraph::data_error where that fails.
    explicit report(const std::filesystem::path& folder);

    /// Two lines that name the columns.
    static std::string table_head();
    /// Adds a run; returns its line of the table.
    std::string add(const run_result& r);
    /// Writes the charts; returns the names of all files, for the last line.
    std::string finish() const;

private:
    std::filesystem::path folder_;
    tapegraph::io::csv_writer runs_csv_, epochs_csv_;
    std::vector<run_result> runs_;
};

} // namespace batch_study
