#pragma once

#include <tapegraph/core/device.hpp>
#include <tapegraph/core/environment.hpp>
#include <tapegraph/core/number_text.hpp>

#ifdef TG_SIMT
#include <simt/driver.hpp>
#else
#include <tapegraph/cuda/driver.cuh>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// Device memory: one stream-ordered pool per device, where the device supports pools.

namespace tapegraph::cuda {

/// The source of buffers.
enum class allocator {
    pool, ///< the library's own pool, which keeps freed memory for reuse (the default)
    plain ///< cudaMalloc for every buffer: slow, but compute-sanitizer sees the ends of buffers
};

/// How much of a device's memory a process uses. Set it before the device is first used, with
/// `memory_options` or in the environment:
///   TAPEGRAPH_GPU_MEMORY_LIMIT     bytes, with K, M or G, or a percentage of the device
///                                  ("8G", "50%"); 0: all of it
///   TAPEGRAPH_GPU_MEMORY_FRACTION  the fraction that is reserved at once (0.9)
///   TAPEGRAPH_GPU_ALLOW_GROWTH     0: nothing beyond that fraction; 1: grow (the default)
///   TAPEGRAPH_GPU_ALLOCATOR        pool or plain
///   TAPEGRAPH_GPU_MEMORY_REUSE     bytes or a percentage, as above
struct memory_options {
    std::size_t limit = 0; ///< bytes that may be in use at once; 0: all of the device
    double fraction = 0;   ///< of the device's memory, reserved at the first use
    bool allow_growth = true;
    cuda::allocator allocator = allocator::pool;
    /// Freed buffers of up to 4 MiB are kept, up to this many bytes in total, for the next buffer
    /// of the same size, which then needs no call of the driver. The default is a 16th of the
    /// limit, at most 256 MiB. Beyond that, and when memory runs out, all of them return to the
    /// driver's pool.
    std::optional<std::size_t> reuse{};
};

/// What a device's pool holds, in bytes.
struct memory_statistics {
    std::size_t in_use = 0;   ///< bytes in live buffers
    std::size_t peak = 0;     ///< the most bytes in use since the last reset
    std::size_t reserved = 0; ///< bytes the pool holds, in use or kept
    std::size_t limit = 0;
    std::int64_t allocations = 0, buffers = 0; ///< number made so far; number live
};

namespace detail {

/// Parses "8G", "512M", "1000" or "50%" of `whole`. Throws argument_error that names the variable
/// and its value.
inline std::size_t parse_bytes(const char* variable, std::string_view text, std::size_t whole) {
    double number = 0;
    const auto [end, status] = tapegraph::detail::read_number(text, number);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    double factor = -1;
    if (unit.empty()) factor = 1;
    if (unit == "K") factor = 1024.0;
    if (unit == "M") factor = 1024.0 * 1024;
    if (unit == "G") factor = 1024.0 * 1024 * 1024;
    if (unit == "%") factor = static_cast<double>(whole) / 100;
    const double bytes = number * factor;
    if (status != std::errc{} || factor < 0 || !(bytes >= 0 && bytes < 0x1p63))
        tapegraph::detail::refuse_environment(variable, std::string(text).c_str(),
                                              "bytes, optionally with K, M or G, or a percentage");
    return static_cast<std::size_t>(bytes);
}

inline memory_options from_environment(memory_options o, std::size_t whole) {
    using tapegraph::detail::environment, tapegraph::detail::environment_choice, tapegraph::detail::environment_flag,
        tapegraph::detail::refuse_environment;
    if (const char* limit = environment("TAPEGRAPH_GPU_MEMORY_LIMIT"))
        o.limit = parse_bytes("TAPEGRAPH_GPU_MEMORY_LIMIT", limit, whole);
    if (const char* reuse = environment("TAPEGRAPH_GPU_MEMORY_REUSE"))
        o.reuse = parse_bytes("TAPEGRAPH_GPU_MEMORY_REUSE", reuse, whole);
    if (const char* fraction = environment("TAPEGRAPH_GPU_MEMORY_FRACTION")) {
        const char* const end = fraction + std::strlen(fraction);
        const auto [stop, status] = tapegraph::detail::read_number(fraction, end, o.fraction);
        if (status != std::errc{} || stop != end || !(o.fraction >= 0 && o.fraction <= 1))
            refuse_environment("TAPEGRAPH_GPU_MEMORY_FRACTION", fraction, "a number from 0 to 1");
    }
    o.allow_growth = environment_flag("TAPEGRAPH_GPU_ALLOW_GROWTH", o.allow_growth);
    o.allocator = static_cast<allocator>(
        environment_choice("TAPEGRAPH_GPU_ALLOCATOR", {"pool", "plain"}, static_cast<int>(o.allocator)));
    return o;
}

} // namespace detail

/// Memory of one device; safe to use from several threads.
class memory_pool {
public:
    /// The pool of a device, created at the first use.
    static memory_pool& of(int device) {
        static std::mutex guard;
        static auto& pools = *new std::vector<std::unique_ptr<memory_pool>>; // buffers may outlive static objects
        const std::lock_guard lock(guard);
        if (device < 0 || device >= driver::device_count())
            throw device_error("device cuda:" + std::to_string(device) + " does not exist: there are " +
                               std::to_string(driver::device_count()));
        if (pools.size() <= static_cast<std::size_t>(device)) pools.resize(static_cast<std::size_t>(device) + 1);
        auto& pool = pools[static_cast<std::size_t>(device)];
        if (pool == nullptr) pool = std::make_unique<memory_pool>(device);
        return *pool;
    }

