#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/train/callbacks/monitor.hpp>

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace tapegraph {

/// Ends training when a value stops improving. The rules are those of Keras's EarlyStopping: an
/// epoch improves if its value is better than the best by more than `min_delta`; it resets the wait
/// if it is also better than `baseline` by as much.
struct early_stopping {
    std::string monitor = "val_loss";
    double min_delta = 0;
    std::int64_t patience = 0; ///< epochs without improvement after which it stops
    better mode = better::automatic;
    std::optional<double> baseline{};
    /// Restores the model's variables (not the optimizer's) of the best epoch at the end, whether
    /// training was stopped or not. A run that is interrupted, and may be resumed, keeps its own.
    bool restore_best_weights = false;
    std::int64_t start_from_epoch = 0; ///< earlier epochs, counted from 0, are ignored

    /// State: the best value and its epoch, from 0 (-1 before there is one), epochs since, and the
    /// weights to restore.
    double best = 0;
    std::int64_t best_epoch = -1, wait = 0;
    std::vector<any_tensor> weights{};

    void on_train_begin(training_state&) {
        detail::check_not_negative("early_stopping", "min_delta", min_delta);
        detail::check_at_least("early_stopping", "patience", patience, 0);
        constexpr double infinity = std::numeric_limits<double>::infinity();
        best = detail::more_is_better(monitor, mode) ? -infinity : infinity;
        best_epoch = -1;
        wait = 0;
        weights.clear();
    }
    void on_epoch_end(training_state& s) {
        if (s.epoch < start_from_epoch) return;
        const double* const value = detail::monitored(s, "early_stopping", monitor);
        if (value == nullptr) return;
        const bool more = detail::more_is_better(monitor, mode);
        const auto improves = [&](double over) { return more ? *value - min_delta > over : *value + min_delta < over; };
        if (restore_best_weights && weights.empty()) keep(s); // the first epoch, if all values are NaN
        ++wait;
        if (improves(best)) {
            best = *value;
            best_epoch = s.epoch;
            if (restore_best_weights) keep(s);
            if (!baseline || improves(*baseline)) wait = 0;
            return;
        }
        if (wait >= patience && s.epoch > 0)
            s.stop("early_stopping: " + monitor + " has not become better than " + number_text(best) + " for " +
                   std::to_string(wait) + " epochs");
    }
    void on_train_end(training_state& s) {
        if (s.history.interrupted || weights.empty()) return;
        std::size_t next = 0;
        s.model().gather_variables();
        for (variable& v : s.model().variables())
            if (!v.optimizer_state() && !v.metric_state()) v.assign(weights[next++]);
        weights.clear();
    }
    void on_state(state_archive& a) {
        a("best", best);
        a("best_epoch", best_epoch);
        a("wait", wait);
        a("weights", weights);
    }

    /// Copies the weights, which are the best so far.
    void keep(const training_state& s) {
        weights.clear();
        s.model().gather_variables();
        for (const variable& v : s.model().variables()) {
            if (v.optimizer_state() || v.metric_state()) continue;
            any_tensor copy = v.data();
            copy.unshare();
            weights.push_back(std::move(copy));
        }
    }
};

} // namespace tapegraph
