#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/io/checkpoint_manager.hpp>
#include <tapegraph/train/callbacks/monitor.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

/// Keeps checkpoints of a run of fit in a folder while it trains.

namespace tapegraph {

/// Keeps checkpoints of a run, by a checkpoint_manager, and resumes from the newest when the
/// program is started again, exact to the step. It also saves one when training is interrupted.
///
///     model.fit(set, options, tg::keep_checkpoints{.folder = "run", .every_steps = 500, .options = {.best = "val_loss"}});
struct keep_checkpoints {
    files::path folder;
    std::int64_t every_epochs = 1;
    std::int64_t every_steps = 0; ///< instead of epochs, if above 0
    bool restore = true;          ///< false: starts a new run next to existing checkpoints
    checkpoint_manager_options
        options{}; ///< `best` may be "loss", "val_loss" or any value logged at the end of an epoch

    std::shared_ptr<checkpoint_manager> manager{}; ///< created when training begins
    bool due = false;

    void on_train_begin(training_state& s);
    void on_batch_begin(training_state& s) {
        if (every_steps > 0 && s.next_step % every_steps == 0) s.request_checkpoint();
    }
    void on_batch_end(training_state& s) {
        manager->poll();
        if (every_steps > 0 && s.step % every_steps == 0) due = true;
    }
    void on_epoch_end(training_state& s) {
        if (every_steps > 0 || (s.epoch + 1) % every_epochs != 0) return;
        due = true;
        s.request_checkpoint();
    }
    void on_checkpoint(training_state& s);
    void on_train_end(training_state&) { manager->close(); }
};

#if TG_DEFINES_FOR_HOST(io)

TG_DEFINITION void keep_checkpoints::on_train_begin(training_state& s) {
    if (folder.empty()) throw argument_error("keep_checkpoints: folder is empty");
    if (every_steps > 0 && !options.best.empty())
        throw argument_error("keep_checkpoints: '" + options.best +
                             "' is known at the end of an epoch; give every_epochs, not every_steps");
    detail::check_at_least("keep_checkpoints", "every_epochs", every_epochs, 1);
    detail::check_at_least("keep_checkpoints", "every_steps", every_steps, 0);
    due = false;
    options.writes = s.writes_files();
    manager = std::make_shared<checkpoint_manager>(folder, options);
    manager->claim();
    if (restore && manager->restore_latest(s.model())) s.resume();
}

TG_DEFINITION void keep_checkpoints::on_checkpoint(training_state& s) {
    if (!due && !s.history.interrupted) return; // another callback's checkpoint
    due = false;
    checkpoint_state state{.epoch = s.epoch, .position = s.batch};
    for (const auto& value : s.logs) state.metrics[std::string(value.name)] = value.value;
    // Interrupted in the middle of an epoch, or in one without validation: worse than any
    // value.
    if (!options.best.empty()) state.metrics.emplace(options.best, std::numeric_limits<double>::quiet_NaN());
    manager->save(s.model(), state);
}

#endif

} // namespace tapegraph
