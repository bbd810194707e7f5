#pragma once

#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/fault.cuh>
#include <tapegraph/cuda/sent_numbers.hpp>
#include <tapegraph/runtime/device_runtime.hpp>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

/// Implements runtime/device_runtime.hpp on a GPU.

namespace tapegraph::cuda {

class cuda_runtime final : public runtime::device_runtime {
public:
    /// Opens a device at its first use.
    static runtime::device_runtime* of(int index) {
        static std::mutex guard;
        static auto& opened =
            *new std::vector<std::unique_ptr<cuda_runtime>>; // at exit the driver may be gone before us
        const std::lock_guard lock(guard);
        context& c = context::of(index);
        if (opened.size() <= static_cast<std::size_t>(index)) opened.resize(static_cast<std::size_t>(index) + 1);
        auto& made = opened[static_cast<std::size_t>(index)];
        if (made == nullptr) made.reset(new cuda_runtime(c));
        return made.get();
    }

    device id() const override { return device::cuda(context_->device()); }
    void enter() override { driver::use(context_->device()); }

    void* allocate(std::size_t bytes, const char* what) override {
        const runtime::device_turn turn(this);
        return context_->memory().allocate(bytes, what);
    }
    void release(void* at) noexcept override {
        try {
            const runtime::device_turn turn(this);
            context_->memory().release(at);
        } catch (...) { // called by destructors; the error shows at the next call
        }
    }
    void* scratch(std::size_t bytes) override {
        const runtime::device_turn turn(this);
        if (bytes > scratch_bytes_) {
            context_->memory().release(std::exchange(scratch_, nullptr));
            scratch_ = context_->memory().allocate(bytes, "scratch memory");
            scratch_bytes_ = bytes;
        }
        return scratch_;
    }

    void upload(void* to, const void* from, std::size_t bytes) override {
        const runtime::device_turn turn(this);
        if (bytes > small) return feed(to, from, bytes);
        driver::copy(to, departing(from, bytes), bytes, context_->stream());
    }
    // Two pinned buffers and two on the device alternate: one is filled while the other is
    // transferred on the copy stream.
    void feed(void* to, const void* from, std::size_t bytes) override {
        const runtime::device_turn turn(this);
        staging& s = staging_[turn_];
        turn_ = 1 - turn_;
        driver::wait_for(s.free);
        if (bytes > s.bytes) {
            if (s.pinned != nullptr) driver::release_pinned(s.pinned);
            context_->memory().release(std::exchange(s.remote, nullptr));
            s.pinned = driver::allocate_pinned(bytes);
            s.remote = context_->memory().allocate(bytes, "staging of inputs");
            driver::record(s.sent, context_->stream()); // the pool orders its buffers on this stream
            driver::wait_for(context_->copy_stream(), s.sent);
            s.bytes = bytes;
        }
        std::memcpy(s.pinned, from, bytes);
        driver::copy(s.remote, s.pinned, bytes, context_->copy_stream());
        driver::record(s.sent, context_->copy_stream());
        driver::wait_for(context_->stream(), s.sent);
        driver::copy(to, s.remote, bytes, context_->stream());
        driver::record(s.free, context_->stream());
    }
    void bring_to_host(const piece* pieces, int count) override {
        std::size_t all = 0;
        for (int i = 0; i < count; ++i) all += runtime::padded(pieces[i].bytes);
        if (all <= few) return throw_fault(arrived(pieces, count));
        {
            const runtime::device_turn turn(this);
            const current here(*this);
            for (int i = 0; i < count; ++i) copy(pieces[i].to, pieces[i].from, pieces[i].bytes);
        }
        wait();
    }
    void copy(void* to, const void* from, std::size_t bytes) override {
        const runtime::device_turn turn(this);
        if (bytes > 0) driver::copy(to, from, bytes, context_->stream());
    }
    void wait() override { throw_fault(arrived(nullptr, 0)); }

    void* constant(const void* from, std::size_t bytes) override {
        if (runtime::padded(bytes) > small)
            throw device_error("an eager call has more than 64 KiB in the CPU's memory");
        const runtime::device_turn turn(this);
        if (constants_ == nullptr)
            constants_ = static_cast<std::byte*>(context_->memory().allocate(small, "numbers of eager calls"));
        return constants_ + numbers_.place(from, bytes, [&](std::size_t at) {
            driver::copy(constants_ + at, departing(from, bytes), bytes, context_->stream());
        });
    }
    void* stream() override { return context_->stream(); }
    void* fault() override { return context_->fault(); }

    std::int64_t publish(const void* from, std::size_t bytes) override {
        const runtime::device_turn turn(this);
        if (ring_ == nullptr) {
            ring_ = static_cast<std::byte*>(driver::allocate_pinned(ring_size * ring_bytes));
            for (driver::event& e : arrived_) e = driver::make_event();
        }
        const std::size_t slot = static_cast<std::size_t>(published_) % ring_size;
        driver::copy(ring_ + slot * ring_bytes, from, bytes < ring_bytes ? bytes : ring_bytes, context_->stream());
        driver::record(arrived_[slot], context_->stream());
        return published_++;
    }
    const void* published(std::int64_t number) override {
        std::unique_lock turn(turns());
        if (number < 0 || number >= published_ || number + static_cast<std::int64_t>(ring_size) < published_)
            throw argument_error("published: number " + std::to_string(number) + " is not among the last " +
                                 std::to_string(ring_size));
        const std::size_t slot = static_cast<std::size_t>(number) % ring_size;
        turn.unlock();
        driver::wait_for(arrived_[slot]);
        return ring_ + slot * ring_bytes;
    }

