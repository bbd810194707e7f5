#pragma once

#include <tapegraph/core/config.hpp>

#include <csignal>

#if defined(_WIN32)
#include <io.h>
#else
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>
#endif

/// What systems differ in, and every program needs. Files need POSIX (<tapegraph/io.hpp>); docs/platforms.md says what was tried.

namespace tapegraph::detail {

/// Whether a descriptor is a terminal's.
inline bool is_terminal(int descriptor) {
#if defined(_WIN32)
    return ::_isatty(descriptor) != 0;
#else
    return ::isatty(descriptor) == 1;
#endif
}

/// The columns of a terminal; 0 where the system does not say.
inline unsigned terminal_columns([[maybe_unused]] int descriptor) {
#if !defined(_WIN32)
    winsize size{};
    if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0) return size.ws_col;
#endif
    return 0;
}

/// Calls functions around fork(): before it, after it in the parent, and in the child. Windows has no fork().
inline void at_fork([[maybe_unused]] void (*before)(), [[maybe_unused]] void (*parent)(),
                    [[maybe_unused]] void (*child)()) {
#if !defined(_WIN32)
    ::pthread_atfork(before, parent, child);
#endif
}

/// What a program does on SIGINT (Ctrl-C).
class interrupt_action {
public:
    /// Calls `handler` for the next one, after which the system's own action is in force; returns what was done before.
    static interrupt_action once(void (*handler)(int)) {
        interrupt_action before;
#if defined(_WIN32) // signal() is for one signal there
        before.action_ = std::signal(SIGINT, handler);
#else
        struct sigaction action {};
        action.sa_handler = handler;
        sigemptyset(&action.sa_mask);
        action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
        ::sigaction(SIGINT, &action, &before.action_);
#endif
        return before;
    }
    /// Does this from now on.
    void restore() const {
#if defined(_WIN32)
        std::signal(SIGINT, action_);
#else
        ::sigaction(SIGINT, &action_, nullptr);
#endif
    }

private:
#if defined(_WIN32)
    void (*action_)(int) = SIG_DFL;
#else
    struct sigaction action_ {};
#endif
};

} // namespace tapegraph::detail
