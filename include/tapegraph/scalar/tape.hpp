#pragma once

#include <tapegraph/scalar/external.hpp>
#include <tapegraph/scalar/memory.hpp>
#include <tapegraph/scalar/number.hpp>
#include <tapegraph/scalar/sweep.hpp>
#include <tapegraph/scalar/tape_number.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tapegraph {

/// A place on a tape, to which it can be rewound.
struct tape_position {
    scalars::tape_end end;
    std::uint32_t tape = 0;
};

/// The tape of numbers that record. It is active from its construction on, and the tape that was active before is
/// active again when it ends. Tapes stay in the thread that made them. Numbers of one tape are no operands while
/// another is active. Memory is kept for the thread's next tape, so that a tape in a loop allocates nothing.
template <class T = double>
class real_tape {
public:
    real_tape() : memory_(scalars::take_tape_memory<T>()), outer_(scalars::recorder_of<T>) {
        if (memory_.chunks.empty()) memory_.next_chunk(0, 1);
        scalars::recorder_of<T> = begin_of_tape();
    }
    real_tape(const real_tape&) = delete;
    real_tape& operator=(const real_tape&) = delete;
    ~real_tape() {
        if (scalars::recorder<T>* const end = find_end()) {
            // A tape inside this one that ends later: it takes this one's place in the chain.
            *end = outer_;
        }
        scalars::give_tape_memory_back(std::move(memory_));
    }

    /// Makes x an independent number, by which derivatives are taken. Its value stays.
    void watch(real<T>& x) {
        scalars::recorder<T>& end = state();
        if (end.used == 0 && memory_.current == 0) { // the first numbers of a tape need no rows
            x.place = {next_statement(end), end.tape};
            return;
        }
        const scalars::operand_rows<T> rows = row_for_input(end);
        rows.slopes[end.used] = T(0);
        rows.statements[end.used++] = scalars::operand_rows<T>::begins;
        x.place = {next_statement(end), end.tape};
    }
    /// The same of all numbers of a range.
    template <scalars::range_of<real<T>> R>
    void watch(R&& numbers) {
        scalars::recorder<T>& end = state();
        if (end.used == 0 && memory_.current == 0) {
            std::uint32_t last = end.statements;
            for (real<T>& x : numbers) x.place = {++last, end.tape};
            end.statements = last;
            return;
        }
        for (real<T>& x : numbers) watch(x);
    }

    /// Sets all adjoints to those of y: `seed` times the derivative of y by every number. It overwrites
    /// earlier ones.
    void backward(const real<T>& y, const T& seed = T(1)) {
        clear_adjoints();
        add_adjoint(y, seed);
        sweep();
    }
    /// For several results: after clear_adjoints and add_adjoint of each, sweep carries them back.
    void clear_adjoints() { memory_.want_adjoints(state().statements + std::size_t{1}); }
    /// Adds `amount` to the derivative that a backward sweep starts from at y.
    void add_adjoint(const real<T>& y, const T& amount) {
        require_own(y, "real_tape::backward");
        if (y.place.at >= memory_.adjoints.size()) clear_adjoints();
        if (y.place.at != 0) memory_.adjoints[y.place.at] += amount;
    }
    void sweep() { sweep(memory_.adjoints.data(), {}); }
    /// The derivative of what was swept by x, which must have been watched or computed on this tape.
    T adjoint(const real<T>& x) const {
        require_own(x, "real_tape::adjoint");
        if (x.place.at == 0) scalars::refuse_constant("real_tape::adjoint");
        return x.place.at < memory_.adjoints.size() ? memory_.adjoints[x.place.at] : T(0);
    }
    /// The derivatives of y by all numbers of a range.
    template <scalars::range_of<real<T>> R>
    std::vector<T> gradient(const real<T>& y, const R& numbers) {
        backward(y);
        std::vector<T> g;
        g.reserve(std::size(numbers));
        for (const real<T>& x : numbers) g.push_back(adjoint(x));
        return g;
    }
    T gradient(const real<T>& y, const real<T>& x) {
        backward(y);
        return adjoint(x);
    }

    /// Between pause and resume results are constants and nothing is written.
    void pause() { state().room = 0, paused_ = true; }
    /// Recording goes on after `pause`.
    void resume() { state().room = memory_.chunks[memory_.current].room, paused_ = false; }
    /// Whether statements are not recorded at present.
    bool paused() const { return paused_; }

    /// The current end of the tape. rewind(position) discards what was recorded after it; numbers of later
    /// statements must not be used again, which is not checked.
    tape_position position() const { return {end_now(), state().tape}; }
    /// Forgets what was recorded after the position. Throws argument_error for one of another tape or from later.
    void rewind(const tape_position& to) {
        scalars::recorder<T>& end = state();
        if (to.tape != end.tape || to.end.statements > end.statements) scalars::refuse_position();
        externals_.resize(to.end.externals);
        memory_.current = to.end.chunk;
        end.rows = memory_.chunks[memory_.current].rows();
        end.used = to.end.used;
        end.statements = to.end.statements;
        end.room = paused_ ? 0 : memory_.chunks[memory_.current].room;
    }
    /// Forgets everything; numbers of before are refused as operands from now on.
    void clear() {
        scalars::recorder<T>& end = state();
        externals_.clear();
        memory_.current = 0;
        end = begin_of_tape();
        if (paused_) end.room = 0;
    }

