#pragma once

#include <tapegraph/cpu/parallel.hpp>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#if defined(__linux__) && __has_include(<linux/perf_event.h>)
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>
#define TG_HAS_PERF_EVENTS 1
#else
#define TG_HAS_PERF_EVENTS 0
#endif

/// Counters of the processor and of the kernel, by perf_event_open. Virtual machines often only
/// have those of the kernel.

namespace tapegraph::profiling {

/// The counters, in this order.
enum class counter { cycles, instructions, cache_misses, task_clock, page_faults };
inline constexpr int counter_count = 5;

/// The counter's name in tables and files.
constexpr const char* name_of(counter c) {
    constexpr const char* names[]{"cycles", "instructions", "cache_misses", "task_clock_ns", "page_faults"};
    return names[static_cast<int>(c)];
}

/// Sums over all threads; unavailable counters stay 0.
struct counter_values {
    double at[counter_count]{};

    /// The value of a counter.
    double operator[](counter c) const { return at[static_cast<int>(c)]; }
    counter_values& operator+=(const counter_values& other) {
        for (int i = 0; i < counter_count; ++i) at[i] += other.at[i];
        return *this;
    }
    friend counter_values operator-(counter_values a, const counter_values& b) {
        for (int i = 0; i < counter_count; ++i) a.at[i] -= b.at[i];
        return a;
    }
};

/// Opens the counters of every thread that kernels use: one descriptor per thread and counter,
/// opened by the thread itself. Reading costs a system call for each.
class counters {
public:
    counters() {
        descriptors_.resize(static_cast<std::size_t>(thread_count()) * counter_count, -1);
        std::vector<int> errors(descriptors_.size());
        cpu::parallel_team(thread_count() > 1, [&](int thread, int) {
            for (int c = 0; c < counter_count; ++c) {
                const auto at = static_cast<std::size_t>(thread * counter_count + c);
                if (at < descriptors_.size()) descriptors_[at] = open(static_cast<counter>(c), errors[at]);
            }
        });
        for (std::size_t at = 0; at < errors.size(); ++at)
            if (descriptors_[at] < 0 && error_[at % counter_count] == 0) error_[at % counter_count] = errors[at];
    }
    counters(const counters&) = delete;
    counters& operator=(const counters&) = delete;
    ~counters() {
#if TG_HAS_PERF_EVENTS
        for (const int d : descriptors_)
            if (d >= 0) ::close(d);
#endif
    }

    /// Whether the system lets this process read the counter.
    bool available(counter c) const { return error_[static_cast<int>(c)] == 0; }
    /// "", or why a counter is missing: "not available: ...".
    std::string missing(counter c) const {
        const int error = error_[static_cast<int>(c)];
        if (error == 0) return {};
        if (error == ENOENT) return "not available: this machine has no such counter, or its hypervisor hides it";
        if (error == EACCES || error == EPERM)
            return "not available: not permitted (see /proc/sys/kernel/perf_event_paranoid)";
        if (error == ENOSYS) return "not available: no perf_event_open here";
        return std::string("not available: ") + std::strerror(error);
    }

    /// The counters of all threads so far; 0 for those that cannot be read.
    counter_values read() const {
        counter_values sum;
#if TG_HAS_PERF_EVENTS
        for (std::size_t at = 0; at < descriptors_.size(); ++at) {
            std::uint64_t value = 0;
            if (descriptors_[at] >= 0 && ::read(descriptors_[at], &value, sizeof value) == sizeof value)
                sum.at[at % counter_count] += static_cast<double>(value);
        }
#endif
        return sum;
    }

private:
    static int open([[maybe_unused]] counter c, int& error) {
#if TG_HAS_PERF_EVENTS
        constexpr std::uint64_t events[][2]{{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
                                            {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
                                            {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
                                            {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
                                            {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS}};
        perf_event_attr attributes;
        std::memset(&attributes, 0, sizeof attributes);
        attributes.size = sizeof attributes;
        attributes.type = static_cast<std::uint32_t>(events[static_cast<int>(c)][0]);
        attributes.config = events[static_cast<int>(c)][1];
        attributes.exclude_kernel = attributes.exclude_hv = 1;
        const long descriptor = ::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (descriptor < 0) error = errno == 0 ? EIO : errno;
        return static_cast<int>(descriptor);
#else
        error = ENOSYS;
        return -1;
#endif
    }

    std::vector<int> descriptors_; // thread by thread
    int error_[counter_count]{};
};

} // namespace tapegraph::profiling
