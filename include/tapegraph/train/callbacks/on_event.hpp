#pragma once

#include <tapegraph/train/training_state.hpp>

#include <utility>

/// A callback with a single function: `model.fit(set, options,
/// tg::on_epoch_end([](tg::training_state& s) { ... }))`.

namespace tapegraph {

namespace detail {

#define TG_EVENT(event)                                                                                                \
    template <class F>                                                                                                 \
    struct event##_callback {                                                                                          \
        F f;                                                                                                           \
        void event(training_state& s) { f(s); }                                                                        \
    };
TG_EVENT(on_train_begin)
TG_EVENT(on_train_end)
TG_EVENT(on_epoch_begin)
TG_EVENT(on_epoch_end)
TG_EVENT(on_batch_begin)
TG_EVENT(on_batch_end)
TG_EVENT(on_test_begin)
TG_EVENT(on_test_end)
#undef TG_EVENT

} // namespace detail

#define TG_EVENT(event)                                                                                                \
    template <class F>                                                                                                 \
    auto event(F f) {                                                                                                  \
        return detail::event##_callback<F>{std::move(f)};                                                              \
    }
TG_EVENT(on_train_begin)
TG_EVENT(on_train_end)
TG_EVENT(on_epoch_begin)
TG_EVENT(on_epoch_end)
TG_EVENT(on_batch_begin)
TG_EVENT(on_batch_end)
TG_EVENT(on_test_begin)
TG_EVENT(on_test_end)
#undef TG_EVENT

} // namespace tapegraph
