#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/runtime/content_mark.hpp>
#include <tapegraph/runtime/device_runtime.hpp>
#include <tapegraph/runtime/memory.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

/// Reference-counted buffers from a caching pool: a training loop stops asking the system for memory after its first step.

namespace tapegraph {

/// Pool statistics: bytes in buffers of eager tensors, for the whole process.
struct memory_statistics {
    std::int64_t in_use = 0; ///< in live tensors
    std::int64_t peak = 0;   ///< the most that was in use since the last reset
    std::int64_t cached = 0; ///< kept for reuse
};

namespace detail {

struct pool_counters {
    std::atomic<std::int64_t> in_use{0}, peak{0},
        made{0}; // bytes allocated, in use or cached, so that a tensor changes only one counter

    static pool_counters& instance() {
        static pool_counters counters;
        return counters;
    }
    void take(std::int64_t bytes) {
        const std::int64_t now = in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
        if (now > peak.load(std::memory_order_relaxed)) peak.store(now, std::memory_order_relaxed);
    }
};

/// A buffer's copies on the CPU and on a GPU. A buffer is written once, by a kernel or by the
/// caller that fills it, so both copies stay valid: a tensor is copied to a device, or to the host,
/// at most once. Writing on the CPU (any_tensor::write) invalidates the GPU's copy.
class copies {
public:
    /// `host`: the CPU's elements, with their values; null for a buffer created on the device.
    copies(runtime::device_runtime& d, std::byte* host, std::size_t bytes)
        : device_(&d), host_(host), bytes_(bytes), host_good_(host != nullptr) {}
    /// Wraps external elements, which `owner` keeps alive.
    copies(std::byte* host, std::size_t bytes, std::shared_ptr<const void> owner, bool read_only)
        : device_(nullptr),
          host_(host),
          bytes_(bytes),
          host_good_(true),
          read_only_(read_only),
          owner_(static_cast<std::shared_ptr<const void>&&>(owner)) {}
    /// The same in a device's memory.
    copies(runtime::device_runtime& d, void* remote, std::size_t bytes, std::shared_ptr<const void> owner,
           bool read_only)
        : copies(nullptr, bytes, static_cast<std::shared_ptr<const void>&&>(owner), read_only) {
        device_ = &d;
        remote_ = remote;
        host_good_ = false;
        remote_good_ = remote_is_foreign_ = true;
    }
    copies(const copies&) = delete;
    copies& operator=(const copies&) = delete;
    ~copies() { drop_remote(); }

    /// For the CPU to read, or to write (`change`).
    std::byte* host(bool change);
    /// For kernels of a device to read, or to write (`change`).
    void* remote(runtime::device_runtime& d, bool change);

    bool read_only() const { return read_only_; }

private:
    void move_to(runtime::device_runtime& d) {
        host(true);
        const std::lock_guard lock(mutex_);
        drop_remote();
        device_ = &d;
    }
    void drop_remote();

    std::mutex mutex_; // reading threads may share tensors
    runtime::device_runtime* device_;
    void* remote_ = nullptr;
    std::byte* host_;
    std::size_t bytes_;
    bool host_good_, remote_good_ = false, read_only_ = false, remote_is_foreign_ = false;
    runtime::arena own_;                // holds the CPU's elements, unless they follow the header
    std::shared_ptr<const void> owner_; // of external elements
};

/// A buffer: this header followed by the elements, both in one block. Buffers created on a GPU, and
/// borrowed ones, have no elements here.
struct alignas(runtime::alignment) storage {
    std::atomic<std::int32_t> references{1};
    std::int32_t size_class = 0;
    std::size_t bytes = 0;
    storage* next = nullptr; // in a free list
    std::atomic<copies*> elsewhere{nullptr};
    runtime::arena block;
    runtime::content_mark content;

    static constexpr std::int32_t on_device = -1; // the size class of buffers created on a GPU, and of borrowed ones

    std::byte* elements() { return reinterpret_cast<std::byte*>(this + 1); }
    std::byte* data(bool change) {
        if (change) content.change();
        copies* const both = elsewhere.load(std::memory_order_acquire);
        return both == nullptr ? elements() : both->host(change);
    }
    void* remote(runtime::device_runtime& d, bool change);
    static storage* make_on(runtime::device_runtime& d, std::size_t bytes);
    /// Whether the elements are external and read-only.
    bool read_only() const { return size_class == on_device && elsewhere.load(std::memory_order_acquire)->read_only(); }
};

/// Free buffers of one thread by size class: four classes per power of two, so at most a quarter is wasted.
class buffer_pool {
public:
    static buffer_pool& instance() {
        static thread_local buffer_pool pool;
        return pool;
    }