    explicit memory_pool(int device) : device_(device), whole_(driver::properties(device).memory) {}
    memory_pool(const memory_pool&) = delete;
    memory_pool& operator=(const memory_pool&) = delete;
    ~memory_pool() {
        give_back();
        if (pool_) driver::destroy(*pool_);
        if (stream_) driver::destroy(*stream_);
    }

    /// Sets options before the first buffer; environment variables override them. Throws
    /// argument_error afterwards.
    void configure(const memory_options& options) {
        const std::lock_guard lock(guard_);
        if (started_)
            throw argument_error("memory of cuda:" + std::to_string(device_) + " is in use: configure it before");
        if (!(options.fraction >= 0 && options.fraction <= 1))
            throw argument_error("memory_options: the fraction is " + std::to_string(options.fraction) +
                                 ", expected 0 to 1");
        options_ = options;
    }

    /// Allocates a buffer. `label` names its user ("conv1/kernel") in the report when memory runs
    /// out. Throws out_of_memory.
    void* allocate(std::size_t bytes, std::string_view label = {}) {
        const std::lock_guard lock(guard_);
        start();
        const std::size_t size = std::max<std::size_t>((bytes + 255) / 256 * 256, 256);
        void* at = nullptr;
        if (kept known = recording_ ? kept{} : kept_.take(size); !known.empty()) {
            at = known.key();
            known.mapped().label = label;
            live_.insert(std::move(known));
        } else {
            at = find(size);
            if (at == nullptr) throw out_of_memory(report(size, label), size, in_use_);
            live_[at] = {size, std::string(label)};
        }
        in_use_ += size;
        peak_ = std::max(peak_, in_use_);
        ++allocations_;
        return at;
    }

    /// Returns a buffer, in the order of the stream. Throws device_error if it is not live.
    void release(void* at) {
        if (at == nullptr) return;
        const std::lock_guard lock(guard_);
        const auto found = live_.find(at);
        if (found == live_.end()) throw device_error("cuda: a buffer is released that is not live");
        const std::size_t size = found->second.bytes;
        in_use_ -= size;
        if (!recording_ && size <= largest_kept && size <= most_kept_) {
            if (kept_.bytes() + size > most_kept_) give_back();
            kept_.put(live_.extract(found)); // reused in stream order, after its last reader
            return;
        }
        live_.erase(found);
        if (options_.allocator == allocator::plain)
            driver::release_plain(at);
        else
            driver::release(at, *stream_);
    }

    /// While a graph is captured, buffers come from the driver, whose graph then accounts for them:
    /// memory recycled by this class alone would belong to another buffer when the graph is
    /// replayed.
    void recording(bool on) {
        const std::lock_guard lock(guard_);
        recording_ = on;
    }
    /// Whether buffers come from the driver, because a graph is captured.
    bool is_recording() const {
        const std::lock_guard lock(guard_);
        return recording_;
    }

    /// The stream that allocations and releases are ordered on. Users on another stream must wait
    /// for this one.
    driver::stream stream() {
        const std::lock_guard lock(guard_);
        start();
        return *stream_;
    }

    /// What the pool holds now.
    memory_statistics statistics() const {
        const std::lock_guard lock(guard_);
        return {in_use_, peak_,        pool_ ? driver::reserved(*pool_) : in_use_,
                limit_,  allocations_, static_cast<std::int64_t>(live_.size())};
    }
    /// The peak counts from now on.
    void reset_peak() {
        const std::lock_guard lock(guard_);
        peak_ = in_use_;
    }
    /// Returns memory that the pool keeps, beyond `keep` bytes, to the device. Does nothing during
    /// a capture, which waiting for the device would invalidate.
    void trim(std::size_t keep = 0) {
        const std::lock_guard lock(guard_);
        if (!pool_ || recording_) return;
        give_back();
        driver::wait(*stream_);
        driver::trim(*pool_, keep);
    }

private:
    struct buffer {
        std::size_t bytes = 0;
        std::string label;
    };
    using buffers = std::unordered_map<void*, buffer>;
    using kept = buffers::node_type;
    static constexpr std::size_t largest_kept = std::size_t{4} << 20, most_by_default = std::size_t{256} << 20;

