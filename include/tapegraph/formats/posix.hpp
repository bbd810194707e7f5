#pragma once

#include <tapegraph/core/config.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(_WIN32)
#include <direct.h>
#include <io.h>
extern "C" __declspec(dllimport) int __stdcall MoveFileExA(const char*, const char*,
                                                           unsigned long); // <windows.h> has macros
#else
#include <csignal>
#include <sys/file.h>
#endif

/// What files are made of, on POSIX and on Windows, where MinGW has most of POSIX. Windows has no locks of this kind, so files that
/// a killed process has left unfinished stay there, and an open file is neither renamed nor removed.

namespace tapegraph::posix {

#if defined(_WIN32)

inline constexpr int only_folders = 0, careful = 0;

inline int open_file(const char* name, int flags) { return ::open(name, flags | O_BINARY | O_NOINHERIT, 0666); }
inline int link_status(const char* name, struct stat* found) { return ::stat(name, found); }
inline int make_folder(const char* name) { return ::_mkdir(name); }
inline int flush(int file) { return ::_commit(file); }
inline int lock(int) { return 0; }
inline bool is_process(std::uint64_t) { return true; }
inline int second_handle(int) { return -1; }
inline int replace(const char* from, const char* to) {
    constexpr unsigned long replace_existing = 1, write_through = 8;
    if (MoveFileExA(from, to, replace_existing | write_through) != 0) return 0;
    errno = EACCES;
    return -1;
}
/// Of a file that no other thread reads at the same time.
inline std::ptrdiff_t read_at(int file, void* to, std::size_t bytes, std::uint64_t at) {
    constexpr std::size_t most = std::size_t{1} << 30;
    if (::_lseeki64(file, static_cast<std::int64_t>(at), SEEK_SET) < 0) return -1;
    return ::read(file, to, static_cast<unsigned>(bytes < most ? bytes : most));
}

#else

/// Flags of open_file: nothing but folders; no waiting for a pipe's other end, and no links.
inline constexpr int only_folders = O_DIRECTORY, careful = O_NONBLOCK | O_NOFOLLOW;

/// A descriptor that programs started later do not inherit; below 0 on failure.
inline int open_file(const char* name, int flags) { return ::open(name, flags | O_CLOEXEC, 0666); }
/// What the system knows of a file or link itself; below 0 on failure.
inline int link_status(const char* name, struct stat* found) { return ::lstat(name, found); }
/// Makes a folder; below 0 on failure.
inline int make_folder(const char* name) { return ::mkdir(name, 0777); }
/// Waits until the disk has a file's content.
inline int flush(int file) { return ::fsync(file); }
/// Takes a file's lock, or fails with EWOULDBLOCK where another process has it.
inline int lock(int file) { return ::flock(file, LOCK_EX | LOCK_NB); }
/// Whether a process with this number runs.
inline bool is_process(std::uint64_t process) {
    return ::kill(static_cast<::pid_t>(process), 0) == 0 || errno != ESRCH;
}
/// Another descriptor of an open file, which keeps its lock; -1 where there is none.
inline int second_handle(int file) { return ::fcntl(file, F_DUPFD_CLOEXEC, 0); }
/// Gives a file another name, which an existing file loses.
inline int replace(const char* from, const char* to) { return ::rename(from, to); }
/// Reads from a place in a file, and leaves its position; returns the bytes read, below 0 on failure.
inline std::ptrdiff_t read_at(int file, void* to, std::size_t bytes, std::uint64_t at) {
    return ::pread(file, to, bytes, static_cast<::off_t>(at));
}

#endif

} // namespace tapegraph::posix
