#include "results.hpp"

#include "options.hpp"

#include <tapegraph/formats/csv.hpp>
#include <tapegraph/formats/file.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <system_error>
#include <utility>

namespace study {

namespace {

std::string gigabytes(double bytes) {
    char text[40];
    std::snprintf(text, sizeof text, bytes < 1e8 ? "%.1f MB" : "%.2f GB", bytes < 1e8 ? bytes / 1e6 : bytes / 1e9);
    return text;
}

bool is_run(const json& row, const json& key) {
    for (const auto& [name, value] : key.items())
        if (!row.contains(name) || row[name] != value) return false;
    return true;
}

} // namespace

double number(const json& row, const char* member) {
    const auto found = row.find(member);
    return found != row.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string text(const json& row, const char* member) {
    const auto found = row.find(member);
    return found != row.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string why_not(const json& row) {
    if (text(row, "status") != "out of memory") return text(row, "status") + ": " + text(row, "note");
    const std::string note = text(row, "note");
    const double limit = number(row, "memory_limit_bytes");
    return "does not fit: needs " + (note.empty() ? "" : note + " ") + gigabytes(number(row, "needed_bytes")) +
           (std::isnan(limit) ? "" : ", " + gigabytes(limit) + " may be used");
}

std::string csv_text(const json& value) {
    if (value.is_null()) return {};
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number_float()) return tapegraph::io::csv_field(value.get<double>());
    return value.dump();
}

results::results(std::filesystem::path folder, std::string name, json configuration, std::vector<std::string> columns,
                 bool fresh)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      configuration_(std::move(configuration)),
      columns_(std::move(columns)) {
    std::error_code failure;
    std::filesystem::create_directories(folder_, failure);
    if (!std::filesystem::is_directory(folder_))
        throw tapegraph::data_error("--out '" + folder_.string() + "': the folder cannot be made" +
                                    (failure ? ": " + failure.message() : std::string()));
    if (!fresh && std::filesystem::exists(json_file())) read();
    write();
}

void results::read() {
    const std::string file = "'" + json_file().string() + "'", way_out = "; --fresh begins anew";
    const auto bytes = tapegraph::io::read_file(json_file());
    const json stored = json::parse(bytes, nullptr, false);
    if (!stored.is_object() || !stored.contains("configuration") || !stored["configuration"].is_object() ||
        !stored.contains("rows") || !stored["rows"].is_array() || text(stored, "study") != name_)
        throw tapegraph::data_error(file + " holds no results of " + name_ + way_out);
    const json& other = stored["configuration"];
    for (const auto& [option, value] : configuration_.items()) {
        const json theirs = other.contains(option) ? other[option] : json();
        if (theirs != value)
            throw usage_error(file + " was measured with " + option + " " + theirs.dump() + ", not " + value.dump() +
                              "; give the same options, another --out, or --fresh to begin anew");
    }
    rows_ = stored["rows"].get<std::vector<json>>();
    for (const json& row : rows_)
        if (!row.is_object()) throw tapegraph::data_error(file + ": a row is not an object" + way_out);
}

void results::write() const {
    const json all{{"study", name_}, {"configuration", configuration_}, {"rows", rows_}};
    tapegraph::io::atomic_file out(json_file());
    out.write(all.dump(1) + "\n");
    out.commit();
    tapegraph::io::csv_writer table(csv_file(), columns_);
    for (const json& row : rows_) {
        std::vector<std::string> fields;
        for (const std::string& column : columns_)
            fields.push_back(csv_text(row.contains(column) ? row[column] : json()));
        table.row(fields);
    }
}

std::size_t results::place_of(const json& key) const {
    const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const json& row) { return is_run(row, key); });
    return static_cast<std::size_t>(found - rows_.begin());
}

const json* results::find(const json& key) const {
    const std::size_t place = place_of(key);
    return place == rows_.size() ? nullptr : &rows_[place];
}

void results::put(const json& key, json row) {
    json whole = key;
    whole.update(row);
    const std::size_t place = place_of(key);
    if (place == rows_.size()) rows_.emplace_back();
    rows_[place] = std::move(whole);
    write();
}

} // namespace study
