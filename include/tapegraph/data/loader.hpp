#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/data/batch.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

/// Iterates over a data set batch by batch. With prefetch(depth) one thread assembles batches into
/// a ring of depth + 1 buffers (the consumer keeps one while it uses it); all memory is allocated
/// when the loader is constructed.

namespace tapegraph::data {

/// The batches of a data set, assembled ahead of the loop that uses them.
class loader {
public:
    /// Allocates all memory and starts the thread. Throws argument_error if the set is empty, has
    /// no batch size, or has fewer records than one batch while the remainder is dropped.
    explicit loader(dataset data);
    loader(const loader&) = delete;
    loader& operator=(const loader&) = delete;
    ~loader();

    /// Starts epoch `epoch` at batch `first`, abandoning a running one. Earlier batches are not
    /// assembled. Throws argument_error if the epoch has fewer batches.
    void begin_epoch(std::uint64_t epoch, std::int64_t first = 0);

    /// The next batch, valid until the next call; null at the end of the epoch. Rethrows the
    /// source's exception, after the batches that were complete. Throws argument_error before
    /// begin_epoch().
    const batch* next();

    /// For a part of a set (dataset.shard): the records of the batches since begin_epoch(), and
    /// those of them that were read here.
    const read_records& whole() const { return whole_; }
    /// Which records the epoch has read so far, so that runs can be compared.
    const read_records& read() const { return read_; }

    /// Time the consumer spent in next() since begin_epoch(): what ingestion cost training.
    double wait_seconds() const { return wait_seconds_; }
    /// Negative if a pipeline does not know it.
    std::int64_t batches_per_epoch() const { return batches_; }
    /// The data set that batches come from.
    const dataset& data() const { return data_; }

    /// An input iterator over the batches of an epoch; advancing it waits for the next batch.
    class iterator {
    public:
        using value_type = batch;
        using difference_type = std::ptrdiff_t;
        using iterator_concept = std::input_iterator_tag;

        explicit iterator(loader* from) : from_(from), current_(from->next()) {}
        const batch& operator*() const { return *current_; }
        const batch* operator->() const { return current_; }
        iterator& operator++() {
            current_ = from_->next();
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(std::default_sentinel_t) const { return current_ == nullptr; }

    private:
        loader* from_;
        const batch* current_;
    };
    /// The batches of an epoch, for a `for` loop.
    struct epoch_range {
        loader* from;
        iterator begin() const { return iterator(from); }
        std::default_sentinel_t end() const { return {}; }
    };

    /// begin_epoch() for a range-based for loop. The loader must have a name: the loop would outlive a temporary.
    epoch_range epoch(std::uint64_t number) &;
    template <class Loader = loader>
    epoch_range epoch(std::uint64_t) && {
        static_assert(sizeof(Loader) == 0, // always false, but only once it is called
                      "data::loader: epoch() of a temporary, which ends before the loop does; give the loader a name");
        return {this};
    }

private:
    void check_started() const;

    void shuffle();

    void fill(batch& to, std::int64_t index);

    // A batch of another size has its own rows at other places.
    void clear_others(batch& to, std::int64_t begin, std::int64_t end, std::int64_t count);

    const batch* walked();

    const batch* assemble();

    const batch* take();

    /// The thread's function: assembles the requested epochs one after the other.
    void work();

    dataset data_;
    std::int64_t batches_;
    std::unique_ptr<batch_walk> walk_; ///< for a set that makes its own batches
    std::vector<std::int64_t> order_;
    std::vector<std::byte*> places_;
    std::vector<batch> ring_;

