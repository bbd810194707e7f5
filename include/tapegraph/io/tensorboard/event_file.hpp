#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/core/clock.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/folder.hpp>
#include <tapegraph/formats/record_framing.hpp>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

/// The file of events: whole records, written in groups.

namespace tapegraph::io {

/// Options of an event_writer.
struct event_options {
    /// Continues in a folder with events, in a new file; TensorBoard shows both as one run, and
    /// drops points of the older file from the newer one's first step on.
    bool resume = false;
    std::size_t buffer_bytes = 64 * 1024; ///< size of the buffer
    double flush_seconds = 1;             ///< age of buffered events at which the next event writes them
    double (*clock)() = nullptr;          ///< seconds since 1970; null: the system's clock. For tests
    bool writes =
        true; ///< false: a writer that creates no file and drops its events, for ranks other than the chief of the job
};

namespace detail {

/// Seconds since 1970.
inline double wall_seconds() {
    ::timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Whether TensorBoard recognizes a file of this name as one of events.
inline bool is_event_file(std::string_view name) { return name.find("tfevents") != name.npos; }

/// Framed records that go to disk together, by one write(2) per flush, so that a killed process
/// leaves no partial record.
class event_file {
public:
    /// Creates the folder if it is missing. Throws data_error if it cannot be written to, if
    /// another writer has it, and, unless options.resume, if it contains events.
    event_file(const files::path& folder, const event_options& options)
        : options_(options), last_flush_(tapegraph::detail::steady_seconds()) {
        if (!options.writes) return;
        std::error_code failure;
        files::create_directories(folder, failure);
        if (failure) throw data_error(quoted(folder) + ": cannot be made: " + failure.message());
        // TensorBoard shows two writers in one folder as one run, and then loses points of either.
        // The lock ends with the process.
        folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder_ < 0) throw data_error(quoted(folder) + ": cannot be opened: " + std::strerror(errno));
        try {
            if (::flock(folder_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
                throw data_error(quoted(folder) + ": another event_writer writes there; a run has a folder of its own");
            if (!options.resume) refuse_events(folder);
            open_file(folder);
        } catch (...) {
            close();
            throw;
        }
        buffer_.reserve(options_.buffer_bytes + slack);
    }
    event_file(const event_file&) = delete;
    event_file& operator=(const event_file&) = delete;
    ~event_file() {
        try {
            flush();
        } catch (...) { // a destructor cannot report it; an explicit flush() can
        }
        close();
    }

    const files::path& path() const { return path_; }
    /// For tests: redirects the output. The file closes the descriptor.
    void replace_descriptor(int file) { ::close(std::exchange(file_, file)); }
    double now() const { return options_.clock != nullptr ? options_.clock() : wall_seconds(); }

    /// Adds a record whose data `write(std::string&)` appends. If that throws, nothing is added.
    template <class Write>
    void add(const Write& write) {
        if (!options_.writes) return;
        const std::size_t at = open_record(buffer_);
        try {
            write(buffer_);
        } catch (...) {
            buffer_.resize(at);
            throw;
        }
        close_record(buffer_, at);
        ++waiting_;
        if (buffer_.size() >= options_.buffer_bytes)
            flush();
        else
            flush_if_due();
    }
    void flush_if_due() {
        if (waiting_ > 0 && tapegraph::detail::steady_seconds() - last_flush_ >= options_.flush_seconds) flush();
    }
    /// Passes all records to the system. Throws data_error on failure; the records are then lost,
    /// and the file ends with the last whole record before them.
    void flush() {
        last_flush_ = tapegraph::detail::steady_seconds();
        if (buffer_.empty()) return;
        std::size_t done = 0;
        while (done < buffer_.size()) {
            const auto count = ::write(file_, buffer_.data() + done, buffer_.size() - done);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) {
                const int why = errno;
                const auto lost = std::exchange(waiting_, 0);
                buffer_.clear();
                if (done > 0 && ::ftruncate(file_, static_cast<off_t>(size_)) == 0) ::lseek(file_, 0, SEEK_END);
                throw data_error(quoted(path_) + ": writing failed, " + std::to_string(lost) +
                                 " events are lost: " + std::strerror(why));
            }
            done += static_cast<std::size_t>(count);
        }
        size_ += done;
        waiting_ = 0;
        buffer_.clear();
        if (buffer_.capacity() > 4 * (options_.buffer_bytes + slack)) { // after a large picture
            buffer_ = std::string();
            buffer_.reserve(options_.buffer_bytes + slack);
        }
    }

private:
    static constexpr std::size_t slack = 4096; // so that the event that fills the buffer does not make it grow

    static void refuse_events(const files::path& folder) {
        std::error_code failure;
        for (files::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure))
            if (is_event_file(at->path().filename().string()))
                throw data_error(quoted(folder) + ": holds the events of another run ('" +
                                 at->path().filename().string() + "'); give each run a folder of its own, or .resume");
    }
    // TensorBoard reads files of a folder in the order of their names, which contain the seconds.
    void open_file(const files::path& folder) {
        static std::atomic<unsigned> serial{0};
        char host[256] = "localhost";
        if (::gethostname(host, sizeof host) != 0) std::strcpy(host, "localhost");
        host[sizeof host - 1] = '\0';
        for (char* c = host; *c != '\0'; ++c)
            if (*c == '/') *c = '_';
        char name[400];
        for (;;) {
            std::snprintf(name, sizeof name, "events.out.tfevents.%010lld.%s.%ld.%u", static_cast<long long>(now()),
                          host, static_cast<long>(::getpid()), serial++);
            path_ = folder / name;
            file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
            if (file_ >= 0) return;
            if (errno != EEXIST) throw data_error(quoted(path_) + ": cannot be written: " + std::strerror(errno));
        }
    }
    void close() {
        if (file_ >= 0) ::close(std::exchange(file_, -1));
        if (folder_ >= 0) ::close(std::exchange(folder_, -1));
    }

    event_options options_;
    files::path path_;
    std::string buffer_;
    std::uint64_t size_ = 0;   // size of the file
    std::int64_t waiting_ = 0; // records in the buffer
    double last_flush_;
    int folder_ = -1, file_ = -1;
};

} // namespace detail
} // namespace tapegraph::io
