#pragma once

#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/fault.cuh>
#include <tapegraph/runtime/device_runtime.hpp>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

/// What runtime/device_runtime.hpp asks for, on a GPU.

namespace tapegraph::cuda {

class cuda_runtime final : public runtime::device_runtime {
public:
    /// Opens a device at its first use.
    static runtime::device_runtime* of(int index) {
        static std::mutex guard;
        static auto& opened = *new std::vector<std::unique_ptr<cuda_runtime>>; // at exit the driver may be gone before us
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
        } catch (...) { // destructors call this; what goes wrong here shows at the next call
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
        // Up to 64 KiB the driver has taken from pageable memory by the time it returns; more goes through memory of ours.
        if (bytes <= small) return driver::copy(to, from, bytes, context_->stream());
        feed(to, from, bytes);
    }
    // Two pinned buffers and two on the device take turns: one is filled while the other still travels, on a stream of copies.
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
    void download(void* to, const void* from, std::size_t bytes) override {
        {
            const runtime::device_turn turn(this);
            driver::copy(to, from, bytes, context_->stream());
        }
        wait();
    }
    void copy(void* to, const void* from, std::size_t bytes) override {
        const runtime::device_turn turn(this);
        if (bytes > 0) driver::copy(to, from, bytes, context_->stream());
    }
    // Other threads may give while this one waits.
    void wait() override {
        std::unique_ptr<fault_on_its_way> fault;
        {
            const runtime::device_turn turn(this);
            if (spare_faults_.empty()) spare_faults_.push_back(std::make_unique<fault_on_its_way>());
            fault = std::move(spare_faults_.back());
            spare_faults_.pop_back();
            context_->send_fault(fault->record);
            driver::record(fault->arrived, context_->stream());
        }
        driver::wait_for(fault->arrived);
        device_fault found;
        std::memcpy(&found, fault->record, sizeof found);
        {
            const runtime::device_turn turn(this);
            spare_faults_.push_back(std::move(fault));
        }
        throw_fault(found);
    }

    void* constant(const void* from, std::size_t bytes) override {
        const runtime::device_turn turn(this);
        if (constants_ == nullptr)
            constants_ = static_cast<std::byte*>(context_->memory().allocate(small, "numbers of eager calls"));
        const std::size_t size = (bytes + 15) / 16 * 16;
        if (size > small) throw device_error("an eager call has more than 64 KiB in the CPU's memory");
        if (next_constant_ + size > small) next_constant_ = 0; // in order behind whoever reads there
        std::byte* const at = constants_ + next_constant_;
        next_constant_ += size;
        driver::copy(at, from, bytes, context_->stream());
        return at;
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

    void begin_capture() override { driver::begin_capture(context_->stream()); }
    void* end_capture() override { return driver::end_capture(context_->stream()); }
    void replay(void* graph) override { driver::launch_graph(static_cast<driver::graph>(graph), context_->stream()); }
    void drop(void* graph) noexcept override {
        const runtime::device_turn turn(this);
        driver::destroy_graph(static_cast<driver::graph>(graph));
    }

private:
    static constexpr std::size_t small = std::size_t{1} << 16, ring_size = 256, ring_bytes = 8;
    struct staging {
        void *pinned = nullptr, *remote = nullptr;
        std::size_t bytes = 0;
        driver::event sent = driver::make_event(), free = driver::make_event();
    };
    struct fault_on_its_way { // to one thread that waits
        void* record = driver::allocate_pinned(context::fault_bytes);
        driver::event arrived = driver::make_event();
    };
    static_assert(sizeof(device_fault) <= context::fault_bytes);

    explicit cuda_runtime(context& c) : context_(&c) {}

    context* context_;
    void* scratch_ = nullptr;
    std::size_t scratch_bytes_ = 0;
    std::array<staging, 2> staging_;
    int turn_ = 0;
    std::byte* constants_ = nullptr;
    std::size_t next_constant_ = 0;
    std::byte* ring_ = nullptr;
    std::array<driver::event, ring_size> arrived_{};
    std::int64_t published_ = 0;
    std::vector<std::unique_ptr<fault_on_its_way>> spare_faults_;
};

namespace detail {
inline const bool runtime_is_known = [] {
    tapegraph::detail::cuda_backend().open = &cuda_runtime::of;
    return true;
}();
} // namespace detail

} // namespace tapegraph::cuda
