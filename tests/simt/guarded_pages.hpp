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

/// Memory that only the device may touch: its pages have no access rights but while the device works.

namespace tapegraph::cuda::driver {

/// Blocks of memory. A block ends, up to the 256 bytes that it is aligned to, where its last page does; the page behind is never
/// open. While the memory is open to a thread, a block gets its rights when that thread first touches it, for a step of a model
/// touches few of the hundreds that are there, and each change of rights is a system call of some 30 microseconds; closing takes
/// them back.
class guarded_pages {
public:
    static guarded_pages& instance() {
        static guarded_pages& all = *new guarded_pages; // what is freed behind main() still finds it
        return all;
    }

    void* take(std::size_t bytes) {
        void* const pages = mmap(nullptr, rounded(bytes, page) + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED) throw device_error("no memory for the imitated device");
        auto* const at = static_cast<std::byte*>(pages) + (rounded(bytes, page) - rounded(bytes, 256));
        blocks_[at] = bytes;
        allow(at, bytes, PROT_READ | PROT_WRITE);
        std::memset(at, 0xFF, bytes); // fresh memory is no zeros
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

    /// To the calling thread.
    void open() {
        touched_.reserve(blocks_.size() + 1); // a signal handler does not allocate
        thread_ = pthread_self();
        struct sigaction now {};
        sigaction(SIGSEGV, nullptr, &now);
        if (now.sa_sigaction != touched) { // doctest has one of its own for each test, which gets what is not ours
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
        // To the previous one, when the instruction is tried once more.
        if (!all.open_block_of(static_cast<std::byte*>(what->si_addr))) sigaction(SIGSEGV, &all.previous_, nullptr);
    }
    bool open_block_of(std::byte* at) {
        if (!open_ || pthread_equal(thread_, pthread_self()) == 0) return false;
        auto next = blocks_.upper_bound(at);
        // In front of a block's first byte, there may be more of its first page.
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
    std::vector<std::byte*> touched_; ///< what has its rights
    bool open_ = false;
    pthread_t thread_{};
    struct sigaction previous_ {};
};

} // namespace tapegraph::cuda::driver
