#pragma once

#include <tapegraph/io/file.hpp>
#include <tapegraph/io/folder.hpp>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/// Folders of files that belong together: they appear under their name, and go, all at once.

namespace tapegraph::io {

namespace detail {

/// What begins the names of folders that are being written, or removed. The process and a number follow.
inline constexpr std::string_view unfinished_prefix = ".unfinished-";

inline unsigned next_unfinished(bool take) {
    static std::atomic<unsigned> serial{0};
    return take ? serial++ : serial.load();
}
inline files::path unfinished_name(const files::path& beside) {
    return beside /
           (std::string(unfinished_prefix) + std::to_string(::getpid()) + "-" + std::to_string(next_unfinished(true)));
}

/// Puts a folder's entries on disk, as far as the file system does that.
inline void flush_folder(const files::path& folder) {
    const int handle = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle < 0) return;
    (void)::fsync(handle);
    ::close(handle);
}

} // namespace detail

/// Removes a folder with what is in it. Whenever the process ends, the folder is there whole or not at all. Throws data_error where it
/// cannot be removed; one that is not there is no error.
template <class = void>
void remove_folder(const files::path& folder) {
    const auto aside = detail::unfinished_name(folder.parent_path());
    if (::rename(folder.c_str(), aside.c_str()) != 0) {
        if (errno == ENOENT) return;
        throw data_error(detail::quoted(folder) + ": cannot be removed: " + std::strerror(errno));
    }
    std::error_code ignored; // what is left of it has no name that anybody reads
    files::remove_all(aside, ignored);
}

/// Removes what processes that are no more left unfinished in a folder.
template <class = void>
void remove_unfinished(const files::path& folder) {
    std::error_code ignored;
    for (const auto& entry : files::directory_iterator(folder, ignored)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(detail::unfinished_prefix)) continue;
        long process = 0;
        unsigned serial = 0;
        const char* const last = name.data() + name.size();
        const auto end = std::from_chars(name.data() + detail::unfinished_prefix.size(), last, process);
        if (end.ec != std::errc{} || end.ptr == last || process <= 0) continue;
        std::from_chars(end.ptr + 1, last, serial);
        // A number of this process that it has not given yet is of an earlier one that had its number.
        const bool gone = process == ::getpid() ? serial >= detail::next_unfinished(false)
                                                : ::kill(static_cast<::pid_t>(process), 0) != 0 && errno == ESRCH;
        if (gone) files::remove_all(entry.path(), ignored);
    }
}

/// A folder that appears under its name only when complete: files are written into path(), then commit() renames it. One that stands
/// there is replaced as a whole. Destroyed before commit(), it leaves no trace.
template <class = void>
class basic_atomic_folder {
public:
    /// Throws data_error where the folder cannot be made beside its name.
    explicit basic_atomic_folder(files::path name) : name_(std::move(name)) {
        do temporary_ = detail::unfinished_name(name_.parent_path());
        while (::mkdir(temporary_.c_str(), 0777) != 0 && errno == EEXIST);
        std::error_code failure;
        if (!files::is_directory(temporary_, failure)) fail("cannot be written");
    }
    basic_atomic_folder(const basic_atomic_folder&) = delete;
    basic_atomic_folder& operator=(const basic_atomic_folder&) = delete;
    ~basic_atomic_folder() {
        std::error_code ignored;
        if (!temporary_.empty()) files::remove_all(temporary_, ignored);
    }

    /// Where its files are to be written.
    const files::path& path() const { return temporary_; }

    void commit() {
        detail::flush_folder(temporary_);
        if (::rename(temporary_.c_str(), name_.c_str()) != 0) {
            if (errno != ENOTEMPTY && errno != EEXIST) fail("cannot be replaced");
            replace();
        }
        temporary_.clear();
        detail::flush_folder(name_.parent_path());
    }

private:
    void replace() {
#if defined(RENAME_EXCHANGE)
        if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, name_.c_str(), RENAME_EXCHANGE) == 0) {
            std::error_code ignored;
            files::remove_all(temporary_, ignored); // now the old one
            return;
        }
#endif
        remove_folder(name_); // a file system that cannot exchange them
        if (::rename(temporary_.c_str(), name_.c_str()) != 0) fail("cannot be replaced");
    }
    [[noreturn]] void fail(const char* what) const {
        throw data_error(detail::quoted(name_) + ": " + what + ": " + std::strerror(errno));
    }

    files::path name_, temporary_;
};
using atomic_folder = basic_atomic_folder<>;

} // namespace tapegraph::io
