#pragma once

#include "measure.hpp"

#include "../study/results.hpp"

#include <string>
#include <vector>

namespace mode_study {

/// The key of a cell's row.
study::json key_of(const cell& c);
/// The members of a finished cell's row.
study::json row_of(const measurement& m, const options& o);
/// Columns of the CSV file.
std::vector<std::string> columns();

/// "0.01234 s", or the reason why there is no result.
std::string outcome(const study::json& row, const options& o);
/// A Markdown table of model and data size by configuration: seconds per iteration in both modes
/// and their ratio; notes below.
std::string table(const study::results& all, const options& o);
/// Writes the table and the charts; returns the names of all files.
std::string write_reports(const study::results& all, const options& o);

} // namespace mode_study
