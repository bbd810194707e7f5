#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/folder.hpp>
#include <tapegraph/formats/unfinished.hpp>
#include <tapegraph/io/callbacks/file_pattern.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/train/callbacks/monitor.hpp>

#include <limits>
#include <string>
#include <system_error>

/// Callbacks that write models, as safetensors; each file is either complete or absent.

namespace tapegraph {

/// Saves the model at the end of every epoch, every given number of steps, or when a value
/// improves: Keras's ModelCheckpoint.
struct model_checkpoint {
    std::string
        path; ///< "model-{epoch:02d}-{val_loss:.3f}.safetensors": epochs count from 1; also {step} and any value logged
    std::string monitor = "val_loss";
    bool save_best_only = false;
    better mode = better::automatic;
    std::int64_t every_epochs = 1;
    std::int64_t every_steps = 0; ///< instead of epochs, if above 0
    std::int64_t keep = 0;        ///< keep only this many of the last files written; 0: all
    save_options save{};          ///< content of the file: {.everything = true} can be resumed

    /// State: the best value, and the files that it keeps, one per line.
    double best = 0;
    std::string files{};
    std::int64_t count = 0;
    std::string due{}, surplus{}; ///< the file to write now, and the one to remove then

    void on_train_begin(training_state& s);
    void on_batch_begin(training_state& s) const {
        if (every_steps > 0 && s.next_step % every_steps == 0) s.request_checkpoint();
    }
    void on_batch_end(training_state& s) {
        if (every_steps > 0 && s.step % every_steps == 0) choose(s);
    }
    void on_epoch_end(training_state& s) {
        if (every_steps > 0 || (s.epoch + 1) % every_epochs != 0) return;
        choose(s);
        if (!due.empty()) s.request_checkpoint();
    }
    void on_checkpoint(training_state& s);
    void on_state(state_archive& a) {
        a("best", best);
        a("files", files);
        a("count", count);
    }

    /// Decides whether to save, and where, before on_checkpoint, so that the file contains this
    /// callback's state.
    void choose(training_state& s);
};

/// Saves the complete training state at intervals, and resumes from it when the program is started
/// again: Keras's BackupAndRestore, exact to the step. It also saves when training is interrupted.
struct backup_and_restore {
    std::string path;
    std::int64_t every_steps = 0;  ///< 0: at the end of every epoch
    bool delete_checkpoint = true; ///< once training has finished

    void on_train_begin(training_state& s);
    void on_batch_begin(training_state& s) const {
        if (every_steps > 0 && s.next_step % every_steps == 0) s.request_checkpoint();
    }
    void on_epoch_end(training_state& s) const {
        if (every_steps == 0) s.request_checkpoint();
    }
    void on_checkpoint(training_state& s) const { s.model().save(path, {.everything = true}); }
    void on_train_end(training_state& s) const {
        std::error_code ignored;
        if (delete_checkpoint && !s.history.interrupted && s.writes_files()) files::remove(path, ignored);
    }
};

/// Ctrl-C ends training after the current step, and saves the complete training state; a second one
/// ends the process.
struct stop_on_interrupt {
    std::string save{}; ///< the file; empty: none

    void on_train_begin(training_state& s) const { s.stop_on_interrupt(); }
    void on_checkpoint(training_state& s) const {
        if (s.history.interrupted && !save.empty()) s.model().save(save, {.everything = true});
    }
};

#if TG_DEFINES_FOR_HOST(io)

TG_DEFINITION void model_checkpoint::on_train_begin(training_state& s) {
    if (path.empty()) throw argument_error("model_checkpoint: path is empty");
    detail::check_at_least("model_checkpoint", "every_epochs", every_epochs, 1);
    detail::check_at_least("model_checkpoint", "every_steps", every_steps, 0);
    detail::check_at_least("model_checkpoint", "keep", keep, 0);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    best = detail::more_is_better(monitor, mode) ? -infinity : infinity;
    files.clear();
    count = 0;
    due.clear();
    surplus.clear();
    if (s.writes_files()) io::remove_unfinished(files::path(path).parent_path());
}

TG_DEFINITION void model_checkpoint::on_checkpoint(training_state& s) {
    if (due.empty()) return; // another callback's checkpoint
    s.model().save(due, save);
    due.clear();
    std::error_code ignored; // a missing or undeletable file is no reason to end training
    for (; !surplus.empty(); surplus.erase(0, surplus.find('\n') + 1))
        if (s.writes_files()) files::remove(surplus.substr(0, surplus.find('\n')), ignored);
}

TG_DEFINITION void model_checkpoint::choose(training_state& s) {
    if (save_best_only) {
        const double* const value = detail::monitored(s, "model_checkpoint", monitor);
        if (value == nullptr || !(detail::more_is_better(monitor, mode) ? *value > best : *value < best)) return;
        best = *value;
    }
    due = detail::file_name_of(path, s);
    if (("\n" + files).find("\n" + due + "\n") != std::string::npos) return; // overwritten
    files.append(due).append("\n");
    for (++count; keep > 0 && count > keep; --count) {
        const std::size_t end = files.find('\n') + 1;
        surplus.append(files, 0, end); // removed once the new one exists
        files.erase(0, end);
    }
}

TG_DEFINITION void backup_and_restore::on_train_begin(training_state& s) {
    if (path.empty()) throw argument_error("backup_and_restore: path is empty");
    detail::check_at_least("backup_and_restore", "every_steps", every_steps, 0);
    if (s.writes_files()) io::remove_unfinished(files::path(path).parent_path());
    std::error_code ignored;
    if (!files::exists(path, ignored)) return;
    s.model().load(path, {.everything = true});
    s.resume();
}

#endif

} // namespace tapegraph
