#pragma once

#include <cerrno>
#include <exception>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

/// A process of one's own beside the test's.

namespace support {

/// Runs f() in a child; when it throws, the child ends with 1. The child ends without destructors of what it has from its parent.
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
    /// By SIGKILL, at once; the system keeps its number until wait().
    void signal_kill() const { ::kill(number_, SIGKILL); }
    /// The exit status of a child that ended by itself, -1 of one that a signal ended.
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

/// One of two processes tells the other one that it has come so far.
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
