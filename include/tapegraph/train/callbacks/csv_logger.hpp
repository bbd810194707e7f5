#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/train/training_state.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

namespace tapegraph {

/// Writes a line per epoch into a CSV file as soon as the epoch ends: its number, from 1, then all values by name. The values of
/// the first epoch, and of validation if there is any, are the columns. A resumed run continues its file, after removing the
/// lines of epochs that it trains again.
struct csv_logger {
    std::string path;
    char separator = ',';
    bool append = false; ///< adds lines to an existing file; only an empty one gets the names first

    /// The state, for checkpoints.
    std::string columns{};  ///< the names, joined by '\n'
    std::int64_t bytes = 0; ///< of the file

    void on_train_begin(training_state&) {
        columns.clear();
        bytes = 0;
    }
    void on_epoch_end(training_state& s) { add_line(s); }
    void on_state(state_archive& a) {
        a("columns", columns);
        a("bytes", bytes);
    }

    /// Writes the line of the epoch that has ended.
    void add_line(const training_state& s);
};

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION void csv_logger::add_line(const training_state& s) {
    if (!s.writes_files()) return;
    const bool first = columns.empty();
    if (first) {
        std::string more;
        for (const named_value& v : s.logs) {
            columns.append(v.name).append("\n");
            const std::string other = "val_" + v.name;
            if (s.validates && !v.name.starts_with("val_") && v.name != "learning_rate" &&
                s.logs.find(other) == nullptr)
                more.append(other).append("\n");
        }
        columns += more;
    }
    std::FILE* const file = std::fopen(path.c_str(), first && !append ? "wb" : "ab");
    if (file == nullptr) throw data_error("csv_logger: '" + path + "' cannot be written: " + std::strerror(errno));
    std::fseek(file, 0, SEEK_END);
    bool complete = true;
    if (const long there = std::ftell(file);
        !first && there > bytes) // lines of epochs that a run which was resumed trains again
        complete = ::ftruncate(::fileno(file), static_cast<off_t>(bytes)) == 0;
    std::fseek(file, 0, SEEK_END);
    const bool names = std::ftell(file) == 0;
    std::string head = "epoch";
    std::string text = std::to_string(s.epoch + 1);
    std::string_view rest = columns;
    while (!rest.empty()) {
        const std::string_view name = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(name.size() + 1);
        (head += separator) += name;
        text += separator;
        if (const double* const value = s.logs.find(name)) text += number_text(*value);
    }
    if (names) text = head + "\n" + text;
    text += '\n';
    complete = std::fwrite(text.data(), 1, text.size(), file) == text.size() && complete;
    complete = std::fflush(file) == 0 && complete;
    bytes = std::ftell(file);
    const int reason = errno;
    const bool closed = std::fclose(file) == 0; // which may be what says that the disk is full
    if (!closed || !complete)
        throw data_error("csv_logger: writing '" + path + "' failed: " + std::strerror(complete ? errno : reason));
}

#endif

} // namespace tapegraph
