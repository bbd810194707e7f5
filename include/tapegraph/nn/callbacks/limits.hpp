#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/nn/callbacks/monitor.hpp>

#include <cmath>
#include <string>

namespace tapegraph {

/// Ends training at a step whose loss is no number or infinite. `compile_options::check_finite` says which operation it came from.
struct terminate_on_nan {
    void on_batch_end(training_state& s) {
        if (!std::isfinite(s.batch_loss))
            s.stop("terminate_on_nan: the loss of step " + std::to_string(s.step) + " is " +
                   std::to_string(s.batch_loss));
    }
};

/// Interrupts training, behind the step that runs, once it has taken this long; a run that is resumed has that time anew.
struct time_limit {
    double seconds = 0;

    double started = 0; ///< what it remembers

    void on_train_begin(training_state&) {
        detail::check_not_negative("time_limit", "seconds", seconds);
        started = detail::steady_seconds();
    }
    void on_batch_end(training_state& s) { look(s); }
    void on_epoch_end(training_state& s) { look(s); }

    void look(training_state& s) const {
        if (detail::steady_seconds() - started >= seconds && !s.ends())
            s.interrupt("time_limit: " + std::to_string(seconds) + " s");
    }
};

} // namespace tapegraph
