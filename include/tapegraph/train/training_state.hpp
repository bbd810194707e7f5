#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/model/state_archive.hpp>
#include <tapegraph/train/history.hpp>
#include <tapegraph/train/model_base.hpp>

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// What callbacks of `fit` see, and how `fit` calls them.

namespace tapegraph {

namespace detail {

/// A number of an optimizer whose type is erased.
struct optimizer_number {
    void* optimizer = nullptr;
    double (*get)(void*) = nullptr; ///< null: the optimizer has no learning rate
    void (*set)(void*, double) = nullptr;
    // For resuming: of a schedule, the factor by which it is scaled.
    double (*save)(void*) = nullptr;
    void (*restore)(void*, double) = nullptr;
};

} // namespace detail

/// The state of training, which the hooks of a callback receive.
///
/// Steps of a GPU are sent ahead of their results: `on_batch_begin` is called when a step is sent,
/// `on_batch_end` when its values have arrived, while up to 16 later steps are in flight. Changes
/// by a hook affect the steps that are sent after it.
class training_state {
public:
    using metrics_call = void (*)(const detail::model_base&, std::vector<named_value>&);
    training_state(detail::model_base& m, const detail::optimizer_number& rate, metrics_call metrics = nullptr)
        : model_(m), rate_(rate), metrics_(metrics) {}

    std::int64_t epoch = 0, epochs = 1;  ///< the epoch's number, from 0, and fit's `epochs`
    std::int64_t batch = 0, batches = 0; ///< finished steps of this epoch, and how many it has
    std::int64_t step = 0;               ///< of the model: the last finished one, from 1
    std::int64_t next_step = 1;          ///< in on_batch_begin: the one that begins
    double batch_loss = 0;               ///< of that step alone
    bool validates = false;              ///< whether fit has validation data
    /// Means over the epoch so far: "loss" and "accuracy"; at the end of an epoch also the model's
    /// metrics, and "val_loss", ... Callbacks may add values, which the history keeps.
    log_list logs{};
    /// Earlier epochs, those of a run that is resumed among them.
    tapegraph::history history{};

    /// Gives access to variables, save and summary.
    detail::model_base& model() const { return model_; }
    /// Whether callbacks write files here: among ranks that train together only the chief does.
    bool writes_files() const { return model_.writes_files(); }

    /// Puts the model's metrics over this epoch so far into `logs`. For hooks of steps; it waits
    /// for a GPU.
    void read_metrics();

    /// Whether the optimizer has a learning rate that can be read and set.
    bool has_learning_rate() const { return rate_.get != nullptr; }
    /// The optimizer's `learning_rate`. Throws argument_error if it has none.
    double learning_rate() const {
        need_rate();
        return rate_.get(rate_.optimizer);
    }
    /// Sets the rate from the next step on; a schedule continues, scaled to this value. Throws
    /// argument_error if the optimizer has none, and for a rate that is negative or not finite.
    void set_learning_rate(double rate);

    /// Ends training: this epoch ends after the current step, with validation and its hooks.
    void stop(std::string_view reason) {
        if (!ends()) history.stopped_by = reason;
        stopped_ = true;
    }
    /// Ends training after the current step, in the middle of an epoch, as if the process had been
    /// stopped there: what is saved then resumes at the next step.
    void interrupt(std::string_view reason) {
        if (!ends()) history.stopped_by = reason;
        history.interrupted = true;
    }
    /// Whether a callback called `stop`.
    bool stopped() const { return stopped_; }
    /// Whether training ends after this step, stopped or interrupted.
    bool ends() const { return stopped_ || history.interrupted; }

    /// Requests `on_checkpoint` of every callback, after all of them have seen this step or epoch:
    /// the moment at which model().save(path, {.everything = true}) writes what can be resumed. It
    /// also comes when training is interrupted. If requested in on_batch_begin, it comes after just
    /// that step on every device.
    void request_checkpoint() { checkpoint_ = true; }
    /// Resumes where the run in the model's file stopped, as fit_options::resume does. For
    /// on_train_begin.
    void resume() { resume_ = true; }
    /// Lets Ctrl-C interrupt this run, as fit_options::stop_on_interrupt does. For on_train_begin.
    void stop_on_interrupt() { watch_ = true; }

    /// The learning rate as files hold it.
    double stored_rate() const { return rate_.save(rate_.optimizer); }
    /// Sets the learning rate, or the scale of its schedule, to what `stored_rate` returned.
    void restore_rate(double stored) { rate_.restore(rate_.optimizer, stored); }
    /// Whether `request_checkpoint` was called and nothing was written yet.
    bool checkpoint_requested() const { return checkpoint_; }
    /// Whether `resume` was called.
    bool resume_requested() const { return resume_; }
    /// Whether `stop_on_interrupt` was called.
    bool interrupts_watched() const { return watch_; }
    /// Says that the requested checkpoint is written.
    void checkpoint_done() { checkpoint_ = false; }

private:
    void need_rate() const {
        if (rate_.get == nullptr)
            throw argument_error("the optimizer has no number 'learning_rate' that callbacks could change");
    }

