#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mode_study {

/// A model of the study.
struct model_entry {
    const char* name;
    std::int64_t channels;
    std::vector<std::int64_t> lengths; ///< series lengths L of the study: time steps per record
    double work;                       ///< approximate multiply-adds per time step of a record in the forward pass
};

/// Small to large convolutions over 30 channels, for any length; and a pair over 16 channels, made
/// for 400 steps.
const std::vector<model_entry>& all_models();
/// Returns null for an unknown name.
const model_entry* find_model(const std::string& name);

/// One cell of the table.
struct cell {
    std::string model;
    std::int64_t length = 0;
    std::string mode;     ///< "graph" or "eager"
    std::string training; ///< "train_on_batch" or "fit"
    std::string source;   ///< "arrays": in memory; "dataset": assembled ahead by a thread

    /// "small:140:graph:fit:arrays"; from_word parses it.
    std::string word() const;
    static cell from_word(const std::string& word);
};

} // namespace mode_study
