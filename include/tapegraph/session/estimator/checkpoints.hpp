#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/folder.hpp>
#include <tapegraph/formats/unfinished.hpp>
#include <tapegraph/io/checkpoint_rules.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

/// A folder of checkpoints: the newest few model-<step>.safetensors, best-<step>.safetensors, and
/// best.txt, the value for which that was kept.

namespace tapegraph {

/// When an estimator writes checkpoints, and which it keeps.
struct checkpoint_options {
    std::int64_t every_steps = 0; ///< 0: not by steps
    double every_seconds = 600;   ///< 0: not by time
    std::int64_t keep = 5;        ///< number of newest ones to keep; 0: all
    std::string best{};           ///< "loss", "accuracy" or a metric of the model: also keeps the best in evaluation
    bool best_is_highest = false; ///< whether higher is better for a metric; it always is for accuracy
};

namespace detail {

class checkpoint_folder {
public:
    checkpoint_folder(files::path folder, checkpoint_options options);

    const files::path& path() const { return folder_; }
    const checkpoint_options& options() const { return options_; }
    /// The newest checkpoint; empty where there is none.
    files::path newest() const;
    /// The best one; empty where there is none.
    files::path best() const;
    /// Steps of the checkpoints, ascending.
    std::vector<std::int64_t> steps(std::string_view prefix = "model-") const {
        return io::detail::numbered_entries(folder_, prefix, ".safetensors");
    }

    /// Whether a checkpoint is due after this step.
    bool due(std::int64_t step) const {
        return (options_.every_steps > 0 && step - last_step_ >= options_.every_steps) ||
               (options_.every_seconds > 0 && steady_seconds() - last_time_ >= options_.every_seconds);
    }
    /// Starts counting at this step.
    void begin(std::int64_t step) {
        last_step_ = step;
        last_time_ = steady_seconds();
    }
    /// Writes a checkpoint by `save(path)`, and removes those that are too old.
    template <class Save>
    void write(std::int64_t step, const Save& save) {
        save(file_of("model-", step));
        begin(step);
        for (const std::int64_t old : io::detail::surplus_of(steps(), options_.keep)) remove(file_of("model-", old));
    }
    /// Returns whether a value of options().best is better than all before, and if so writes its
    /// model by `save(path)`.
    template <class Save>
    bool offer(std::int64_t step, double value, const Save& save) {
        if (!better(value)) return false;
        const auto before = steps("best-");
        save(file_of("best-", step));
        write_best(value);
        for (const std::int64_t old : before)
            if (old != step) remove(file_of("best-", old));
        return true;
    }

private:
    files::path file_of(const char* prefix, std::int64_t step) const {
        return folder_ / (prefix + std::to_string(step) + ".safetensors");
    }
    void remove(const files::path& file) const {
        std::error_code failure;
        files::remove(file, failure);
        if (failure) throw data_error(io::detail::quoted(file) + ": cannot be removed: " + failure.message());
    }
    bool better(double value) const {
        return io::detail::improves(value, has_best_, best_, options_.best_is_highest || options_.best == "accuracy");
    }
    void write_best(double value);

    files::path folder_;
    checkpoint_options options_;
    std::int64_t last_step_ = 0;
    double last_time_ = 0;
    bool has_best_ = false;
    double best_ = 0;
};

inline checkpoint_folder::checkpoint_folder(files::path folder, checkpoint_options options)
    : folder_(std::move(folder)), options_(std::move(options)) {
    if (options_.every_steps < 0)
        throw argument_error("estimator: every_steps is " + std::to_string(options_.every_steps));
    if (!(options_.every_seconds >= 0))
        throw argument_error("estimator: every_seconds is " + number_text(options_.every_seconds));
    if (options_.keep < 0) throw argument_error("estimator: keep is " + std::to_string(options_.keep));
    io::detail::make_folder(folder_);
    io::remove_unfinished(folder_);
    std::error_code failure;
    const files::path known = folder_ / "best.txt";
    if (steps("best-").empty() || !files::exists(known, failure)) return;
    const auto bytes = io::read_file(known);
    const auto* const text = reinterpret_cast<const char*>(bytes.data());
    const auto end = tapegraph::detail::read_number(text, text + bytes.size(), best_);
    if (end.ec != std::errc{}) throw data_error(io::detail::quoted(known) + ": holds no number");
    has_best_ = true;
}

inline files::path checkpoint_folder::newest() const {
    const auto known = steps();
    return known.empty() ? files::path{} : file_of("model-", known.back());
}

inline files::path checkpoint_folder::best() const {
    const auto known = steps("best-");
    return known.empty() ? files::path{} : file_of("best-", known.back());
}

inline void checkpoint_folder::write_best(double value) {
    const std::string text = number_text(value) + '\n';
    io::atomic_file file(folder_ / "best.txt");
    file.write(text.data(), text.size());
    file.commit();
    best_ = value;
    has_best_ = true;
}

} // namespace detail
} // namespace tapegraph