    detail::model_base& model_;
    detail::optimizer_number rate_;
    metrics_call metrics_;
    bool stopped_ = false, checkpoint_ = false, resume_ = false, watch_ = false;
};

namespace detail {

using hook = void (*)(void*, training_state&);

/// One callback: those hooks that it has.
struct callback_hooks {
    void* object = nullptr;
    std::string_view name;
    hook train_begin = nullptr, train_end = nullptr, epoch_begin = nullptr, epoch_end = nullptr, batch_begin = nullptr,
         batch_end = nullptr, test_begin = nullptr, test_end = nullptr, checkpoint = nullptr;
    void (*state)(void*, state_archive&) = nullptr;
};

/// What the caller passes to fit: its callbacks and its optimizer's learning rate.
struct fit_hooks {
    const callback_hooks* callbacks = nullptr;
    int count = 0;
    optimizer_number rate{};
};

template <class C>
constexpr std::string_view callback_name() {
    std::string_view name = ir::type_name<C>();
    return name.substr(0, name.find('<'));
}

#define TG_HOOK(member)                                                                                                \
    if constexpr (requires(C & c, training_state & s) { c.on_##member(s); })                                           \
        h.member = [](void* object, training_state& s) { static_cast<C*>(object)->on_##member(s); };

/// C may be const.
template <class C>
callback_hooks hooks_of(C& callback) {
    callback_hooks h;
    h.object = const_cast<std::remove_const_t<C>*>(&callback);
    h.name = callback_name<C>();
    TG_HOOK(train_begin)
    TG_HOOK(train_end)
    TG_HOOK(epoch_begin)
    TG_HOOK(epoch_end)
    TG_HOOK(batch_begin)
    TG_HOOK(batch_end)
    TG_HOOK(test_begin)
    TG_HOOK(test_end)
    TG_HOOK(checkpoint)
    if constexpr (requires(C & c, state_archive & a) { c.on_state(a); })
        h.state = [](void* object, state_archive& a) { static_cast<C*>(object)->on_state(a); };
    return h;
}
#undef TG_HOOK

/// Whether a type has a hook, so that a type that is no callback, or whose hooks cannot be called,
/// is reported.
template <class C>
concept training_callback = requires(C& c, training_state& s) {
    c.on_train_begin(s);
}
|| requires(C& c, training_state& s) { c.on_train_end(s); }
|| requires(C& c, training_state& s) { c.on_epoch_begin(s); }
|| requires(C& c, training_state& s) { c.on_epoch_end(s); }
|| requires(C& c, training_state& s) { c.on_batch_begin(s); }
|| requires(C& c, training_state& s) { c.on_batch_end(s); }
|| requires(C& c, training_state& s) { c.on_test_begin(s); }
|| requires(C& c, training_state& s) { c.on_test_end(s); }
|| requires(C& c, training_state& s) { c.on_checkpoint(s); };

/// The same as a type, for code that does not see the concept.
template <class C>
struct callback_rule {
    static constexpr bool holds = training_callback<C>;
};

/// The learning rate of an optimizer, or of the one in a chain; null if there is none.
template <class Optimizer>
auto learning_rate_in(Optimizer& optimizer) {
    if constexpr (requires {
                      optimizer.learning_rate = 0.5;
                      double(optimizer.learning_rate);
                  })
        return &optimizer.learning_rate;
    else if constexpr (requires { optimizer.main().learning_rate = 0.5; })
        return &optimizer.main().learning_rate;
    else
        return nullptr;
}

template <class Optimizer>
optimizer_number changeable_rate(Optimizer& optimizer) {
    optimizer_number n;
    using rate = decltype(learning_rate_in(optimizer));
    if constexpr (!std::is_same_v<rate, std::nullptr_t>) {
        n.optimizer = learning_rate_in(optimizer);
        n.get = [](void* o) { return static_cast<double>(*static_cast<rate>(o)); };
        n.set = [](void* o, double value) {
            auto& r = *static_cast<rate>(o);
            if constexpr (requires { r.scheduled(); })
                if (r.scheduled() && static_cast<double>(r) > 0) { // continues, scaled
                    r *= value / static_cast<double>(r);
                    return;
                }
            r = value;
        };
        n.save = n.get;
        n.restore = [](void* o, double value) { *static_cast<rate>(o) = value; };
        if constexpr (requires(rate r) { r->scheduled(); })
            if (learning_rate_in(optimizer)->scheduled()) {
                n.save = [](void* o) { return static_cast<rate>(o)->factor(); };
                n.restore = [](void* o, double factor) {
                    *static_cast<rate>(o) *= factor / static_cast<rate>(o)->factor();
                };
            }
    }
    return n;
}

} // namespace detail

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION void training_state::read_metrics() {
    if (metrics_ == nullptr) return;
    std::vector<named_value> now;
    metrics_(model_, now);
    for (const named_value& v : now) logs.set(v.name, v.value);
}

TG_DEFINITION void training_state::set_learning_rate(double rate) {
    need_rate();
    if (!std::isfinite(rate) || rate < 0)
        throw argument_error("learning rate: " + number_text(rate) + " at epoch " + std::to_string(epoch));
    rate_.set(rate_.optimizer, rate);
}

#endif

} // namespace tapegraph
