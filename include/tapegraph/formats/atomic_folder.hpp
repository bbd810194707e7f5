#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/folder.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/// Folders of related files: they appear under their name, and disappear, all at once.

namespace tapegraph::io {

/// Removes a folder with its content. Whenever the process ends, the folder exists completely or
/// not at all. Throws data_error if it cannot be removed; a missing folder is not an error.
void remove_folder(const files::path& folder);

/// A folder that appears under its name only when complete: files are written into path(), then
/// commit() renames it and replaces an existing one as a whole. If it is destroyed before commit(),
/// it leaves no trace.
class atomic_folder {
public:
    /// Throws data_error if the temporary folder cannot be created next to its name.
    explicit atomic_folder(files::path name);
    atomic_folder(const atomic_folder&) = delete;
    atomic_folder& operator=(const atomic_folder&) = delete;
    ~atomic_folder() {
        std::error_code ignored;
        if (!temporary_.empty()) files::remove_all(temporary_, ignored);
        unlock();
    }

    /// The temporary folder, into which files are written.
    const files::path& path() const { return temporary_; }

    /// Gives the folder its name. If several processes use the same name, the last one wins. Throws
    /// data_error on failure.
    void commit();

private:
    /// Returns false if the existing folder appeared or disappeared meanwhile.
    bool replaced() {
        if (::rename(temporary_.c_str(), name_.c_str()) == 0) return true;
        if (errno != ENOTEMPTY && errno != EEXIST) fail("cannot be replaced");
#if defined(RENAME_EXCHANGE)
        if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, name_.c_str(), RENAME_EXCHANGE) == 0) {
            std::error_code ignored;
            files::remove_all(temporary_, ignored); // which is now the old one
            return true;
        }
        if (errno == ENOENT) return false;
#endif
        remove_folder(name_); // for a file system that cannot exchange them
        errno = ENOTEMPTY;    // the error if this fails repeatedly
        return false;
    }
    [[noreturn]] void fail(const char* what) const {
        const std::string reason = std::strerror(errno);
        std::error_code ignored;
        if (errno == ENOENT && files::is_directory(name_.parent_path().empty() ? "." : name_.parent_path(), ignored))
            throw data_error(detail::quoted(name_) + ": " + what + ": another process has removed " +
                             detail::quoted(temporary_) + ", where it was written");
        throw data_error(detail::quoted(name_) + ": " + what + ": " + reason);
    }
    void unlock() {
        if (lock_ >= 0) ::close(std::exchange(lock_, -1));
    }

    files::path name_, temporary_;
    int lock_ = -1;
};

#if TG_DEFINES(formats)

TG_DEFINITION void remove_folder(const files::path& folder) {
    const auto aside = detail::unfinished_name(folder.parent_path());
    if (::rename(folder.c_str(), aside.c_str()) != 0) {
        if (errno == ENOENT) return;
        throw data_error(detail::quoted(folder) + ": cannot be removed: " + std::strerror(errno));
    }
    std::error_code ignored; // the remainder has a name that nobody reads
    files::remove_all(aside, ignored);
}

TG_DEFINITION atomic_folder::atomic_folder(files::path name) : name_(std::move(name)) {
    const auto beside = name_.parent_path();
    detail::remove_unfinished_once(beside);
    for (;;) {
        temporary_ = detail::unfinished_name(beside);
        if (::mkdir(temporary_.c_str(), 0777) != 0) {
            if (errno != EEXIST) fail("cannot be written");
            continue;
        }
        lock_ = ::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (lock_ >= 0 ? detail::hold_unfinished(lock_, temporary_) : errno != ENOENT) return;
        unlock();
    }
}

TG_DEFINITION void atomic_folder::commit() {
    detail::flush_folder(temporary_);
    // Other processes may add and remove the folder, but not this often.
    for (int tries = 0; !replaced(); ++tries)
        if (tries == 1000) fail("cannot be replaced");
    temporary_.clear();
    unlock();
    detail::flush_folder(name_.parent_path());
}

#endif

} // namespace tapegraph::io
