#include "child.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace batch_study {

namespace {

std::string name_of_run(const run_key& key) { return key.mode + " mode, batch size " + std::to_string(key.batch_size); }

} // namespace

run_result run_in_child(int argc, char** argv, const run_key& key, tapegraph::device device) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);

    std::vector<std::string> words(argv, argv + argc);
    words.insert(words.end(), {"--row", key.mode + ":" + std::to_string(key.batch_size), "--report-to",
                               std::to_string(ends[1]), "--device", device.name()});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);

    // Not a bare fork: the child would inherit the parent's high-water mark and an OpenMP runtime without its threads.
    pid_t child = 0;
    const int failure = ::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ);
    ::close(ends[1]);
    std::string text;
    if (failure == 0) {
        char block[4096];
        for (ssize_t n; (n = ::read(ends[0], block, sizeof block)) != 0;) {
            if (n > 0)
                text.append(block, static_cast<std::size_t>(n));
            else if (errno != EINTR)
                break;
        }
    }
    ::close(ends[0]);
    if (failure != 0) throw std::runtime_error(name_of_run(key) + ": cannot be started: " + std::strerror(failure));

    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (WIFSIGNALED(status))
        throw std::runtime_error(name_of_run(key) + ": ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
                                 ::strsignal(WTERMSIG(status)) + ")" +
                                 (WTERMSIG(status) == SIGKILL ? ", as happens where memory runs out" : ""));
    if (WEXITSTATUS(status) != 0) throw child_failed(name_of_run(key));
    return from_text(text);
}

void report_result(int descriptor, const run_result& result) {
    const std::string text = to_text(result);
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t n = ::write(descriptor, text.data() + at, text.size() - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) throw std::runtime_error(std::string("--report-to: ") + std::strerror(errno));
        at += static_cast<std::size_t>(n);
    }
}

} // namespace batch_study
