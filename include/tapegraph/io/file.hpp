#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/io/path.hpp>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/// Whole files: read with errors that name them, written so that a crash never leaves half of one.

namespace tapegraph::io {

namespace detail {

inline std::string quoted(const files::path& path) { return "'" + path.string() + "'"; }

/// Size of a regular file. Throws data_error where it is missing or something else.
inline std::uint64_t file_size_of(const files::path& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) throw data_error(quoted(path) + ": no such file");
        throw data_error(quoted(path) + ": " + std::strerror(errno));
    }
    if (!S_ISREG(found.st_mode)) throw data_error(quoted(path) + ": not a regular file");
    return static_cast<std::uint64_t>(found.st_size);
}

} // namespace detail

/// A file that is open to be read, at any place and from any thread. <fstream> costs a program more than the rest of this header.
class input_file {
public:
    /// Throws data_error naming the file where it is missing, is not a regular file or cannot be opened.
    explicit input_file(const files::path& path) : name_(path.string()), size_(detail::file_size_of(path)) {
        descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
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

    /// As it was when the file was opened.
    std::uint64_t size() const { return size_; }
    const std::string& name() const { return name_; }
    /// Fills `to` with the bytes from `at` on. Throws data_error naming the place where they are not all there.
    void read(void* to, std::size_t bytes, std::uint64_t at) const {
        auto* place = static_cast<char*>(to);
        while (bytes > 0) {
            const auto done = ::pread(descriptor_, place, bytes, static_cast<off_t>(at));
            if (done < 0 && errno == EINTR) continue;
            if (done <= 0)
                throw data_error("'" + name_ + "': cannot be read at byte " + std::to_string(at) + ": " +
                                 (done < 0 ? std::strerror(errno) : "the file became shorter"));
            place += done;
            at += static_cast<std::uint64_t>(done);
            bytes -= static_cast<std::size_t>(done);
        }
    }

private:
    std::string name_;
    std::uint64_t size_ = 0;
    int descriptor_ = -1;
};

/// All bytes of a file. Throws data_error naming it where it is missing or cannot be read.
inline std::vector<std::uint8_t> read_file(const files::path& path) {
    const input_file in(path);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(in.size()));
    in.read(bytes.data(), bytes.size(), 0);
    return bytes;
}

/// A file that appears under its name only when complete: written beside it, flushed to disk, then renamed over it.
/// Destroyed before commit(), it leaves no trace and whatever stood there before is untouched.
class atomic_file {
public:
    explicit atomic_file(files::path path) : path_(std::move(path)) {
        static std::atomic<unsigned> serial{0};
        temporary_ = path_;
        temporary_ += ".tmp." + std::to_string(::getpid()) + "." + std::to_string(serial++);
        descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor_ < 0) fail("cannot be written");
    }
    atomic_file(const atomic_file&) = delete;
    atomic_file& operator=(const atomic_file&) = delete;
    ~atomic_file() { discard(); }

    void write(const void* data, std::size_t bytes) {
        const auto* at = static_cast<const char*>(data);
        while (bytes > 0) {
            const auto done = ::write(descriptor_, at, bytes);
            if (done < 0 && errno == EINTR) continue;
            if (done < 0) fail("writing failed");
            at += done;
            bytes -= static_cast<std::size_t>(done);
        }
    }
    void write(std::string_view text) { write(text.data(), text.size()); }

    /// Throws data_error where the disk is full or the name cannot be replaced.
    void commit() {
        if (::fsync(descriptor_) != 0) fail("writing failed");
        const int closed = ::close(std::exchange(descriptor_, -1));
        if (closed != 0) fail("writing failed");
        if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be replaced");
        temporary_.clear();
        // The rename itself survives a power cut only once the folder is on disk too; some file systems refuse, and
        // the file is complete all the same.
        const auto folder = path_.has_parent_path() ? path_.parent_path() : files::path(".");
        if (const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); handle >= 0) {
            (void)::fsync(handle);
            ::close(handle);
        }
    }

private:
    [[noreturn]] void fail(const char* what) {
        const std::string reason = std::strerror(errno);
        discard();
        throw data_error(detail::quoted(path_) + ": " + what + ": " + reason);
    }
    void discard() {
        if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
        if (!temporary_.empty()) ::unlink(temporary_.c_str());
        temporary_.clear();
    }

    files::path path_, temporary_;
    int descriptor_ = -1;
};

} // namespace tapegraph::io
