#pragma once

#include <tapegraph/core/component.hpp>

#include <string>
#include <utility>
#include <vector>

/// The options of a model's `save` and `load`, and the report that `load` returns.

namespace tapegraph {

/// Options of save.
struct save_options {
    /// Also writes the optimizer's state, such as momentum: a model compiled with the same seed then
    /// continues exactly where this one stopped.
    bool optimizer_state = false;
    /// Writes everything that training needs to continue exactly: optimizer state, seed, frozen
    /// variables, and where the last `fit` stopped, with its history, learning rate and the state of
    /// its callbacks.
    bool everything = false;
};

/// Options of load. Any of the last five makes it a partial load, which reads variables only, neither
/// optimizer state nor step.
struct load_options {
    /// Restores the optimizer's state and the step count if the file holds them, and refuses the state
    /// of another optimizer. Without it only the model's variables are read.
    bool optimizer_state = true;
    /// Restores what save_options::everything wrote; a file without it is refused.
    bool everything = false;

    std::string only{};   ///< loads variables whose path or scope matches this pattern: "encoder", "*/bias"
    std::string prefix{}; ///< a prefix of the file's names, "bert/"; tensors without it are ignored
    std::string into{};   ///< the scope of the model that the file's names belong to: "encoder"
    /// Names or scopes of the file (after `prefix`), and their names in the model: {{"fc1", "hidden"}}.
    /// The first match counts.
    std::vector<std::pair<std::string, std::string>> rename{};
    bool strict =
        true; ///< throw for what is missing, unexpected or of another shape or type; otherwise it is left out and reported
};

/// What `load` did: paths of the model, and for tensors that match none the names in the file.
struct load_report {
    std::vector<std::string> matched, missing, unexpected;
    std::vector<std::string>
        mismatched; ///< of another shape or type, and how: "out/bias: [4] f32 in the file, [3] f32 in the model"
    /// A line of counts, then a line for each name that did not match.
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
