#pragma once

#include <tapegraph/core/component.hpp>

#include <string>
#include <utility>
#include <vector>

/// What `save` and `load` of models are told, and what `load` tells.

namespace tapegraph {

/// Options of save.
struct save_options {
    /// Momentum and the like, too: a model of the same seed then goes on exactly where this one stopped.
    bool optimizer_state = false;
    /// All that training goes on from exactly: optimizer state, seed, frozen variables, and where the last `fit` stopped, with its
    /// history, learning rate and what its callbacks remember.
    bool everything = false;
};

/// Options of load. Of the last five, any one makes it a partial load, which reads variables alone: neither optimizer state nor step.
struct load_options {
    /// Restores the optimizer's state and the step count from a file that holds them. A file of another optimizer's state
    /// is refused; without this only the model's variables are read.
    bool optimizer_state = true;
    /// Restores what save_options::everything wrote; a file without it is refused.
    bool everything = false;

    std::string only{};   ///< variables whose path or scope this pattern is: "encoder", "*/bias"
    std::string prefix{}; ///< what stands before names in the file: "bert/"; other tensors of the file are left alone
    std::string into{};   ///< the scope of the model that the file's names stand in: "encoder"
    /// Names or scopes of the file (after `prefix`) and what the model calls them: {{"fc1", "hidden"}}. The first match counts.
    std::vector<std::pair<std::string, std::string>> rename{};
    bool strict =
        true; ///< throw for what is missing, unexpected or of another shape or type; otherwise it is left out and reported
};

/// What `load` did, by the model's paths, and of tensors that it had no use for by the file's names.
struct load_report {
    std::vector<std::string> matched, missing, unexpected;
    std::vector<std::string>
        mismatched; ///< of another shape or type, and how: "out/bias: [4] f32 in the file, [3] f32 in the model"
    /// A line of numbers, then one for each name that did not match.
    std::string text() const;
};

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION std::string load_report::text() const {
    std::string result = std::to_string(matched.size()) + " matched, " + std::to_string(missing.size()) + " missing, " +
                         std::to_string(unexpected.size()) + " unexpected, " + std::to_string(mismatched.size()) +
                         " mismatched\n";
    for (const auto& name : missing) result.append("missing: ").append(name).append("\n");
    for (const auto& name : unexpected) result.append("unexpected: ").append(name).append("\n");
    for (const auto& name : mismatched) result.append("mismatched: ").append(name).append("\n");
    return result;
}

#endif

} // namespace tapegraph