    storage* allocate(std::size_t bytes) {
        const int cls = class_of(bytes);
        storage*& head = free_[cls];
        storage* s = head;
        if (s != nullptr) {
            head = s->next;
            s->references.store(1, std::memory_order_relaxed);
            s->content.renew();
        } else {
            const std::size_t size = bytes_of(cls);
            runtime::arena block = make_block(sizeof(storage) + size);
            s = new (block.data()) storage;
            s->size_class = cls;
            s->bytes = size;
            s->block = static_cast<runtime::arena&&>(block);
            pool_counters::instance().made.fetch_add(static_cast<std::int64_t>(size), std::memory_order_relaxed);
        }
        pool_counters::instance().take(static_cast<std::int64_t>(s->bytes));
        return s;
    }

    void release(storage* s) {
        if (copies* const both = s->elsewhere.load(std::memory_order_acquire); both != nullptr) {
            s->elsewhere.store(nullptr, std::memory_order_relaxed); // this is the only reference to the buffer
            delete both;
        }
        if (s->size_class == storage::on_device) {
            delete s;
            return;
        }
        pool_counters::instance().in_use.fetch_sub(static_cast<std::int64_t>(s->bytes), std::memory_order_relaxed);
        s->next = free_[s->size_class];
        free_[s->size_class] = s;
    }

    /// Returns every cached buffer of this thread to the system.
    void trim();

    ~buffer_pool() { trim(); }

private:
    // Before memory runs out, buffers cached for other sizes are returned to the system.
    runtime::arena make_block(std::size_t bytes);
    static constexpr int class_of(std::size_t bytes) {
        const std::size_t size = bytes <= 64 ? 64 : bytes;
        const int power = static_cast<int>(std::bit_width(size - 1)) - 1; // size in (2^power, 2^(power+1)]
        const std::size_t quarter = std::size_t{1} << (power - 2);
        const auto step = static_cast<int>((size - (std::size_t{1} << power) + quarter - 1) / quarter);
        return (power - 5) * 4 + step;
    }
    static constexpr std::size_t bytes_of(int cls) {
        const int power = (cls - 1) / 4 + 5, step = (cls - 1) % 4 + 1;
        return (std::size_t{1} << power) + static_cast<std::size_t>(step) * (std::size_t{1} << (power - 2));
    }

