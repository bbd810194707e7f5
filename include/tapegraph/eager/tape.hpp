#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/list.hpp>
#include <tapegraph/eager/any_tensor.hpp>

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

/// The tape: a flat arena of records, one per sealed formula or operation, in the order in which they ran.

namespace tapegraph::detail {

template <class Tensor>
class basic_backward_pass;
using backward_pass = basic_backward_pass<any_tensor>;
class jvp_pass;

/// An executed operation or formula and its derivative. Records live in the tape's arena; `destroy`
/// ends the objects they hold.
struct tape_record {
    void (*backward)(tape_record&, backward_pass&, const any_tensor& adjoint);
    void (*destroy)(tape_record&);
    /// Sets the tangent of the result, given those of the operands; returns false when none of them
    /// has one.
    bool (*jvp)(tape_record&, const jvp_pass&, any_tensor& tangent);
};

/// One tape per thread, shared by all gradient_tape objects of the thread (a nested tape is a later
/// section of it).
class tape_storage {
public:
    static tape_storage& instance() {
        static thread_local tape_storage tape;
        return tape;
    }
    ~tape_storage() { clear(0); }

    /// Whether operations are being recorded.
    bool recording() const { return active_ > 0; }
    bool tracks(const any_tensor& t) const { return active_ > 0 && knows(t.tape_index()); }
    bool knows(tape_index at) const { return at.serial == tape_serial::current; }
    int length() const { return static_cast<int>(records_.size()); }
    tape_record* record(int index) { return records_[static_cast<std::size_t>(index)]; }

    void start() {
        ++active_;
        if (open_++ == 0) tape_serial::current = tape_serial::next();
    }
    void stop() { --active_; }
    void resume() { ++active_; }
    /// Stops recording until `unpause` is called with the returned value.
    int pause() { return std::exchange(active_, 0); }
    void unpause(int active) { active_ = active; }
    /// Called when a tape object is destroyed. The last one takes the records with it.
    void close(bool was_recording) {
        if (was_recording) --active_;
        if (--open_ == 0) clear(0);
    }
    /// Whether derivatives may themselves be differentiated later; then records keep all their
    /// operands.
    bool keeps_everything() const { return open_ > 1 || persistent_ > 0; }
    void persist(int change) { persistent_ += change; }
    /// Whether a forward walk over the current records is expected.
    bool forward_wanted() const { return forward_ > 0; }
    void want_forward(int change) { forward_ += change; }
    int open() const { return open_; }
    /// The place that a walk of this thread is differentiating; -1 outside of walks.
    int visited() const { return visited_; }
    int visit(int place) { return std::exchange(visited_, place); }

    tape_index watch() {
        records_.push_back(nullptr);
        return {tape_serial::current, length() - 1};
    }

    /// Builds a record of type R at the end of the tape and returns it; `at` is the place of its
    /// result.
    template <class R, class... Parts>
    R& append(tape_index& at, const Parts&... parts) {
        static_assert(alignof(R) <= 16);
        R* const r = new (take(sizeof(R))) R(parts...);
        r->tape_record::backward = &R::backward;
        r->tape_record::destroy = &R::destroy;
        r->tape_record::jvp = nullptr;
        if constexpr (requires { r->tape_record::jvp = &R::jvp; }) r->tape_record::jvp = &R::jvp;
        records_.push_back(r);
        at = {tape_serial::current, length() - 1};
        return *r;
    }
    /// Memory that lives as long as the records.
    void* take(std::size_t bytes) {
        bytes = (bytes + 15) / 16 * 16;
        if (bytes > block_bytes) {
            large_.push_back(runtime::arena(bytes));
            return large_.back().data();
        }
        if (used_ + bytes > block_bytes) {
            ++block_;
            used_ = 0;
        }
        if (block_ >= blocks_.size()) blocks_.push_back(runtime::arena(block_bytes));
        void* const result = blocks_[block_].data() + used_;
        used_ += bytes;
        return result;
    }

    /// Discards records from `first` on; discarding all of them invalidates all their places.
    void clear(int first) {
        for (int i = length() - 1; i >= first; --i)
            if (tape_record* const r = records_[static_cast<std::size_t>(i)]; r != nullptr) r->destroy(*r);
        records_.resize(static_cast<std::size_t>(first));
        if (first == 0) {
            visited_ = -1; // also after a walk has thrown
            block_ = used_ = 0;
            large_.clear();
            tape_serial::current = open_ > 0 ? tape_serial::next() : tape_serial::none;
        }
    }