    /// Freed buffers by size, kept as the nodes that they were in the table of live ones: keeping
    /// or finding one allocates nothing.
    class kept_buffers {
    public:
        kept take(std::size_t size) {
            const auto found = by_size_.find(size);
            if (found == by_size_.end() || found->second.empty()) return {};
            kept last = std::move(found->second.back());
            found->second.pop_back();
            bytes_ -= size;
            return last;
        }
        void put(kept one) {
            const std::size_t size = one.mapped().bytes;
            by_size_[size].push_back(std::move(one));
            bytes_ += size;
        }
        std::size_t bytes() const { return bytes_; }
        template <class F>
        void clear(const F& release) {
            for (const auto& [size, all] : by_size_)
                for (const kept& one : all) release(one.key());
            by_size_.clear();
            bytes_ = 0;
        }

    private:
        std::unordered_map<std::size_t, std::vector<kept>> by_size_;
        std::size_t bytes_ = 0;
    };
    void give_back() {
        kept_.clear([&](void* at) { driver::release(at, *stream_); });
    }

    void start() {
        if (started_) return;
        options_ = detail::from_environment(options_, whole_);
        driver::use(device_);
        limit_ = options_.limit == 0 ? whole_ : std::min(options_.limit, whole_);
        const auto part = static_cast<std::size_t>(options_.fraction * static_cast<double>(whole_));
        if (!options_.allow_growth) {
            if (part == 0)
                throw argument_error(
                    "memory of cuda:" + std::to_string(device_) +
                    ": growth is off (allow_growth, TAPEGRAPH_GPU_ALLOW_GROWTH), so the fraction to take at "
                    "once (fraction, TAPEGRAPH_GPU_MEMORY_FRACTION) must be more than 0");
            limit_ = std::min(limit_, part);
        }
        stream_ = driver::make_stream();
        if (!driver::has_pools(device_)) options_.allocator = allocator::plain;
        if (options_.allocator == allocator::pool) {
            pool_ = driver::make_pool(device_);
            if (part > 0) { // allocated and released again; the pool keeps it
                void* const all = driver::allocate(*pool_, std::min(part, limit_), *stream_);
                if (all == nullptr) throw out_of_memory(report(std::min(part, limit_), "the fraction to take at once"));
                driver::release(all, *stream_);
            }
            most_kept_ = options_.reuse.value_or(std::min(limit_ / 16, most_by_default));
        }
        started_ = true;
    }

    // Allocates from the driver; null when there is not enough.
    void* find(std::size_t size) {
        if (in_use_ + kept_.bytes() + size > limit_) give_back();
        if (in_use_ + size > limit_) return nullptr;
        void* const at = take(size);
        if (at != nullptr || !pool_) return at;
        give_back();
        driver::wait(*stream_); // the pool's free memory may be fragmented
        driver::trim(*pool_, 0);
        return take(size);
    }
    void* take(std::size_t bytes) {
        return options_.allocator == allocator::plain ? driver::allocate_plain(bytes)
                                                      : driver::allocate(*pool_, bytes, *stream_);
    }

    // The message for out_of_memory: the request, the totals and the largest users.
    std::string report(std::size_t bytes, std::string_view label) const {
        std::string text =
            "out of memory on cuda:" + std::to_string(device_) + ": " + tapegraph::detail::readable_bytes(bytes) +
            " requested" + (label.empty() ? "" : " for " + std::string(label)) + "; limit " +
            tapegraph::detail::readable_bytes(limit_) + ", in use " + tapegraph::detail::readable_bytes(in_use_) +
            " in " + std::to_string(live_.size()) + " buffers";
        if (pool_) text += ", held by the pool " + tapegraph::detail::readable_bytes(driver::reserved(*pool_));
        text += ", free on the device " + tapegraph::detail::readable_bytes(driver::free_memory());
        std::vector<const buffer*> largest;
        for (const auto& [at, b] : live_) largest.push_back(&b);
        const std::size_t shown = std::min<std::size_t>(5, largest.size());
        std::partial_sort(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(shown), largest.end(),
                          [](const buffer* a, const buffer* b) {
                              return a->bytes != b->bytes ? a->bytes > b->bytes : a->label < b->label;
                          });
        for (std::size_t i = 0; i < shown; ++i)
            text += (i == 0 ? "; largest: " : ", ") +
                    (largest[i]->label.empty() ? std::string("(unnamed)") : largest[i]->label) + " " +
                    tapegraph::detail::readable_bytes(largest[i]->bytes);
        return text + ". Try a smaller batch, trim(), or a larger TAPEGRAPH_GPU_MEMORY_LIMIT";
    }

    int device_;
    std::size_t whole_, limit_ = 0, in_use_ = 0, peak_ = 0;
    std::int64_t allocations_ = 0;
    memory_options options_;
    bool started_ = false;
    std::optional<driver::pool> pool_;
    std::optional<driver::stream> stream_;
    buffers live_;
    kept_buffers kept_;
    std::size_t most_kept_ = 0;
    bool recording_ = false;
    mutable std::mutex guard_;
};

} // namespace tapegraph::cuda
