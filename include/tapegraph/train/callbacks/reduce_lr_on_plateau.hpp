#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/train/callbacks/monitor.hpp>

#include <algorithm>
#include <limits>
#include <string>

namespace tapegraph {

/// Multiplies the learning rate by `factor` when a value stops improving: Keras's
/// ReduceLROnPlateau. The rate is logged as "learning_rate".
struct reduce_lr_on_plateau {
    std::string monitor = "val_loss";
    double factor = 0.1;
    std::int64_t patience = 10;
    better mode = better::automatic;
    double min_delta = 1e-4;
    std::int64_t cooldown = 0; ///< epochs after a change in which nothing is counted
    double min_lr = 0;

    /// State.
    double best = 0;
    std::int64_t wait = 0, cooldown_left = 0;

    void on_train_begin(training_state& s) {
        detail::check_not_negative("reduce_lr_on_plateau", "factor", factor);
        if (factor >= 1)
            throw argument_error("reduce_lr_on_plateau: factor is " + number_text(factor) + ", not below 1");
        detail::check_at_least("reduce_lr_on_plateau", "patience", patience, 0);
        detail::check_at_least("reduce_lr_on_plateau", "cooldown", cooldown, 0);
        detail::check_not_negative("reduce_lr_on_plateau", "min_delta", min_delta);
        detail::check_not_negative("reduce_lr_on_plateau", "min_lr", min_lr);
        s.learning_rate(); // throws where there is none
        constexpr double infinity = std::numeric_limits<double>::infinity();
        best = detail::more_is_better(monitor, mode) ? -infinity : infinity;
        wait = cooldown_left = 0;
    }
    void on_epoch_end(training_state& s) {
        const double* const value = detail::monitored(s, "reduce_lr_on_plateau", monitor);
        const double now = value != nullptr ? *value : 0, rate = s.learning_rate();
        s.logs.set("learning_rate", rate);
        if (value == nullptr) return;
        if (cooldown_left > 0) {
            --cooldown_left;
            wait = 0;
        }
        if (detail::more_is_better(monitor, mode) ? now > best + min_delta : now < best - min_delta) {
            best = now;
            wait = 0;
        } else if (cooldown_left == 0 && ++wait >= patience && rate > min_lr) {
            s.set_learning_rate(std::max(rate * factor, min_lr));
            cooldown_left = cooldown;
            wait = 0;
        }
    }
    void on_state(state_archive& a) {
        a("best", best);
        a("wait", wait);
        a("cooldown_left", cooldown_left);
    }
};

} // namespace tapegraph
