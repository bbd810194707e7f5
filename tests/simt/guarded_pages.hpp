#pragma once

#include <tapegraph/core/error.hpp>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <pthread.h>
#include <vector>

#include <sys/mman.h>

/// Memory that only the device may access: its pages have no access rights except while the device
/// works.

namespace tapegraph::cuda::driver {

/// Blocks of memory. A block ends, up to the 256 bytes that it is aligned to, at the end of its
/// last page; the page after it is never open. While the memory is open to a thread, a block gets
/// its rights when that thread first accesses it: a step of a model accesses few of the hundreds of
/// blocks, and each change of rights is a system call of some 30 microseconds. Closing revokes the
/// rights.
class guarded_pages {
public:
    static guarded_pages& instance() {
        static guarded_pages& all = *new guarded_pages; // memory may be freed after main()
        return all;
    }

    void* take(std::size_t bytes) {
        void* const pages = mmap(nullptr, rounded(bytes, page) + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED) throw device_error("no memory for the imitated device");
        auto* const at = static_cast<std::byte*>(pages) + (rounded(bytes, page) - rounded(bytes, 256));
        blocks_[at] = bytes;
        allow(at, bytes, PROT_READ | PROT_WRITE);
        std::memset(at, 0xFF, bytes); // fresh memory is not zero
        if (open_)
            touched_.push_back(at);
        else
            allow(at, bytes, PROT_NONE);
        return at;
    }
    void give(void* at) {
        const auto found = blocks_.find(static_cast<std::byte*>(at));
        munmap(first_page(found->first, found->second), rounded(found->second, page) + page);
        std::erase(touched_, found->first);
        blocks_.erase(found);
    }

    /// Opens the memory to the calling thread.
    void open() {
        touched_.reserve(blocks_.size() + 1); // a signal handler does not allocate
        thread_ = pthread_self();
        struct sigaction now {};
        sigaction(SIGSEGV, nullptr, &now);
        if (now.sa_sigaction != touched) { // doctest installs its own handler for each test, which handles other faults
            previous_ = now;
            struct sigaction ours {};
            ours.sa_sigaction = touched;
            ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
            sigemptyset(&ours.sa_mask);
            sigaction(SIGSEGV, &ours, nullptr);
        }
        open_ = true;
    }
    void close() {
        open_ = false;
        for (std::byte* const at : touched_) allow(at, blocks_.at(at), PROT_NONE);
        touched_.clear();
    }

private:
    static constexpr std::size_t page = 4096;
    static std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }
    static std::byte* first_page(std::byte* at, std::size_t bytes) {
        return at - (rounded(bytes, page) - rounded(bytes, 256));
    }
    static void allow(std::byte* at, std::size_t bytes, int rights) {
        if (bytes > 0) mprotect(first_page(at, bytes), rounded(bytes, page), rights);
    }

    static void touched(int /*signal*/, siginfo_t* what, void* /*context*/) {
        guarded_pages& all = instance();
        // Not our memory: the previous handler gets it when the instruction is retried.
        if (!all.open_block_of(static_cast<std::byte*>(what->si_addr))) sigaction(SIGSEGV, &all.previous_, nullptr);
    }
    bool open_block_of(std::byte* at) {
        if (!open_ || pthread_equal(thread_, pthread_self()) == 0) return false;
        auto next = blocks_.upper_bound(at);
        // A page before a block's first byte may be its first page.
        if (next != blocks_.end() && at >= first_page(next->first, next->second)) ++next;
        if (next == blocks_.begin()) return false;
        const auto& [first, bytes] = *std::prev(next);
        if (at >= first_page(first, bytes) + rounded(bytes, page) ||
            std::find(touched_.begin(), touched_.end(), first) != touched_.end())
            return false;
        allow(first, bytes, PROT_READ | PROT_WRITE);
        touched_.push_back(first);
        return true;
    }

    std::map<std::byte*, std::size_t> blocks_;
    std::vector<std::byte*> touched_; ///< blocks that have rights
    bool open_ = false;
    pthread_t thread_{};
    struct sigaction previous_ {};
};

} // namespace tapegraph::cuda::driver
