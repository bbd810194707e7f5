#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/core/system.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

/// A progress line for training:
///
///     epoch 2/10 [=====>    ] 34/57 12.3 steps/s loss 0.6123 accuracy 0.671 eta 3 s

namespace tapegraph::io {

/// A name and its value, as in `loss 0.6123`. The name is borrowed for the call.
struct progress_value {
    std::string_view name;
    double value;
};

/// How a progress line is shown.
enum class progress_style {
    automatic, ///< in_place if the stream is a terminal
    in_place,  ///< one line, overwritten, at most ten times a second
    plain,     ///< whole lines: occasionally, and at the end of each epoch
    per_epoch, ///< a line at the end of each epoch
    quiet
};

/// A duration in readable form: "8.4 s", "42 s", "3 min 05 s", "2 h 10 min".
inline std::string duration_text(double seconds) {
    const auto whole = static_cast<long long>(seconds + 0.5);
    char text[48];
    if (seconds < 9.95)
        std::snprintf(text, sizeof text, "%.1f s", seconds);
    else if (whole < 60)
        std::snprintf(text, sizeof text, "%lld s", whole);
    else if (whole < 3600)
        std::snprintf(text, sizeof text, "%lld min %02lld s", whole / 60, whole % 60);
    else
        std::snprintf(text, sizeof text, "%lld h %02lld min", whole / 3600, whole / 60 % 60);
    return text;
}

/// One line on a terminal or in a log that says how far an epoch is, with named values and the time.
class progress_line {
public:
    using clock_function = double (*)(); ///< seconds since a fixed moment

    explicit progress_line(std::ostream& out = std::cerr, progress_style style = progress_style::automatic,
                           clock_function now = tapegraph::detail::steady_seconds)
        : out_(out), style_(style), now_(now) {
        int descriptor = -1;
        if (&out == &std::cout) descriptor = 1;
        if (&out == &std::cerr || &out == &std::clog) descriptor = 2;
        const bool terminal = descriptor >= 0 && tapegraph::detail::is_terminal(descriptor);
        if (style_ == progress_style::automatic) style_ = terminal ? progress_style::in_place : progress_style::plain;
        // A line that wraps cannot be overwritten, so it is cut to the terminal's width.
        if (const unsigned columns = terminal ? tapegraph::detail::terminal_columns(descriptor) : 0; columns > 1)
            width_ = columns - 1;
        text_.reserve(512);
        interval_ = style_ == progress_style::in_place ? 0.1 : 10.0;
    }

    /// Starts an epoch, counted from 1, of `steps` steps (0: unknown).
    void begin_epoch(std::int64_t epoch, std::int64_t epochs, std::int64_t steps) {
        epoch_ = epoch;
        epochs_ = epochs;
        steps_ = steps;
        started_ = shown_ = now_();
    }

    /// Called after step `step`, counted from 1, of the epoch. Updates at a rate that the eye can
    /// follow; returns whether it did. `values` have a name and a value each.
    template <class Values>
    bool update(std::int64_t step, const Values& values) {
        if (style_ == progress_style::quiet || style_ == progress_style::per_epoch) return false;
        const double now = now_();
        if (now - shown_ < interval_) return false;
        shown_ = now;
        compose(step, values, now - started_, false);
        show(false);
        return true;
    }
    bool update(std::int64_t step, std::initializer_list<progress_value> values) {
        return update(step, std::span<const progress_value>(values.begin(), values.size()));
    }

    /// Ends the epoch after `step` steps with a permanent line.
    template <class Values>
    void end_epoch(std::int64_t step, const Values& values) {
        if (style_ == progress_style::quiet) return;
        compose(step, values, now_() - started_, true);
        show(true);
    }
    void end_epoch(std::int64_t step, std::initializer_list<progress_value> values) {
        end_epoch(step, std::span<const progress_value>(values.begin(), values.size()));
    }

private:
    template <class... Args>
    void append(const char* format, Args... args) {
        char text[96];
        const int length = std::snprintf(text, sizeof text, format, args...);
        text_.append(text, std::min(static_cast<std::size_t>(std::max(length, 0)), sizeof text - 1));
    }

    template <class Values>
    void compose(std::int64_t step, const Values& values, double elapsed, bool last) {
        constexpr int cells = 20;
        text_.clear();
        append("epoch %lld/%lld ", static_cast<long long>(epoch_), static_cast<long long>(epochs_));
        if (steps_ > 0) {
            const auto full = static_cast<int>(cells * std::clamp<std::int64_t>(step, 0, steps_) / steps_);
            text_ += '[';
            text_.append(static_cast<std::size_t>(full), '=');
            if (full < cells) text_.append(1, '>').append(static_cast<std::size_t>(cells - full - 1), ' ');
            text_ += "] ";
            append("%lld/%lld ", static_cast<long long>(step), static_cast<long long>(steps_));
        } else {
            append("step %lld ", static_cast<long long>(step));
        }
        const double rate = elapsed > 0 ? static_cast<double>(step) / elapsed : 0;
        append(rate < 99.95 ? "%.1f steps/s" : "%.0f steps/s", rate);
        for (const auto& value : values) {
            (text_ += ' ').append(value.name);
            append(" %.4g", value.value);
        }
        if (last) {
            text_ += " in ";
            text_ += duration_text(elapsed);
        } else if (steps_ > 0 && rate > 0) {
            text_ += " eta ";
            text_ += duration_text(static_cast<double>(std::max<std::int64_t>(steps_ - step, 0)) / rate);
        }
    }

    void show(bool last) {
        if (style_ == progress_style::in_place) {
            // The permanent line may wrap, because it is not overwritten.
            if (!last && text_.size() > width_) text_.resize(width_);
            const std::size_t length = text_.size();
            if (length < on_screen_) text_.append(on_screen_ - length, ' '); // erases the rest of a longer line
            on_screen_ = last ? 0 : length;
            out_.put('\r');
        }
        out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
        if (last || style_ != progress_style::in_place) out_.put('\n');
        out_.flush();
    }

    std::ostream& out_;
    progress_style style_;
    clock_function now_;
    std::string text_; ///< reused, so that an update allocates nothing
    std::size_t width_ = 400;
    std::size_t on_screen_ = 0;
    std::int64_t epoch_ = 0, epochs_ = 0, steps_ = 0;
    double started_ = 0, shown_ = 0, interval_ = 0;
};

} // namespace tapegraph::io