    /// The thread and what it and the consumer wait for.
    struct assembler;
    std::unique_ptr<assembler> assembler_; ///< null without a thread
    std::exception_ptr failure_;
    std::atomic<bool> cancel_{false};
    std::uint64_t epoch_ = 0;
    std::int64_t produced_ = 0; ///< batches assembled
    std::int64_t taken_ = 0;    ///< batches handed out
    std::int64_t released_ = 0; ///< batches whose buffer may be reused
    double wait_seconds_ = 0;
    read_records whole_, read_;
    bool started_ = false, requested_ = false, busy_ = false, stop_ = false;
};

} // namespace tapegraph::data

#if TG_DEFINES(data)

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace tapegraph::data {

struct loader::assembler {
    std::mutex mutex;
    std::condition_variable ready, work;
    std::thread thread; // the destructor joins it; std::jthread, which libc++ lacks before 18, would be no shorter
};

TG_DEFINITION loader::loader(dataset data) : data_(std::move(data)), batches_(data_.batches_per_epoch()) {
    if (data_.batches()) {
        walk_ = data_.batches()->walk(data_.prefetch_depth());
        ring_.resize(1);
        return;
    }
    if (data_.columns().empty()) throw argument_error("data set: no columns");
    if (data_.size() == 0)
        throw argument_error("data set: no records in column '" + data_.columns().front().name + "'");
    if (batches_ == 0)
        throw argument_error("data set: " + std::to_string(data_.size()) + " records make no full batch of " +
                             std::to_string(data_.batch_size()) + ", and the remainder is dropped");
    if (data_.shuffle_seed()) order_.resize(static_cast<std::size_t>(data_.size()));
    places_.resize(data_.columns().size());
    // More buffers than batches would never be used; a batch larger than the set is never full.
    const auto slots = std::min(data_.prefetch_depth() + 1, batches_);
    const auto records = static_cast<std::size_t>(std::min(data_.batch_size(), data_.size()));
    ring_.resize(static_cast<std::size_t>(slots));
    for (auto& slot : ring_) {
        slot.columns_ = &data_.columns();
        for (const auto& column : data_.columns()) {
            slot.memory_.emplace_back((records * column.record_bytes() + 63) / 64);
            slot.data_.push_back(reinterpret_cast<const std::byte*>(slot.memory_.back().data()));
        }
    }
    if (data_.prefetch_depth() > 0) {
        assembler_ = std::make_unique<assembler>();
        assembler_->thread = std::thread([this] { work(); });
    }
}

TG_DEFINITION loader::~loader() {
    if (!assembler_) return;
    {
        const std::lock_guard lock(assembler_->mutex);
        stop_ = true;
        cancel_ = true;
    }
    assembler_->work.notify_one();
    assembler_->thread.join();
}

TG_DEFINITION void loader::begin_epoch(std::uint64_t epoch, std::int64_t first) {
    if (first < 0 || (first > batches_ && batches_ >= 0))
        throw argument_error("data::loader: batch " + std::to_string(first) + " of an epoch of " +
                             std::to_string(batches_));
    if (walk_) {
        walk_->begin_epoch(epoch, first);
        taken_ = first;
        started_ = true;
        wait_seconds_ = 0;
        return;
    }
    std::unique_lock<std::mutex> lock;
    if (assembler_) {
        lock = std::unique_lock(assembler_->mutex);
        cancel_ = true;
        assembler_->work.notify_one();
        assembler_->ready.wait(lock, [this] { return !busy_ && !requested_; });
    }
    failure_ = nullptr;
    cancel_ = false;
    started_ = true;
    epoch_ = epoch;
    produced_ = taken_ = released_ = first;
    whole_ = read_ = {};
    wait_seconds_ = 0;
    if (assembler_) {
        requested_ = true;
        assembler_->work.notify_one();
    } else {
        shuffle();
    }
}

TG_DEFINITION const batch* loader::next() {
    const double start = tapegraph::detail::steady_seconds();
    const batch* result = walk_ ? walked() : assembler_ ? take() : assemble();
    wait_seconds_ += tapegraph::detail::steady_seconds() - start;
    if (result != nullptr && data_.parts() > 1) {
        whole_.add(result->whole_);
        read_.add(result->read_);
    }
    return result;
}

TG_DEFINITION loader::epoch_range loader::epoch(std::uint64_t number) & {
    begin_epoch(number);
    return {this};
}

TG_DEFINITION void loader::check_started() const {
    if (!started_) throw argument_error("data::loader: next() before begin_epoch()");
}

TG_DEFINITION void loader::shuffle() {
    if (data_.shuffle_seed()) shuffle_order(*data_.shuffle_seed(), epoch_, order_);
}

TG_DEFINITION void loader::fill(batch& to, std::int64_t index) {
    const std::int64_t first = index * data_.batch_size();
    const std::int64_t count = std::min(data_.batch_size(), data_.size() - first);
    const std::int64_t begin = count * data_.part() / data_.parts();
    const std::int64_t end = count * (data_.part() + 1) / data_.parts();
    for (std::size_t c = 0; c < places_.size(); ++c)
        places_[c] = reinterpret_cast<std::byte*>(to.memory_[c].data()) +
                     static_cast<std::size_t>(begin) * data_.columns()[c].record_bytes();
    const auto record_of = [&](std::int64_t i) {
        return data_.record_at(order_.empty() ? first + i : order_[static_cast<std::size_t>(first + i)]);
    };
    if (data_.parts() > 1) {
        to.whole_ = to.read_ = {};
        for (std::int64_t i = 0; i < count; ++i) to.whole_.add(record_of(i));
        if (count != data_.batch_size()) clear_others(to, begin, end, count);
    }
    for (std::int64_t i = begin; i < end && !cancel_.load(std::memory_order_relaxed); ++i) {
        data_.records().fill(record_of(i), places_);
        if (data_.parts() > 1) to.read_.add(record_of(i));
        for (std::size_t c = 0; c < places_.size(); ++c) places_[c] += data_.columns()[c].record_bytes();
    }
    to.count_ = count;
    to.index_ = index;
}

TG_DEFINITION void loader::clear_others(batch& to, std::int64_t begin, std::int64_t end, std::int64_t count) {
    for (std::size_t c = 0; c < places_.size(); ++c) {
        const std::size_t row = data_.columns()[c].record_bytes();
        auto* const at = reinterpret_cast<std::byte*>(to.memory_[c].data());
        std::memset(at, 0, static_cast<std::size_t>(begin) * row);
        std::memset(at + static_cast<std::size_t>(end) * row, 0, static_cast<std::size_t>(count - end) * row);
    }
}

TG_DEFINITION const batch* loader::walked() {
    check_started();
    batch_view view;
    if (!walk_->next(view)) return nullptr;
    batch& b = ring_.front();
    b.columns_ = view.columns;
    b.data_ = *view.data;
    b.count_ = view.count;
    b.index_ = taken_++;
    return &b;
}

TG_DEFINITION const batch* loader::assemble() {
    check_started();
    if (taken_ == batches_) return nullptr;
    fill(ring_.front(), taken_);
    ++taken_;
    return &ring_.front();
}

TG_DEFINITION const batch* loader::take() {
    std::unique_lock lock(assembler_->mutex);
    check_started();
    if (released_ < taken_) {
        released_ = taken_;
        assembler_->work.notify_one();
    }
    assembler_->ready.wait(lock, [this] { return produced_ > taken_ || taken_ == batches_ || failure_; });
    if (produced_ > taken_) return &ring_[static_cast<std::size_t>(taken_++) % ring_.size()];
    if (failure_) std::rethrow_exception(failure_);
    return nullptr;
}

TG_DEFINITION void loader::work() {
    std::unique_lock lock(assembler_->mutex);
    for (;;) {
        assembler_->work.wait(lock, [this] { return stop_ || requested_; });
        if (stop_) return;
        requested_ = false;
        busy_ = true;
        lock.unlock();
        shuffle();
        lock.lock();
        while (produced_ < batches_ && !cancel_ && !failure_) {
            assembler_->work.wait(lock, [this] {
                return cancel_.load() || produced_ - released_ < static_cast<std::int64_t>(ring_.size());
            });
            if (cancel_) break;
            const std::int64_t index = produced_;
            lock.unlock();
            std::exception_ptr failure;
            try {
                fill(ring_[static_cast<std::size_t>(index) % ring_.size()], index);
            } catch (...) {
                failure = std::current_exception();
            }
            lock.lock();
            if (failure)
                failure_ = std::move(failure);
            else if (!cancel_)
                ++produced_;
            assembler_->ready.notify_one();
        }
        busy_ = false;
        assembler_->ready.notify_one();
    }
}

} // namespace tapegraph::data

#endif
