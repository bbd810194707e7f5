#pragma once

#include <tapegraph/train/training_state.hpp>

namespace tapegraph {

/// Sets the learning rate of every epoch: `tg::learning_rate_scheduler([](std::int64_t epoch,
/// double rate) { return ...; })`, or without the current rate. Epochs count from 0. The rate is
/// logged as "learning_rate".
template <class Schedule>
struct learning_rate_scheduler {
    Schedule schedule;

    explicit learning_rate_scheduler(Schedule f) : schedule(std::move(f)) {}

    void on_epoch_begin(training_state& s) {
        if constexpr (requires { schedule(s.epoch, 0.0); })
            s.set_learning_rate(schedule(s.epoch, s.learning_rate()));
        else
            s.set_learning_rate(schedule(s.epoch));
    }
    void on_epoch_end(training_state& s) { s.logs.set("learning_rate", s.learning_rate()); }
};

} // namespace tapegraph
