#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/file.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <list>
#include <mutex>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/// Folders into which only one process may write.

namespace tapegraph::io {

namespace detail {

inline constexpr const char* writer_file = ".writer";

/// Locks that this process holds. The system's file locks belong to the process, which loses one by
/// closing the file anywhere, so a folder's file is opened once however many objects claim the
/// folder. A child of fork() has the list but none of the locks.
struct held_claim {
    ::dev_t device;
    ::ino_t folder;
    ::pid_t process;
    int file;
    int claims;
};
struct claim_list {
    std::mutex mutex;
    std::list<held_claim> held;
    static claim_list& instance() {
        static claim_list list;
        return list;
    }
};

/// Locks a folder's file. Returns -1 if the file system has no locks, or the file cannot be
/// created; writing then reports that. Throws data_error that says which process has the lock.
int lock_folder(const files::path& folder);

} // namespace detail

/// While one lives, only this process has a claim on the folder. Threads and objects of one process
/// may share it. When the process ends, even by a signal, the claim ends, too. On file systems
/// without locks nothing is claimed.
class folder_claim {
public:
    /// Throws data_error that names the process that has the claim.
    explicit folder_claim(const files::path& folder);
    folder_claim(const folder_claim&) = delete;
    folder_claim& operator=(const folder_claim&) = delete;
    ~folder_claim();

private:
    files::path folder_;
    detail::held_claim* claim_ = nullptr;
};

#if TG_DEFINES(formats)

namespace detail {

TG_DEFINITION int lock_folder(const files::path& folder) {
    const files::path path = folder / writer_file;
    for (;;) {
        const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (file < 0) return -1;
        struct flock lock {};
        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        char text[300];
        if (::fcntl(file, F_SETLK, &lock) == 0) {
            struct stat opened {
            }, named{};
            if (::fstat(file, &opened) != 0 || ::stat(path.c_str(), &named) != 0 || opened.st_ino != named.st_ino) {
                ::close(file); // its previous owner has just removed it
                continue;
            }
            char host[200] = "";
            if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
            const int size = std::snprintf(text, sizeof text, "%ld %s\n", static_cast<long>(::getpid()), host);
            // The lock holds even without the text.
            if (::ftruncate(file, 0) == 0) static_cast<void>(!::write(file, text, static_cast<std::size_t>(size)));
            return file;
        }
        if (errno != EACCES && errno != EAGAIN) {
            ::close(file);
            return -1;
        }
        const bool lock_known = ::fcntl(file, F_GETLK, &lock) == 0;
        if (lock_known && lock.l_type == F_UNLCK) { // no longer locked
            ::close(file);
            continue;
        }
        // The process id as seen here; for a process elsewhere the file contains its id there.
        const auto size = ::read(file, text, sizeof text - 1);
        ::close(file);
        std::string holder(text, size > 0 ? static_cast<std::size_t>(size) : 0);
        holder = holder.substr(0, holder.find('\n'));
        const auto space = holder.find(' ');
        const std::string number = lock_known && lock.l_pid > 0 ? std::to_string(lock.l_pid) : holder.substr(0, space);
        const std::string host = space == holder.npos || space + 1 == holder.size() ? "" : holder.substr(space + 1);
        throw data_error(
            quoted(folder) + ": process " + (number.empty() ? "?" : number) +
            (host.empty() ? "" : " of '" + host + "'") +
            " writes here; two at once would remove what the other one keeps: give each a folder of its own");
    }
}

} // namespace detail

TG_DEFINITION folder_claim::folder_claim(const files::path& folder) : folder_(folder) {
    struct stat found {};
    if (::stat(folder.empty() ? "." : folder.c_str(), &found) != 0) return;
    auto& list = detail::claim_list::instance();
    const std::lock_guard guard(list.mutex);
    for (detail::held_claim& claim : list.held)
        if (claim.process == ::getpid() && claim.device == found.st_dev && claim.folder == found.st_ino) {
            ++claim.claims;
            claim_ = &claim;
            return;
        }
    const int file = detail::lock_folder(folder);
    if (file >= 0)
        claim_ = &list.held.emplace_back(detail::held_claim{found.st_dev, found.st_ino, ::getpid(), file, 1});
}

TG_DEFINITION folder_claim::~folder_claim() {
    if (claim_ == nullptr || claim_->process != ::getpid()) return;
    auto& list = detail::claim_list::instance();
    const std::lock_guard guard(list.mutex);
    if (--claim_->claims > 0) return;
    ::unlink(
        // First, so that a process waiting for the lock notices another file.
        (folder_ / detail::writer_file).c_str());
    ::close(claim_->file);
    list.held.remove_if([this](const detail::held_claim& claim) { return &claim == claim_; });
}

#endif

} // namespace tapegraph::io