    storage* free_[160]{};
};

/// A counted reference to a buffer.
class storage_reference {
public:
    storage_reference() = default;
    explicit storage_reference(std::size_t bytes)
        : storage_(runtime::current_runtime() == nullptr ? buffer_pool::instance().allocate(bytes)
                                                         : storage::make_on(*runtime::current_runtime(), bytes)) {}
    /// References external elements, in the CPU's memory or in that of `where`. Read-only ones are
    /// shared as long as they exist: writing copies them first.
    static storage_reference over(void* elements, std::size_t bytes, std::shared_ptr<const void> owner, bool read_only,
                                  runtime::device_runtime* where = nullptr);
    storage_reference(const storage_reference& other) : storage_(other.storage_) {
        if (storage_ != nullptr) storage_->references.fetch_add(1, std::memory_order_relaxed);
    }
    storage_reference(storage_reference&& other) noexcept : storage_(other.storage_) { other.storage_ = nullptr; }
    storage_reference& operator=(storage_reference other) noexcept {
        storage* const mine = storage_;
        storage_ = other.storage_;
        other.storage_ = mine;
        return *this;
    }
    ~storage_reference() {
        if (storage_ == nullptr) return;
        // Nobody else can copy the only reference, so no locked instruction is needed.
        if (storage_->references.load(std::memory_order_acquire) == 1 ||
            storage_->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
            buffer_pool::instance().release(storage_);
    }

    /// The elements in the CPU's memory, for reading, or for writing (`change`).
    void* data(bool change) const { return storage_ == nullptr ? nullptr : storage_->data(change); }
    /// The elements in a device's memory.
    void* remote(runtime::device_runtime& d, bool change) const {
        return storage_ == nullptr ? nullptr : storage_->remote(d, change);
    }
    /// Says whether the elements have changed; null where there are none.
    runtime::content_mark* content() const { return storage_ == nullptr ? nullptr : &storage_->content; }
    const void* identity() const { return storage_; }
    bool empty() const { return storage_ == nullptr; }
    bool shared() const {
        return storage_ != nullptr &&
               (storage_->references.load(std::memory_order_acquire) > 1 || storage_->read_only());
    }

private:
    storage* storage_ = nullptr;
};

} // namespace detail

/// Bytes of tensors' buffers in the CPU's memory, of all threads: in use, the peak since
/// reset_peak_memory(), and cached.
inline memory_statistics eager_memory() {
    const auto& c = detail::pool_counters::instance();
    const std::int64_t in_use = c.in_use.load();
    return {in_use, c.peak.load(), c.made.load() - in_use};
}
/// Resets the peak to the bytes in use.
inline void reset_peak_memory() {
    auto& c = detail::pool_counters::instance();
    c.peak.store(c.in_use.load());
}
/// Returns cached buffers of the calling thread to the system.
inline void trim_memory() { detail::buffer_pool::instance().trim(); }

#if TG_DEFINES_FOR_HOST(eager)

TG_DEFINITION void detail::buffer_pool::trim() {
    for (storage*& head : free_) {
        while (head != nullptr) {
            storage* const s = head;
            head = s->next;
            pool_counters::instance().made.fetch_sub(static_cast<std::int64_t>(s->bytes), std::memory_order_relaxed);
            const runtime::arena block = static_cast<runtime::arena&&>(s->block); // frees it on destruction
            s->~storage();
        }
    }
}

TG_DEFINITION detail::storage_reference detail::storage_reference::over(void* elements, std::size_t bytes,
                                                                        std::shared_ptr<const void> owner,
                                                                        bool read_only,
                                                                        runtime::device_runtime* where) {
    storage_reference r;
    r.storage_ = new storage;
    r.storage_->size_class = storage::on_device;
    r.storage_->bytes = bytes;
    r.storage_->content.escape(); // the elements are somebody else's
    r.storage_->elsewhere = where == nullptr ? new copies(static_cast<std::byte*>(elements), bytes,
                                                          static_cast<std::shared_ptr<const void>&&>(owner), read_only)
                                             : new copies(*where, elements, bytes,
                                                          static_cast<std::shared_ptr<const void>&&>(owner), read_only);
    return r;
}

TG_DEFINITION void* detail::copies::remote(runtime::device_runtime& d, bool change) {
    if (device_ != &d) move_to(d);
    const std::lock_guard lock(mutex_);
    if (remote_ == nullptr) remote_ = d.allocate(bytes_, "tensor");
    if (host_good_ && !remote_good_) d.upload(remote_, host_, bytes_);
    remote_good_ = true;
    host_good_ = host_good_ && !change;
    return remote_;
}

TG_DEFINITION std::byte* detail::copies::host(bool change) {
    const std::lock_guard lock(mutex_);
    if (host_ == nullptr) {
        own_ = runtime::arena(bytes_ > 0 ? bytes_ : 1);
        host_ = own_.data();
    }
    if (!host_good_ && remote_good_) device_->download(host_, remote_, bytes_);
    host_good_ = true;
    remote_good_ = remote_good_ && !change;
    return host_;
}

TG_DEFINITION runtime::arena detail::buffer_pool::make_block(std::size_t bytes) {
    try {
        return runtime::arena(bytes);
    } catch (const out_of_memory&) {
        trim();
    }
    return runtime::arena(bytes);
}

TG_DEFINITION detail::storage* detail::storage::make_on(runtime::device_runtime& d, std::size_t bytes) {
    auto* const s = new storage;
    s->size_class = on_device;
    s->bytes = bytes;
    s->elsewhere = new copies(d, nullptr, bytes);
    return s;
}

TG_DEFINITION void detail::copies::drop_remote() {
    if (remote_is_foreign_)
        owner_ = nullptr;
    else if (remote_ != nullptr)
        device_->release(remote_);
    remote_ = nullptr;
    remote_good_ = remote_is_foreign_ = false;
}

TG_DEFINITION void* detail::storage::remote(runtime::device_runtime& d, bool change) {
    if (change) content.change();
    if (elsewhere.load(std::memory_order_acquire) == nullptr) {
        copies* const made = new copies(d, elements(), bytes);
        copies* none = nullptr;
        if (!elsewhere.compare_exchange_strong(none, made)) delete made;
    }
    return elsewhere.load(std::memory_order_acquire)->remote(d, change);
}

#endif

} // namespace tapegraph
