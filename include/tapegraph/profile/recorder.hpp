#pragma once

#include <tapegraph/profile/call_facts.hpp>
#include <tapegraph/profile/ranges.hpp>
#include <tapegraph/profile/result.hpp>
#include <tapegraph/runtime/call_observer.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

/// Records the times of every kernel call of a thread.

namespace tapegraph::profiling {

/// Observes the calls of consecutive steps. Calls are matched by their position in a step.
class recorder : public runtime::call_observer {
public:
    recorder(clock_function now, bool counted) : now_(now) {
        if (counted) counters_ = std::make_unique<counters>();
    }
    virtual ~recorder() = default;

    /// A step begins; one that is not kept warms up.
    void begin_step(bool kept) {
        kept_ = kept;
        next_ = 0;
        eager_.begin_step();
        push_range("step");
        if (kept_) steps_.push_back({static_cast<int>(steps_.size()), now_(), 0});
    }
    /// The step ends.
    void end_step() {
        if (kept_) steps_.back().seconds = now_() - steps_.back().start;
        pop_range();
    }

    void begin(const runtime::observed_call& c) override {
        row_of(c);
        settle();
        if (ranges().push != nullptr) {
            const call& facts = rows_[current_].facts;
            push_range((facts.layer.empty() ? facts.operation : facts.layer + ": " + facts.operation).c_str());
        }
        if (counters_) before_ = counters_->read();
        start_ = now_();
    }
    void end() override {
        settle();
        took(now_() - start_);
        pop_range();
    }

    /// Records that f() waits for data.
    template <class F>
    auto waiting(const F& f) {
        begin_waiting();
        auto result = f();
        took(now_() - start_);
        return result;
    }

    /// A call of a step, and what is known of it.
    struct row {
        call_key key;
        call facts;
        bool half_rate = false;
        int seen = -1; // the last step, including those that are not kept
    };
    /// All calls in the order in which they first came.
    const std::vector<row>& rows() const { return rows_; }
    /// Start and length of each step that was kept.
    const std::vector<sample>& steps() const { return steps_; }
    /// The processor's counters, or nullptr if they were not asked for.
    const counters* counted() const { return counters_.get(); }
    /// Bytes of the program's arena; 0 in eager mode.
    std::size_t arena_bytes() const { return arena_bytes_; }
    /// Bytes that the program keeps of variables between runs; 0 where it updates them.
    std::size_t kept_bytes() const { return kept_bytes_; }
    /// The device's name.
    const std::string& device() const { return device_; }

private:
    void begin_waiting() {
        current_ = find({});
        if (current_ == rows_.size()) {
            rows_.emplace_back();
            rows_.back().facts.phase = phase::ingestion;
            rows_.back().facts.operation = "wait for a batch";
        }
        if (counters_) before_ = counters_->read();
        start_ = now_();
    }

    // Finds the row of this call, usually the one after the last.
    void row_of(const runtime::observed_call& c) {
        const call_key key = key_of(c);
        current_ = find(key);
        if (current_ < rows_.size()) {
            eager_.begin_call();
            return;
        }
        rows_.emplace_back();
        row& r = rows_.back();
        r.key = key;
        if (c.part == runtime::call_part::program) {
            const auto& p = *static_cast<const ir::program*>(c.source);
            describe_program_call(p, c.number, phases_of(p), r.facts, r.half_rate);
            arena_bytes_ = std::max(arena_bytes_, p.arena_bytes());
            std::size_t kept = 0;
            for (int s = 0; s < p.view().steps.size(); ++s) kept += p.kept_bytes(s);
            kept_bytes_ = std::max(kept_bytes_, kept);
            if (p.device() != nullptr) device_ = p.device()->id().name();
            return;
        }
        describe_eager_call(c, r.facts, r.half_rate);
        eager_.place(c, r.facts);
        if (runtime::current_runtime() != nullptr) device_ = runtime::current_runtime()->id().name();
    }
    std::size_t find(const call_key& key) {
        const auto valid = [&](std::size_t i) { return rows_[i].key == key && rows_[i].seen != turn(); };
        for (std::size_t at = next_; at < rows_.size(); ++at)
            if (valid(at)) return at;
        for (std::size_t at = 0; at < next_; ++at)
            if (valid(at)) return at;
        return rows_.size();
    }
    int turn() const { return eager_.turn(); }

    const program_facts& phases_of(const ir::program& p) {
        for (const auto& each : programs_)
            if (each->program == &p) return *each;
        programs_.push_back(std::make_unique<program_facts>(p));
        return *programs_.back();
    }

    void took(double seconds) {
        row& r = rows_[current_];
        r.seen = turn();
        next_ = current_ + 1;
        if (!kept_) return;
        if (counters_) r.facts.counted += counters_->read() - before_;
        r.facts.samples.push_back({static_cast<int>(steps_.size()) - 1, start_, seconds});
    }
    // Waits for a device's work before the clock is read.
    static void settle() {
        if constexpr (runtime::has_backend)
            if (runtime::device_runtime* const d = runtime::current_runtime(); d != nullptr) d->wait();
    }

    clock_function now_;
    std::unique_ptr<counters> counters_;
    std::vector<row> rows_;
    std::vector<sample> steps_;
    std::vector<std::unique_ptr<program_facts>> programs_;
    eager_place eager_;
    std::string device_ = "cpu";
    std::size_t arena_bytes_ = 0, kept_bytes_ = 0, next_ = 0, current_ = 0;
    counter_values before_;
    double start_ = 0;
    bool kept_ = false;
};

} // namespace tapegraph::profiling
