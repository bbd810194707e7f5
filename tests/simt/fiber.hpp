#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#if !defined(__x86_64__) || defined(SIMT_PORTABLE_FIBERS)
#define SIMT_UCONTEXT 1
#include <ucontext.h>
#else
#define SIMT_UCONTEXT 0
#endif

#if defined(__SANITIZE_THREAD__)
#define SIMT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIMT_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif

#ifdef SIMT_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" { // of its runtime; no header declares them
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif
#ifdef SIMT_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef SIMT_TSAN
#define SIMT_UNWATCHED __attribute__((noinline, no_sanitize("thread")))
#else
#define SIMT_UNWATCHED
#endif

/// Fibres: stacks to switch between, one per CUDA thread. On x86-64 a switch takes a dozen
/// instructions; elsewhere ucontext is used.

namespace simt {

/// Sets whether ThreadSanitizer, if present, watches the reads and writes of the running fibre.
inline void race_detector_looks([[maybe_unused]] bool looks) {
#ifdef SIMT_TSAN
    if (looks)
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__), AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    else
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__), AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
}

/// A scope in which it does not watch: for the executor's own data, written by the running fibre.
class unwatched {
public:
    unwatched() { race_detector_looks(false); }
    unwatched(const unwatched&) = delete;
    unwatched& operator=(const unwatched&) = delete;
    ~unwatched() { race_detector_looks(true); }
};

#if !SIMT_UCONTEXT
/// Saves the callee-saved registers on the running stack, stores its pointer in *save and continues
/// where `load` stopped.
__attribute__((naked, noinline)) inline void switch_stack(void** /*save*/, void* /*load*/) {
    asm volatile("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
                 "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
                 "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret");
}
#endif

/// A stack with an inaccessible page below it.
class stack_memory {
public:
    static constexpr std::size_t bytes = 128 * 1024;

    stack_memory() {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        base_ = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base_ == MAP_FAILED) throw std::bad_alloc();
        mprotect(base_, page, PROT_NONE);
        whole_ = bytes + page;
    }
    stack_memory(const stack_memory&) = delete;
    stack_memory& operator=(const stack_memory&) = delete;
    ~stack_memory() { munmap(base_, whole_); }

    char* low() const { return static_cast<char*>(base_) + (whole_ - bytes); }
    char* high() const { return static_cast<char*>(base_) + whole_; }

private:
    void* base_ = nullptr;
    std::size_t whole_ = 0;
};

/// One fibre or, if default constructed, the thread that runs them.
class fiber {
public:
    using entry = void (*)();

    fiber() = default;
    fiber(const fiber&) = delete;
    fiber& operator=(const fiber&) = delete;
    ~fiber() {
        race_detector_looks(false);
        stop();
        delete stack_;
        race_detector_looks(true);
    }

    /// Prepares the fibre to run `function`, which must never return: it switches away for the last
    /// time.
    void start(entry function) {
        stop();
        if (stack_ == nullptr) stack_ = new stack_memory;
#if SIMT_UCONTEXT
        getcontext(&context_);
        context_.uc_stack.ss_sp = stack_->low();
        context_.uc_stack.ss_size = stack_memory::bytes;
        context_.uc_link = nullptr;
        makecontext(&context_, function, 0);
#else
        // The state that a call would leave: sixteen-byte alignment before the return address of
        // `function`.
        auto* top = reinterpret_cast<void**>(stack_->high());
        top[-1] = nullptr;
        top[-2] = reinterpret_cast<void*>(function);
        for (int i = 3; i <= 8; ++i) top[-i] = nullptr;
        pointer_ = top - 8;
#endif
#ifdef SIMT_TSAN
        sanitizer_ = __tsan_create_fiber(0);
        owns_sanitizer_ = true;
#endif
    }

    /// Switches from the running fibre (*this) to another.
    SIMT_UNWATCHED void go(fiber& to, bool last = false) {
        (void)last;
#ifdef SIMT_TSAN
        if (sanitizer_ == nullptr) sanitizer_ = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(to.sanitizer_, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef SIMT_ASAN
        __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack_,
                                       to.stack_ != nullptr ? to.stack_->low() : to.bottom_,
                                       to.stack_ != nullptr ? stack_memory::bytes : to.size_);
        to.came_from_ = this;
#endif
#if SIMT_UCONTEXT
        swapcontext(&context_, &to.context_);
#else
        switch_stack(&pointer_, to.pointer_);
#endif
#ifdef SIMT_ASAN
        arrived();
#endif
    }

    /// Must be called first in a new fibre.
    SIMT_UNWATCHED void arrived() {
#ifdef SIMT_ASAN
        const void* bottom = nullptr;
        std::size_t size = 0;
        __sanitizer_finish_switch_fiber(fake_stack_, &bottom, &size);
        if (came_from_ != nullptr && came_from_->stack_ == nullptr)
            came_from_->bottom_ = bottom, came_from_->size_ = size;
#endif
    }

private:
    void stop() {
#ifdef SIMT_TSAN
        if (owns_sanitizer_) __tsan_destroy_fiber(sanitizer_);
        owns_sanitizer_ = false;
        sanitizer_ = nullptr;
#endif
    }

    stack_memory* stack_ = nullptr; // kept for the next start
#if SIMT_UCONTEXT
    ucontext_t context_{};
#else
    void* pointer_ = nullptr;
#endif
#ifdef SIMT_TSAN
    void* sanitizer_ = nullptr;
    bool owns_sanitizer_ = false;
#endif
#ifdef SIMT_ASAN
    void* fake_stack_ = nullptr;
    fiber* came_from_ = nullptr;
    const void* bottom_ = nullptr;
    std::size_t size_ = 0;
#endif
};

} // namespace simt