    void begin_capture() override {
        context_->memory().recording(true); // first: another thread's trim() waits for the stream
        try {
            driver::begin_capture(context_->stream());
        } catch (...) {
            context_->memory().recording(false);
            throw;
        }
    }
    void* end_capture() override {
        struct stop_recording {
            memory_pool& memory;
            ~stop_recording() { memory.recording(false); }
        } const recorded{context_->memory()};
        numbers_.forget(); // numbers sent during the capture arrive only when the graph is replayed
        return driver::end_capture(context_->stream());
    }
    void replay(void* graph) override { driver::launch_graph(static_cast<driver::graph>(graph), context_->stream()); }
    void drop(void* graph) noexcept override {
        const runtime::device_turn turn(this);
        driver::destroy_graph(static_cast<driver::graph>(graph));
    }

private:
    static constexpr std::size_t small = std::size_t{1} << 16, few = 4096, ring_size = 256, ring_bytes = 8;
    struct staging {
        void *pinned = nullptr, *remote = nullptr;
        std::size_t bytes = 0;
        driver::event sent = driver::make_event(), free = driver::make_event();
    };
    // Makes the device current in calls by threads that use another device, such as a copy to the
    // host of what this one has computed. Events, among others, belong to the device that is
    // current when they are made.
    class current {
    public:
        explicit current(cuda_runtime& r) : before_(driver::current_device()), here_(r.context_->device()) {
            if (before_ != here_) driver::use(here_);
        }
        current(const current&) = delete;
        current& operator=(const current&) = delete;
        ~current() {
            try {
                if (before_ != here_) driver::use(before_);
            } catch (...) { // the error shows at the next call
            }
        }

    private:
        int before_, here_;
    };
    struct arrival { // the staging of one waiting thread
        void* fault = driver::allocate_pinned(context::fault_bytes);
        std::byte* numbers = static_cast<std::byte*>(driver::allocate_pinned(few));
        driver::event all = driver::make_event();
    };
    static_assert(sizeof(device_fault) <= context::fault_bytes);

    explicit cuda_runtime(context& c) : context_(&c) {}

    // Waits once for all enqueued work, for the fault that kernels recorded and for a few bytes,
    // which arrive through pinned memory. Other threads may enqueue work meanwhile.
    device_fault arrived(const piece* pieces, int count) {
        std::unique_ptr<arrival> a;
        {
            const runtime::device_turn turn(this);
            const current here(*this);
            if (spare_arrivals_.empty()) spare_arrivals_.push_back(std::make_unique<arrival>());
            a = std::move(spare_arrivals_.back());
            spare_arrivals_.pop_back();
            std::byte* at = a->numbers;
            for (int i = 0; i < count; ++i) {
                copy(at, pieces[i].from, pieces[i].bytes);
                at += runtime::padded(pieces[i].bytes);
            }
            context_->send_fault(a->fault);
            driver::record(a->all, context_->stream());
        }
        driver::wait_for(a->all);
        device_fault found;
        std::memcpy(&found, a->fault, sizeof found);
        const std::byte* at = a->numbers;
        for (int i = 0; i < count; ++i) {
            if (pieces[i].bytes > 0) std::memcpy(pieces[i].to, at, pieces[i].bytes);
            at += runtime::padded(pieces[i].bytes);
        }
        const runtime::device_turn turn(this);
        spare_arrivals_.push_back(std::move(a));
        return found;
    }
    // Copies at most 64 KiB into pinned memory, whose pieces take turns. CUDA does not specify when
    // it has read pageable memory, nor does it promise not to wait for the stream first.
    const void* departing(const void* from, std::size_t bytes) {
        if (departures_ == nullptr) {
            departures_ = static_cast<std::byte*>(driver::allocate_pinned(left_.size() * small));
            for (driver::event& e : left_) e = driver::make_event();
        }
        if (next_departure_ + bytes > small) {
            driver::record(left_[piece_], context_->stream());
            piece_ = (piece_ + 1) % left_.size();
            driver::wait_for(left_[piece_]);
            next_departure_ = 0;
        }
        std::byte* const at = departures_ + piece_ * small + next_departure_;
        next_departure_ += runtime::padded(bytes);
        return bytes == 0 ? at : std::memcpy(at, from, bytes);
    }

    context* context_;
    void* scratch_ = nullptr;
    std::size_t scratch_bytes_ = 0;
    std::array<staging, 2> staging_;
    int turn_ = 0;
    std::byte* constants_ = nullptr;
    sent_numbers<small> numbers_;
    std::byte* ring_ = nullptr;
    std::array<driver::event, ring_size> arrived_{};
    std::int64_t published_ = 0;
    std::vector<std::unique_ptr<arrival>> spare_arrivals_;
    std::byte* departures_ = nullptr;
    std::array<driver::event, 4> left_{};
    std::size_t piece_ = 0, next_departure_ = 0;
};

namespace detail {
inline const bool runtime_is_known = [] {
    tapegraph::detail::cuda_backend().open = &cuda_runtime::of;
    return true;
}();
} // namespace detail

} // namespace tapegraph::cuda
