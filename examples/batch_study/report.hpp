#pragma once

#include "run.hpp"

#include "../study/results.hpp"

#include <string>
#include <vector>

namespace batch_study {

/// The columns of the CSV file.
std::vector<std::string> columns();
/// The members of a finished run's row.
study::json row_of(const run_result& r);

/// The printed table, the charts, and the CSV file of epochs.
class report {
public:
    report(const study::results& all, std::string name) : all_(&all), name_(std::move(name)) {}

    /// Two lines that name the columns.
    static std::string table_head();
    /// Formats a row as a line of the table.
    std::string line(const study::json& row) const;
    /// Writes epochs and charts of the results so far; returns the names of all files, for the last
    /// line.
    std::string finish() const;

private:
    const study::json* find(const std::string& mode, std::int64_t batch_size) const;

    const study::results* all_;
    std::string name_;
};

} // namespace batch_study
