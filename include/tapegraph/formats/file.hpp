#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/unfinished.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Whole files: reads them with errors that name them, and writes them so that a crash never leaves
/// a partial file.

namespace tapegraph::io {

namespace detail {

inline std::string quoted(const files::path& path) { return "'" + path.string() + "'"; }

/// The size of a regular file. Throws data_error if it is missing or something else.
std::uint64_t file_size_of(const files::path& path);

/// Flushes a folder's entries to disk, as far as the file system supports it.
inline void flush_folder(const files::path& folder) {
    const int handle = posix::open_file(folder.empty() ? "." : folder.c_str(), O_RDONLY | posix::only_folders);
    if (handle < 0) return;
    (void)posix::flush(handle);
    ::close(handle);
}

} // namespace detail

/// A file opened for reading, at any position and from any thread. <fstream> costs a program more
/// than the rest of this header.
class input_file {
public:
    /// Throws data_error naming the file if it is missing, is not a regular file or cannot be
    /// opened.
    explicit input_file(const files::path& path) : name_(path.string()), size_(detail::file_size_of(path)) {
        descriptor_ = posix::open_file(path.c_str(), O_RDONLY);
        if (descriptor_ < 0) throw data_error(detail::quoted(path) + ": cannot be opened: " + std::strerror(errno));
    }
    input_file(input_file&& other) noexcept
        : name_(std::move(other.name_)), size_(other.size_), descriptor_(std::exchange(other.descriptor_, -1)) {}
    input_file& operator=(input_file&& other) noexcept {
        std::swap(name_, other.name_);
        std::swap(size_, other.size_);
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~input_file() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }

    /// The size when the file was opened.
    std::uint64_t size() const { return size_; }
    /// The path as it was given, for messages.
    const std::string& name() const { return name_; }
    /// Fills `to` with the bytes from `at` on. Throws data_error naming the position if some are
    /// missing.
    void read(void* to, std::size_t bytes, std::uint64_t at) const;

private:
    std::string name_;
    std::uint64_t size_ = 0;
    int descriptor_ = -1;
};

/// Reads all bytes of a file. Throws data_error naming it if it is missing or cannot be read.
inline std::vector<std::uint8_t> read_file(const files::path& path) {
    const input_file in(path);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(in.size()));
    in.read(bytes.data(), bytes.size(), 0);
    return bytes;
}

/// A file that appears under its name only when complete: it is written next to it
/// (formats/unfinished.hpp), flushed to disk, then renamed over it. If it is destroyed before
/// commit(), it leaves no trace and an existing file is untouched; the remains of a killed process
/// are removed when a later one writes into the folder.
class atomic_file {
public:
    /// Throws data_error if no file of that name can be created.
    explicit atomic_file(files::path path);
    atomic_file(const atomic_file&) = delete;
    atomic_file& operator=(const atomic_file&) = delete;
    ~atomic_file() { discard(); }

    /// Appends bytes. Throws error with the path if they cannot be written.
    void write(const void* data, std::size_t bytes);
    void write(std::string_view text) { write(text.data(), text.size()); }

    /// Throws data_error if the disk is full or the name cannot be replaced.
    void commit();

private:
    [[noreturn]] void fail(const char* what) {
        const std::string reason = std::strerror(errno);
        discard();
        throw data_error(detail::quoted(path_) + ": " + what + ": " + reason);
    }
    void discard() {
        if (!temporary_.empty()) ::unlink(temporary_.c_str());
        temporary_.clear();
        if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    }

    files::path path_, temporary_;
    int descriptor_ = -1;
};

#if TG_DEFINES(formats)

namespace detail {

TG_DEFINITION std::uint64_t file_size_of(const files::path& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) throw data_error(quoted(path) + ": no such file");
        throw data_error(quoted(path) + ": " + std::strerror(errno));
    }
    if (!S_ISREG(found.st_mode)) throw data_error(quoted(path) + ": not a regular file");
    return static_cast<std::uint64_t>(found.st_size);
}

} // namespace detail

TG_DEFINITION void input_file::read(void* to, std::size_t bytes, std::uint64_t at) const {
    auto* place = static_cast<char*>(to);
    while (bytes > 0) {
        const auto done = posix::read_at(descriptor_, place, bytes, at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            throw data_error("'" + name_ + "': cannot be read at byte " + std::to_string(at) + ": " +
                             (done < 0 ? std::strerror(errno) : "the file became shorter"));
        place += done;
        at += static_cast<std::uint64_t>(done);
        bytes -= static_cast<std::size_t>(done);
    }
}

TG_DEFINITION atomic_file::atomic_file(files::path path) : path_(std::move(path)) {
    const auto folder = path_.parent_path();
    detail::remove_unfinished_once(folder);
    for (;;) {
        temporary_ = detail::unfinished_name(folder);
        descriptor_ = posix::open_file(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL);
        if (descriptor_ < 0 && errno != EEXIST) fail("cannot be written");
        if (descriptor_ < 0) continue;
        if (detail::hold_unfinished(descriptor_, temporary_)) return;
        ::close(std::exchange(descriptor_, -1));
    }
}

TG_DEFINITION void atomic_file::write(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const char*>(data);
    while (bytes > 0) {
        const auto done = ::write(descriptor_, at, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) fail("writing failed");
        at += done;
        bytes -= static_cast<std::size_t>(done);
    }
}

TG_DEFINITION void atomic_file::commit() {
    if (posix::flush(descriptor_) != 0) fail("writing failed");
    // Closing may report that writing failed, and only a closed file gets its name; until then
    // another descriptor keeps the lock.
    const int lock = posix::second_handle(descriptor_);
    const int closed = ::close(std::exchange(descriptor_, lock));
    if (closed != 0) fail("writing failed");
    if (posix::replace(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be replaced");
    temporary_.clear();
    discard();
    // The rename itself survives a power failure only once the folder is on disk, too; some
    // file systems do not support that, and the file is complete all the same.
    detail::flush_folder(path_.parent_path());
}

#endif

} // namespace tapegraph::io
