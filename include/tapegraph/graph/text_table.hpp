#pragma once

#include <tapegraph/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

/// Text tables for reports.

namespace tapegraph::detail {

/// Columns as wide as their content; numbers are right-aligned, texts of the last columns
/// left-aligned.
class text_table {
public:
    using row = std::vector<std::string>;
    /// `texts`: how many of the last columns contain text.
    explicit text_table(row head, std::size_t texts) : texts_(texts) { add(std::move(head)); }
    void add(row cells) { rows_.push_back(std::move(cells)); }

    std::string text() const {
        std::vector<std::size_t> widths(rows_.front().size());
        for (const row& r : rows_)
            for (std::size_t c = 0; c < r.size(); ++c) widths[c] = std::max(widths[c], r[c].size());
        std::string all;
        for (const row& r : rows_) {
            std::string line;
            for (std::size_t c = 0; c < r.size(); ++c) {
                const std::string gap(widths[c] - r[c].size(), ' ');
                const bool left = c + texts_ >= widths.size();
                line += (c > 0 ? "  " : "") + (left ? r[c] + gap : gap + r[c]);
            }
            line.erase(line.find_last_not_of(' ') + 1);
            all += line + '\n';
        }
        return all;
    }

private:
    std::vector<row> rows_;
    std::size_t texts_;
};

template <class... Numbers>
std::string formatted(const char* format, Numbers... numbers) {
    char text[128];
    std::snprintf(text, sizeof text, format, numbers...);
    return text;
}
inline std::string shortened(const std::string& text, std::size_t longest = 40) {
    return text.size() <= longest ? text : text.substr(0, longest - 3) + "...";
}
/// "12.3 GFLOP", "4.0 MB"
inline std::string with_prefix(double value, const char* unit) {
    const char* prefixes[]{"", "k", "M", "G", "T", "P"};
    int k = 0;
    for (; k < 5 && value >= 1000; ++k) value /= 1000;
    return formatted(k == 0 ? "%.0f %s%s" : "%.1f %s%s", value, prefixes[k], unit);
}

} // namespace tapegraph::detail
