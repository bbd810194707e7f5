#include "child.hpp"

#include "interruption.hpp"
#include "memory.hpp"

#include <tapegraph/core/error.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/runtime/memory.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

extern char** environ;

namespace study {

namespace {

/// Reads until the other end is closed; terminates the child if this program is interrupted.
std::string read_all(int end, pid_t child) {
    std::string text;
    char block[4096];
    for (bool terminated = false;;) {
        if (interrupted() && !terminated) {
            ::kill(child, SIGTERM);
            terminated = true;
        }
        const ssize_t n = ::read(end, block, sizeof block);
        if (n > 0)
            text.append(block, static_cast<std::size_t>(n));
        else if (n == 0 || errno != EINTR)
            return text;
    }
}

void write_all(int end, const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t n = ::write(end, text.data() + at, text.size() - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) throw std::runtime_error(std::string("--report-to: ") + std::strerror(errno));
        at += static_cast<std::size_t>(n);
    }
}

json out_of_memory_row(std::uint64_t needed, std::uint64_t limit, const char* note) {
    return {{"status", "out of memory"},
            {"needed_bytes", needed},
            {"memory_limit_bytes", limit > 0 ? json(limit) : json()},
            {"note", note}};
}

} // namespace

json run_in_child(int argc, char** argv, const std::string& word, const std::string& label, tapegraph::device device) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);

    std::vector<std::string> words(argv, argv + argc);
    words.insert(words.end(), {"--row", word, "--report-to", std::to_string(ends[1]), "--device", device.name()});
    std::vector<char*> arguments;
    for (std::string& each : words) arguments.push_back(each.data());
    arguments.push_back(nullptr);

    // Not a bare fork: the child would inherit the parent's high-water mark and an OpenMP runtime
    // without its threads.
    pid_t child = 0;
    const std::uint64_t free_before = available_memory();
    const int failure = ::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ);
    ::close(ends[1]);
    const std::string text = failure == 0 ? read_all(ends[0], child) : std::string();
    ::close(ends[0]);
    if (failure != 0) throw std::runtime_error(label + ": cannot be started: " + std::strerror(failure));

    int status = 0;
    rusage usage{};
    while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {}
    if (interrupted() || (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)) return json();
    if (WIFSIGNALED(status)) {
        // This is how a process ends that the system kills because memory ran out; what it held by
        // then is a lower bound of what it needs.
        if (WTERMSIG(status) == SIGKILL)
            return out_of_memory_row(static_cast<std::uint64_t>(usage.ru_maxrss) * 1024, free_before,
                                     "(it was killed) at least");
        throw std::runtime_error(label + ": ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
                                 ::strsignal(WTERMSIG(status)) + ")");
    }
    if (WEXITSTATUS(status) != 0) throw child_failed(label);
    json row = json::parse(text, nullptr, false);
    if (!row.is_object()) throw std::runtime_error(label + ": ended without a result");
    return row;
}

void serve(const common_options& o, const std::function<json()>& measure) {
#if defined(__linux__)
    ::prctl(PR_SET_PDEATHSIG, SIGTERM); // nobody would read the result
#endif
    if (o.threads > 0) tapegraph::set_thread_count(o.threads);
    // A GPU's memory has its own limit, see limit_memory in training.hpp.
    const std::uint64_t limit = o.memory_limit > 0 || o.device.is_cuda() ? o.memory_limit : available_memory();
    if (o.device.is_cpu()) tapegraph::set_memory_limit(limit);
    json row = json::object();
    row["status"] = "finished";
    try {
        row.update(measure());
    } catch (const tapegraph::out_of_memory& e) {
        // A compiled program asks for all of its memory at once, before its first step; eager mode
        // asks for one buffer after the other.
        row = out_of_memory_row(e.requested_bytes + e.in_use, limit,
                                o.only.find("graph") != o.only.npos ? "" : "at least");
    }
    write_all(o.report_to, row.dump());
}

} // namespace study
