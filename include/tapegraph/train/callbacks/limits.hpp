#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/train/callbacks/monitor.hpp>

#include <cmath>
#include <string>

namespace tapegraph {

/// Ends training at a step whose loss is NaN or infinite. `compile_options::check_finite` says
/// which operation it came from.
struct terminate_on_nan {
    void on_batch_end(training_state& s) {
        if (!std::isfinite(s.batch_loss))
            s.stop("terminate_on_nan: the loss of step " + std::to_string(s.step) + " is " + number_text(s.batch_loss));
    }
};

/// Interrupts training after the current step once it has taken this long. A resumed run gets the
/// full time again.
struct time_limit {
    double seconds = 0;

    double started = 0; ///< state

    void on_train_begin(training_state&) {
        detail::check_not_negative("time_limit", "seconds", seconds);
        started = detail::steady_seconds();
    }
    void on_batch_end(training_state& s) { look(s); }
    void on_epoch_end(training_state& s) { look(s); }

    /// Interrupts training if the seconds have passed.
    void look(training_state& s) const {
        if (detail::steady_seconds() - started >= seconds && !s.ends())
            s.interrupt("time_limit: " + number_text(seconds) + " s");
    }
};

} // namespace tapegraph
