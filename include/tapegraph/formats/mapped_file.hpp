#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/path.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/// Memory-mapped files: pages are loaded on access, are shared between processes, and are dropped
/// when the system needs memory.

namespace tapegraph::io {

/// The expected access pattern of a mapping.
enum class file_access {
    random,     ///< random access: the system reads ahead by default
    sequential, ///< once from start to end: read ahead far
    all         ///< all of it, soon: start reading at once
};

/// A file mapped for reading. An empty file is an empty span. Files that others only ever replace,
/// like atomic_file, do not change; if another process truncates the file while it is mapped,
/// access to the missing part ends this process with SIGBUS.
class mapped_file {
public:
    /// Throws data_error naming the file if it is missing, is not a regular file or cannot be
    /// mapped.
    explicit mapped_file(const files::path& path, file_access access = file_access::random);
    mapped_file(mapped_file&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    mapped_file& operator=(mapped_file&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~mapped_file() {
        if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
    }

    std::size_t size() const { return size_; }
    /// Valid as long as the mapping; the address is aligned to a page.
    std::span<const std::byte> bytes() const { return {data_, size_}; }

private:
    [[noreturn]] static void fail(const files::path& path, const char* what, int reason) {
        throw data_error(detail::quoted(path) + ": " + what + ": " + std::strerror(reason));
    }

    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

#if TG_DEFINES(formats)

TG_DEFINITION mapped_file::mapped_file(const files::path& path, file_access access) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        (void)detail::file_size_of(path); // reports a missing file, or one of another kind
        fail(path, "cannot be opened", errno);
    }
    struct ::stat known {};
    const bool regular = ::fstat(file, &known) == 0 && S_ISREG(known.st_mode);
    size_ = regular ? static_cast<std::size_t>(known.st_size) : 0;
    void* const place = size_ == 0 ? nullptr : ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    const int reason = errno;
    ::close(file); // the mapping keeps it open
    if (!regular) throw data_error(detail::quoted(path) + ": not a regular file");
    if (place == MAP_FAILED) fail(path, "cannot be mapped", reason);
    data_ = static_cast<const std::byte*>(place);
    if (data_ == nullptr || access == file_access::random) return;
    (void)::madvise(place, size_, access == file_access::all ? MADV_WILLNEED : MADV_SEQUENTIAL); // a hint
}

#endif

} // namespace tapegraph::io