    /// The current end of the tape, to return to later.
    struct mark {
        int length;
        std::size_t block, used, large;
    };
    mark end() const { return {length(), block_, used_, large_.size()}; }
    void rewind(const mark& to) {
        clear(to.length);
        if (to.length == 0) return;
        block_ = to.block;
        used_ = to.used;
        while (large_.size() > to.large) large_.pop_back();
    }

private:
    static constexpr std::size_t block_bytes = std::size_t{1} << 16;
    std::vector<tape_record*> records_; // by place; null for a watched tensor
    std::vector<runtime::arena> blocks_, large_;
    std::size_t block_ = 0, used_ = 0;
    int active_ = 0, open_ = 0, persistent_ = 0, forward_ = 0, visited_ = -1;
};

// These are templates because eager/replay.hpp defines them, where formulas can be sealed. This header
// includes none of that.
/// Adds two tensors of one type and shape, on the tape when they are tracked.
template <class Tensor>
Tensor add_adjoints(const Tensor& a, const Tensor& b);
/// Adds b to a where that may change a's memory, or else b's, which then becomes a; returns false where
/// the sum needs memory of its own.
template <class Tensor>
bool added_in_place(Tensor& a, Tensor& b);
/// A tensor filled with ones.
template <class Tensor>
Tensor ones_like(const Tensor& like);

/// Whether nothing else reads an adjoint's memory.
inline bool may_change(const any_tensor& adjoint) {
    return adjoint.has_storage() && !adjoint.shared() && adjoint.tape_index().serial == 0;
}

/// One backward walk from a value to its sources. Every walk begins without adjoints.
template <class Tensor> // any_tensor; a template, so that programs that take no derivatives do not compile it
class basic_backward_pass {
public:
    explicit basic_backward_pass(int length) : basic_backward_pass(0, length) {}
    /// Values at places before `first` are constants.
    basic_backward_pass(int first, int end)
        : first_(first),
          adjoints_(static_cast<std::size_t>(end - first)),
          present_(static_cast<std::size_t>(end - first)),
          add_([](basic_backward_pass& walk, const any_tensor& to, any_tensor adjoint) {
              walk.add(to, std::move(adjoint));
          }) {}

    bool wants(const any_tensor& t) const {
        const tape_index p = t.tape_index();
        return tape_storage::instance().knows(p) && p.index >= first_ && number(p.index) < present_.size();
    }
    void add(const any_tensor& to, any_tensor adjoint) {
        const std::size_t at = number(to.tape_index().index);
        if (!present_[at])
            adjoints_[at] = std::move(adjoint);
        else if (!added_in_place(adjoints_[at], adjoint))
            adjoints_[at] = add_adjoints(adjoints_[at], adjoint);
        present_[at] = 1;
    }
    /// The adjoint that has arrived for a tensor, for a record that adds to it in place; null where there
    /// is none, or where something else reads it, too.
    any_tensor* own_adjoint(const any_tensor& of) {
        const std::size_t at = number(of.tape_index().index);
        return present_[at] && may_change(adjoints_[at]) ? &adjoints_[at] : nullptr;
    }
    /// Uses `add`, for records of programs that may never walk backward: it is compiled only where
    /// a walk starts.
    void hand(const any_tensor& to, any_tensor adjoint) { add_(*this, to, std::move(adjoint)); }
    /// Restores a record's adjoint, for an earlier record to find.
    void keep(tape_index at, const any_tensor& adjoint) { adjoints_[number(at.index)] = adjoint; }
    /// Sets whether the walk calls this place's record even if no adjoint arrives there (then with
    /// an adjoint without a buffer).
    void visit(tape_index at, bool on) { present_[number(at.index)] = on; }
    const any_tensor* find(tape_index place) const {
        const std::size_t at = number(place.index);
        return at < present_.size() && present_[at] ? &adjoints_[at] : nullptr;
    }

    /// `keep[i]`: the adjoint at place i is requested and must survive the walk.
    void run(const any_tensor& y, int first, const std::vector<char>& keep) {
        add(y, ones_like(y));
        run(y.tape_index().index, first, keep);
    }
    /// The walk itself, from place `last` down, after adjoints have been added.
    void run(int last, int first, const std::vector<char>& keep) { walk(last, first, &keep); }
    /// The walk when only the adjoints of watched tensors are requested.
    void run(int last, int first) { walk(last, first, nullptr); }

    /// Called within a walk, for records from `first` on that were made after the walk began: walks
    /// through these records. Adjoints that reach places before them are left to the outer walk.
    void run_within(const any_tensor& y, const any_tensor& adjoint, int first) {
        const std::size_t length = present_.size();
        const std::size_t needed = number(y.tape_index().index) + 1;
        if (needed > length) {
            adjoints_.resize(needed);
            present_.resize(needed);
        }
        add(y, adjoint);
        walk(y.tape_index().index, first, nullptr);
        adjoints_.resize(length);
        present_.resize(length);
    }

private:
    void walk(int from, int first, const std::vector<char>* keep) {
        tape_storage& tape = tape_storage::instance();
        const int around = tape.visited();
        for (int i = from; i >= first; --i) {
            if (!present_[number(i)]) continue;
            tape_record* const r = tape.record(i);
            if (r == nullptr) continue;
            const bool kept = keep != nullptr && (*keep)[static_cast<std::size_t>(i)];
            const any_tensor adjoint = kept ? adjoints_[number(i)] : std::move(adjoints_[number(i)]);
            tape.visit(i);
            r->backward(*r, *this, adjoint);
        }
        tape.visit(around);
    }
    std::size_t number(int at) const { return static_cast<std::size_t>(at - first_); }

    int first_;
    std::vector<Tensor> adjoints_;
    std::vector<char> present_;
    void (*add_)(basic_backward_pass&, const any_tensor& to, any_tensor adjoint);
};

TG_COMPILED(eager, class basic_backward_pass<any_tensor>)

} // namespace tapegraph::detail
