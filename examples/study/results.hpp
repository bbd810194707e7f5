#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

/// The results of a study, one JSON object per run. A row begins with the members that identify its
/// run; its "status" is
///
///     "finished"       the other members are the measurements
///     "out of memory"  "needed_bytes" and "memory_limit_bytes" tell why it could not run
///     "ill-formed"     "note" tells why there is no such model

namespace study {

using json = nlohmann::ordered_json;

/// A member as a number; NaN where it is missing (JSON has no NaN).
double number(const json& row, const char* member);
/// A member as text; empty where it is missing.
std::string text(const json& row, const char* member);
inline bool finished(const json& row) { return text(row, "status") == "finished"; }

/// "does not fit: needs 20.6 GB, 16.0 GB may be used" of a row out of memory, or "ill-formed: ...".
std::string why_not(const json& row);

/// `<name>.json` and `<name>.csv` in a folder; both are complete after every row.
class results {
public:
    /// Reads existing results, unless `fresh`. Throws usage_error where they were measured with
    /// another configuration, tapegraph::data_error where they cannot be read or the folder cannot
    /// be made.
    results(std::filesystem::path folder, std::string name, json configuration, std::vector<std::string> columns,
            bool fresh);

    /// The row of the run that the members of `key` identify; null if there is none.
    const json* find(const json& key) const;
    /// Adds the row of a run or replaces it. Throws tapegraph::data_error where writing fails.
    void put(const json& key, json row);

    const std::vector<json>& rows() const { return rows_; }
    const std::filesystem::path& folder() const { return folder_; }
    std::filesystem::path json_file() const { return folder_ / (name_ + ".json"); }
    std::filesystem::path csv_file() const { return folder_ / (name_ + ".csv"); }

private:
    std::size_t place_of(const json& key) const; ///< the number of rows if there is none
    void read();
    void write() const;

    std::filesystem::path folder_;
    std::string name_;
    json configuration_;
    std::vector<std::string> columns_;
    std::vector<json> rows_;
};

/// Formats a JSON value as a field of a CSV file: empty for null.
std::string csv_text(const json& value);

} // namespace study
