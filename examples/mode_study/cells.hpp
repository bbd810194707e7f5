#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mode_study {

/// A model of the study.
struct model_entry {
    const char* name;
    std::int64_t channels;
    std::vector<std::int64_t> lengths; ///< data sizes L of the study: time steps of a record
    double work;                       ///< about how many multiply-adds a time step of a record takes, forward
};

/// Small to large convolutions over 30 channels, for any length; and a pair over 16 channels, made for 400 steps.
const std::vector<model_entry>& all_models();
/// Null for a name that is none.
const model_entry* find_model(const std::string& name);

/// One cell of the table.
struct cell {
    std::string model;
    std::int64_t length = 0;
    std::string mode;     ///< "graph" or "eager"
    std::string training; ///< "train_on_batch" or "fit"
    std::string source;   ///< "arrays": in memory; "dataset": assembled ahead by a thread

    /// "small:140:graph:fit:arrays"; from_word reads it.
    std::string word() const;
    static cell from_word(const std::string& word);
};

} // namespace mode_study
