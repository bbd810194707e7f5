#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/io/tensorboard.hpp>
#include <tapegraph/train/callbacks/monitor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tapegraph {

/// How often `tensorboard` writes the scalars of steps.
struct update_every {
    std::int64_t steps = 0; ///< 0: only per epoch
};

/// Logs training for TensorBoard, under the names of Keras's callback: in folder/train
/// "epoch_loss", "epoch_accuracy", those of metrics and "epoch_learning_rate", with epochs from 0
/// as steps; the same in folder/validation; for steps "batch_loss" (only of that step, while other
/// values are means over the epoch so far) and "batch_learning_rate". Each run has a folder of its
/// own; a resumed run continues in it.
struct tensorboard {
    std::string folder = "logs";
    update_every update_freq{}; ///< {1}: also scalars of every step, {100}: of every 100th
    int histogram_freq = 0;     ///< epochs between histograms of the weights; 0: never
    int histogram_buckets = 30;
    bool write_steps_per_second = false; ///< "epoch_steps_per_second" of training, excluding validation
    /// Content of the graph tab: tg::io::graph_def(model), which needs graph mode.
    std::string graph{};
    /// The run's entries in the table of hyperparameters, and the values by which it compares runs;
    /// by default the last training and validation loss.
    std::vector<io::hyperparameter> hyperparameters{};
    std::vector<io::hyperparameter_metric> metrics{};
    bool resume = false; ///< continue in a folder that has events even if `fit` does not resume

    /// State: whether the folder is its own, the steps written, and when an epoch began.
    bool began = false, writes = true;
    double epoch_start = 0, epoch_seconds = -1;
    std::int64_t first_batch = 0;
    std::shared_ptr<io::event_writer> train_writer{}, validation_writer{}, session_writer{};
    std::string tag{};

    /// Writers of folder/train and folder/validation while fit runs, for additions by custom hooks:
    /// pictures, texts.
    io::event_writer& train() { return *train_writer; }
    /// The writer of validation's values, opened by its first use.
    io::event_writer& validation() { return open(validation_writer, "/validation"); }

    void on_train_begin(training_state&) {
        detail::check_at_least("tensorboard", "update_freq", update_freq.steps, 0);
        detail::check_at_least("tensorboard", "histogram_freq", histogram_freq, 0);
        detail::check_at_least("tensorboard", "histogram_buckets", histogram_buckets, 1);
        epoch_seconds = -1;
    }
    // Not in on_train_begin, because only afterwards is it known whether the run resumes. These are
    // templates so that programs that only include this header do not compile the writer.
    void on_epoch_begin(auto& s) { begin(s); }
    void on_batch_begin(auto& s) {
        if (train_writer == nullptr) begin(s); // resumed within an epoch
    }
    void on_batch_end(auto& s) {
        if (update_freq.steps > 0 && s.step % update_freq.steps == 0) write_step(s);
        train_writer->flush_if_due();
    }
    void on_test_begin(training_state&) { epoch_seconds = detail::steady_seconds() - epoch_start; }
    void on_epoch_end(auto& s) { write_epoch(s); }
    void on_train_end(auto& s) { end(s); }
    void on_state(state_archive& a) {
        a("began", began);
        if (a.loading()) began = true;
    }

    void begin(training_state& s);
    /// Writes the values of a training step.
    void write_step(training_state& s);
    /// Writes the values of an epoch, validation's into the folder of their own.
    void write_epoch(training_state& s);
    void end(training_state& s);

private:
    io::event_writer& open(std::shared_ptr<io::event_writer>& writer, const char* below) {
        if (writer == nullptr)
            writer = std::make_shared<io::event_writer>(folder + below,
                                                        io::event_options{.resume = resume || began, .writes = writes});
        return *writer;
    }
    const std::string& tag_of(const char* prefix, std::string_view name) {
        tag.assign(prefix).append(name);
        return tag;
    }
};

inline void tensorboard::begin(training_state& s) {
    epoch_start = detail::steady_seconds();
    epoch_seconds = -1;
    first_batch = s.batch;
    if (train_writer != nullptr) return;
    const bool continues = began;
    writes = s.writes_files();
    open(train_writer, "/train");
    if (s.validates)
        open(validation_writer, "/validation"); // reports a folder that belongs to another run before training starts
    if (!hyperparameters.empty()) {
        open(session_writer, "");
        if (metrics.empty()) {
            metrics.push_back({"epoch_loss", "train"});
            if (s.validates) metrics.push_back({"epoch_loss", "validation"});
        }
        if (!continues) session_writer->hyperparameters(hyperparameters, metrics);
        session_writer->flush();
    }
    if (!graph.empty() && !continues) {
        train_writer->graph(graph);
        train_writer->flush();
    }
    began = true;
}

inline void tensorboard::write_step(training_state& s) {
    train_writer->scalar("batch_loss", s.batch_loss, s.step);
    for (const named_value& v : s.logs)
        if (v.name != "loss" && !v.name.starts_with("val_"))
            train_writer->scalar(tag_of("batch_", v.name), v.value, s.step);
    if (s.has_learning_rate() && s.logs.find("learning_rate") == nullptr)
        train_writer->scalar("batch_learning_rate", s.learning_rate(), s.step);
}

inline void tensorboard::write_epoch(training_state& s) {
    for (const named_value& v : s.logs) {
        const bool validated = v.name.starts_with("val_");
        io::event_writer& to = validated ? validation() : train();
        to.scalar(tag_of("epoch_", std::string_view(v.name).substr(validated ? 4 : 0)), v.value, s.epoch);
    }
    if (s.has_learning_rate() && s.logs.find("learning_rate") == nullptr)
        train_writer->scalar("epoch_learning_rate", s.learning_rate(), s.epoch);
    if (write_steps_per_second) {
        const double seconds = epoch_seconds >= 0 ? epoch_seconds : detail::steady_seconds() - epoch_start;
        train_writer->scalar("epoch_steps_per_second", static_cast<double>(s.batch - first_batch) / seconds, s.epoch);
    }
    if (histogram_freq > 0 && s.epoch % histogram_freq == 0) {
        s.model().gather_variables();
        for (const variable& v : s.model().variables())
            if (!v.optimizer_state() && !v.metric_state())
                train_writer->histogram(tag_of("", v.path()) + "/histogram", v.data(), s.epoch, histogram_buckets);
    }
    train_writer->flush();
    if (validation_writer != nullptr) validation_writer->flush();
}

inline void tensorboard::end(training_state& s) {
    if (session_writer != nullptr && !s.history.interrupted) session_writer->end_session(true);
    // Closes the files, so that the next fit of this callback, and other readers, find them
    // complete.
    for (auto* writer : {&train_writer, &validation_writer, &session_writer}) {
        if (*writer != nullptr) (*writer)->flush();
        writer->reset();
    }
}

} // namespace tapegraph
