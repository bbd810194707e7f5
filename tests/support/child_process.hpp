#pragma once

#include <cerrno>
#include <exception>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

/// A separate process for a test.

namespace support {

/// Runs f() in a child; if it throws, the child exits with 1. The child ends without running
/// destructors of objects inherited from its parent.
class child_process {
public:
    template <class F>
    explicit child_process(const F& f) : number_(::fork()) {
        if (number_ != 0) return;
        int code = 0;
        try {
            f();
        } catch (const std::exception&) {
            code = 1;
        }
        ::_exit(code);
    }
    child_process(const child_process&) = delete;
    child_process& operator=(const child_process&) = delete;
    ~child_process() {
        if (number_ > 0) kill();
    }

    ::pid_t number() const { return number_; }
    /// Sends SIGKILL; the system keeps the process's number until wait().
    void signal_kill() const { ::kill(number_, SIGKILL); }
    /// The exit status of a child that ended by itself, or -1 if a signal ended it.
    int wait() {
        int status = 0;
        while (::waitpid(number_, &status, 0) < 0 && errno == EINTR) {}
        number_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    int kill() {
        signal_kill();
        return wait();
    }

private:
    ::pid_t number_;
};

/// Lets one of two processes signal the other that it has reached a point.
class bell {
public:
    bell() { static_cast<void>(!::pipe(ends_)); }
    bell(const bell&) = delete;
    bell& operator=(const bell&) = delete;
    ~bell() {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    void ring() const { static_cast<void>(!::write(ends_[1], "!", 1)); }
    void wait() const {
        char c = 0;
        static_cast<void>(!::read(ends_[0], &c, 1));
    }

private:
    int ends_[2]{};
};

} // namespace support