    /// Adds results that the tape takes as given, and a function that carries their adjoints to those of the inputs:
    /// pull(adjoints of results, adjoints of inputs), of which the second are 0 before the call. Both are spans of T.
    /// The function is kept until the tape is cleared. Results are constants if no input is on the tape.
    template <class Pull>
    std::vector<real<T>> external(std::span<const real<T>> inputs, std::span<const T> values, Pull pull) {
        std::vector<real<T>> results(values.begin(), values.end());
        bool depends = false;
        for (const real<T>& x : inputs) {
            require_own(x, "real_tape::external");
            depends |= x.on_a_tape();
        }
        if (paused_ || !depends) return results;
        scalars::owner<scalars::external_call<T>> call(new scalars::external_of<T, Pull>(std::move(pull)));
        for (const real<T>& x : inputs) call->inputs.push_back(x.place.at);
        call->at = end_now();
        if (call->at.used == 0 && call->at.chunk == 0) { // results are to have rows of their own
            scalars::recorder<T>& end = state();
            end.rows.slopes[0] = T(0);
            end.rows.statements[0] = scalars::operand_rows<T>::begins;
            end.used = 1, ++end.statements;
            call->at = end_now();
        }
        externals_.push_back(std::move(call));
        for (real<T>& y : results) {
            watch(y);
            externals_.back()->results.push_back(y.place.at);
        }
        return results;
    }
    /// A statement with derivatives that are known: value, and its derivative by each operand.
    real<T> statement(const T& value, std::span<const real<T>> operands, std::span<const T> slopes) {
        if (operands.size() != slopes.size()) scalars::refuse_slopes(operands.size(), slopes.size());
        if (find_end() != &scalars::recorder_of<T>) scalars::refuse_inactive("real_tape::statement");
        const auto count = static_cast<std::uint32_t>(std::max<std::size_t>(operands.size(), 1));
        return {value, scalars::record<T>(scalars::known_statement<T>{operands, slopes}, count)};
    }

    /// Statements recorded so far.
    std::size_t statements() const { return state().statements; }
    /// Operands of all statements recorded so far.
    std::size_t operands() const {
        std::size_t sum = state().used;
        for (std::size_t i = 0; i < memory_.current; ++i) sum += memory_.chunks[i].used;
        return sum;
    }
    /// Bytes held for operands and adjoints, and the most there may be; beyond, recording throws out_of_memory.
    std::size_t bytes() const { return memory_.bytes(); }
    /// Sets the most bytes there may be.
    void limit_bytes(std::size_t limit) { memory_.limit = limit; }

    /// Sweeps other adjoints than the tape's own (adjoint_lanes), back to a position.
    template <class A>
    void sweep(A* adjoints, const scalars::tape_end& to) {
        scalars::tape_end from = end_now();
        for (std::size_t i = externals_.size(); i-- > to.externals;) {
            scalars::sweep_chunks(memory_, from, externals_[i]->at, adjoints);
            externals_[i]->run(adjoints);
            from = externals_[i]->at;
        }
        scalars::sweep_chunks(memory_, from, to, adjoints);
    }
    /// Throws argument_error if x was recorded, but not by this tape.
    void require_own(const real<T>& x, const char* where) const {
        if (x.place.at != 0 && x.place.tape != state().tape) scalars::refuse_foreign(where);
    }
    /// Gives the statement that comes next a chunk. False while the tape pauses.
    bool grow(std::uint32_t count) {
        if (paused_) return false;
        scalars::recorder<T>& end = state();
        // The mark of a first operand is the highest bit; a chunk has room for 2^18 operands, or for one statement.
        if (scalars::operand_rows<T>::begins - end.statements <= std::max<std::uint32_t>(count, 1u << 18))
            scalars::refuse_length();
        memory_.next_chunk(end.used, count);
        end.rows = memory_.chunks[memory_.current].rows();
        end.used = 0;
        end.room = memory_.chunks[memory_.current].room;
        return true;
    }

private:
    scalars::recorder<T> begin_of_tape() {
        scalars::recorder<T> begin;
        begin.rows = memory_.chunks[0].rows();
        begin.room = memory_.chunks[0].room;
        begin.tape = scalars::new_tape_number();
        begin.owner = this;
        return begin;
    }
    static std::uint32_t next_statement(scalars::recorder<T>& end) { return ++end.statements; }
    scalars::operand_rows<T> row_for_input(scalars::recorder<T>& end) {
        if (end.used == memory_.chunks[memory_.current].room) {
            const bool paused = std::exchange(paused_, false);
            grow(1);
            if (paused) pause();
        }
        return end.rows;
    }
    scalars::tape_end end_now() const {
        const scalars::recorder<T>& end = state();
        return {memory_.current, end.used, end.statements, externals_.size()};
    }
    // The active tape's end is the recorder; that of another is kept by the tape inside it.
    scalars::recorder<T>* find_end() const {
        scalars::recorder<T>* end = &scalars::recorder_of<T>;
        while (end->owner != this && end->owner != nullptr) end = &static_cast<real_tape*>(end->owner)->outer_;
        return end->owner == this ? end : nullptr;
    }
    TG_INLINE scalars::recorder<T>& state() const {
        if (scalars::recorder_of<T>.owner == this) [[likely]]
            return scalars::recorder_of<T>;
        return state_inside();
    }
    [[gnu::noinline]] scalars::recorder<T>& state_inside() const {
        scalars::recorder<T>* const end = find_end();
        if (end == nullptr) scalars::refuse_thread();
        return *end;
    }

    scalars::tape_memory<T> memory_;
    scalars::recorder<T> outer_; ///< the end of the tape that was active before
    std::vector<scalars::owner<scalars::external_call<T>>> externals_;
    bool paused_ = false;
};

namespace scalars {

template <class T>
bool make_room(std::uint32_t count, bool on_a_tape) {
    if (recorder_of<T>.owner != nullptr) return static_cast<real_tape<T>*>(recorder_of<T>.owner)->grow(count);
    if (on_a_tape) refuse_ended();
    return false;
}

} // namespace scalars
} // namespace tapegraph
