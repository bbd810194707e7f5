#pragma once

#include <tapegraph/scalar/tape.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

/// Parts of a recording: without a tape, and with fewer statements.

namespace tapegraph {

/// While it lives, nothing is recorded in this thread: results are constants, whatever their operands are.
template <class T = double>
class no_recording {
public:
    no_recording() : tape_(static_cast<real_tape<T>*>(scalars::recorder_of<T>.owner)) {
        if (tape_ != nullptr && tape_->paused()) tape_ = nullptr; // paused by someone else, who resumes
        if (tape_ != nullptr) tape_->pause();
    }
    no_recording(const no_recording&) = delete;
    no_recording& operator=(const no_recording&) = delete;
    ~no_recording() {
        if (tape_ != nullptr) tape_->resume();
    }

private:
    real_tape<T>* tape_;
};

/// Shortens a block of a recording to one statement per result: f(numbers) -> results, vectors of real<T>, whose
/// derivatives by the numbers are computed at once and kept instead of the block's statements. It saves memory where a
/// block has many statements and few numbers and results. `numbers` are all that the block reads of the tape: anything
/// else is refused as an operand of another tape.
template <class T, class F>
std::vector<real<T>> preaccumulate(real_tape<T>& tape, std::span<const real<T>> numbers, const F& f) {
    const std::size_t count = numbers.size();
    std::vector<T> values, slopes;
    {
        real_tape<T> inner;
        std::vector<real<T>> own;
        own.reserve(count);
        for (const real<T>& x : numbers) {
            tape.require_own(x, "preaccumulate");
            own.emplace_back(x.value());
            if (x.on_a_tape()) inner.watch(own.back());
        }
        const std::vector<real<T>> results = f(std::as_const(own));
        for (const real<T>& y : results) {
            values.push_back(y.value());
            inner.backward(y);
            for (const real<T>& x : own) slopes.push_back(x.on_a_tape() ? inner.adjoint(x) : T(0));
        }
    }
    std::vector<real<T>> results;
    results.reserve(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        results.push_back(tape.statement(values[i], numbers, std::span<const T>(slopes).subspan(i * count, count)));
    return results;
}

} // namespace tapegraph
