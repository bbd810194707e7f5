#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/folder.hpp>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <dirent.h>
#include <time.h>

#if defined(__linux__)
#include <sys/vfs.h>
#endif

/// Names of incomplete files and folders. Until one has its final name it is called
///
///     .unfinished-<place>-<process>-<start>-<number>
///
/// in the same folder, so that a later process can distinguish remains of a killed process from
/// files that a living one is writing. A process id alone does not suffice: it is reused, and
/// containers and machines that share a folder use the same ids for other processes. <place>
/// identifies one boot of one machine and one namespace of processes, in which <process> and its
/// start time identify one process. For other places the writer's lock tells: the kernel releases
/// it when the process ends.

namespace tapegraph::io {

namespace detail {

inline constexpr std::string_view unfinished_prefix = ".unfinished-";

/// Identifies a process among all that may write into a folder. 0: unknown.
struct process_mark {
    std::uint64_t place = 0, process = 0, start = 0;
};

/// The start of a file of /proc, which has no size; empty if it cannot be read.
inline std::string text_of_proc(const char* path) {
    std::string text(1024, '\0');
    const int file = posix::open_file(path, O_RDONLY);
    const auto read = file < 0 ? 0 : ::read(file, text.data(), text.size());
    if (file >= 0) ::close(file);
    text.resize(read > 0 ? static_cast<std::size_t>(read) : 0);
    return text;
}

/// The system's information about a process: its state ('Z': it has ended but was not waited for),
/// and its start time. 0: none.
struct process_status {
    char state = 0;
    std::uint64_t start = 0;
};
process_status status_of(std::uint64_t process);

process_mark own_mark();

/// Whether a process of this place is alive: exactly this one, not a later one with its id.
inline bool lives(const process_mark& mark) {
    const process_status now = status_of(mark.process);
    if (now.state == 0) return posix::is_process(mark.process);
    return now.state != 'Z' && now.state != 'X' && (mark.start == 0 || now.start == 0 || mark.start == now.start);
}

files::path unfinished_name(const files::path& beside);

/// Parses the writer from a name; returns false if the name does not have one.
bool read_unfinished_name(std::string_view name, process_mark& mark);

/// Takes the lock of an entry that this process has just created, open as `file`. Returns false if
/// another process took it for abandoned, and is removing it: create another one. If a file system
/// has no locks, names alone must suffice.
inline bool hold_unfinished(int file, const files::path& name) {
    if (posix::lock(file) != 0) return errno != EWOULDBLOCK;
    struct stat opened {
    }, named{};
    return ::fstat(file, &opened) != 0 ||
           (::stat(name.c_str(), &named) == 0 && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev);
}

/// Whether no other machine can write into this file system, so that the locks known here are all.
inline bool is_local([[maybe_unused]] int file) {
#if defined(__linux__)
    struct statfs system {};
    if (::fstatfs(file, &system) != 0) return false;
    switch (static_cast<std::uint32_t>(system.f_type)) {
    case 0x0000EF53:              // ext2, ext3, ext4
    case 0x58465342:              // xfs
    case 0x9123683E:              // btrfs
    case 0xF2F52010:              // f2fs
    case 0x2FC12FC1:              // zfs
    case 0xCA451A4E:              // bcachefs
    case 0x01021994:              // tmpfs
    case 0x794C7630: return true; // overlayfs
    default: break;
    }
#endif
    return false;
}

/// Seconds since the last write to a file, or to a folder and its content.
double seconds_untouched(int file, const files::path& name);

/// Removes an entry if no living process writes it.
void remove_if_left(const files::path& entry, std::string_view name, const process_mark& own);

} // namespace detail

/// Removes unfinished entries of dead processes in a folder: files and folders that were to appear
/// there when complete. Those of living processes stay, also of other containers or machines.
/// Everything that writes files here calls it once per folder.
void remove_unfinished(const files::path& folder);

namespace detail {

/// The same before the first file that this process writes into a folder. With many folders some
/// are checked again.
void remove_unfinished_once(const files::path& folder);

} // namespace detail
#if TG_DEFINES(formats)

namespace detail {

TG_DEFINITION process_status status_of(std::uint64_t process) {
    const std::string text = text_of_proc(("/proc/" + std::to_string(process) + "/stat").c_str());
    process_status found;
    auto at = text.rfind(") "); // after the program's name, which may contain anything
    if (at == text.npos || at + 2 >= text.size()) return found;
    found.state = text[at + 2];
    for (int field = 3; field < 22 && at != text.npos; ++field) at = text.find(' ', at + (field == 3 ? 2 : 1));
    if (at != text.npos) std::from_chars(text.data() + at + 1, text.data() + text.size(), found.start);
    return found;
}

TG_DEFINITION process_mark own_mark() {
    process_mark own;
    own.process = static_cast<std::uint64_t>(::getpid());
    own.start = status_of(own.process).start;
    const std::string boot = text_of_proc("/proc/sys/kernel/random/boot_id");
    struct stat space {};
    if (boot.empty() || ::stat("/proc/self/ns/pid", &space) != 0) return own;
    own.place = 14695981039346656037u; // FNV-1a
    const auto mix = [&](unsigned char byte) { own.place = (own.place ^ byte) * 1099511628211u; };
    for (const char c : boot) mix(static_cast<unsigned char>(c));
    for (std::uint64_t rest = space.st_ino; rest != 0; rest >>= 8) mix(static_cast<unsigned char>(rest));
    return own;
}

TG_DEFINITION files::path unfinished_name(const files::path& beside) {
    static std::atomic<std::uint64_t> serial{0};
    const process_mark own = own_mark();
    std::string name(unfinished_prefix);
    const auto add = [&](std::uint64_t number, int base) {
        char digits[24];
        name.append(digits, std::to_chars(digits, digits + sizeof digits, number, base).ptr);
    };
    add(own.place, 16), name += '-', add(own.process, 10), name += '-', add(own.start, 10), name += '-';
    add(serial++, 10);
    return beside / name;
}

TG_DEFINITION bool read_unfinished_name(std::string_view name, process_mark& mark) {
    const char* at = name.data() + unfinished_prefix.size();
    const char* const last = name.data() + name.size();
    std::uint64_t serial = 0;
    const auto take = [&](std::uint64_t& number, int base, bool more) {
        const auto end = std::from_chars(at, last, number, base);
        if (end.ec != std::errc{} || (more ? end.ptr == last || *end.ptr != '-' : end.ptr != last)) return false;
        at = end.ptr + 1;
        return true;
    };
    return take(mark.place, 16, true) && take(mark.process, 10, true) && take(mark.start, 10, true) &&
           take(serial, 10, false) && mark.process > 0;
}

TG_DEFINITION double seconds_untouched(int file, const files::path& name) {
    struct stat found {};
    if (::fstat(file, &found) != 0) return 0;
    ::time_t newest = found.st_mtime;
    std::error_code ignored;
    if (S_ISDIR(found.st_mode))
        for (const files::directory_entry& entry : files::directory_iterator(name, ignored)) {
            struct stat inner {};
            if (::stat(entry.path().c_str(), &inner) == 0 && inner.st_mtime > newest) newest = inner.st_mtime;
        }
    return ::difftime(::time(nullptr), newest);
}

TG_DEFINITION void remove_if_left(const files::path& entry, std::string_view name, const process_mark& own) {
    constexpr double day = 24 * 60 * 60;
    process_mark mark;
    const bool known = read_unfinished_name(name, mark);
    const bool here = known && mark.place == own.place && own.place != 0;
    if (here && lives(mark)) return;
    const int file = posix::open_file(entry.c_str(), O_RDONLY | posix::careful);
    if (file < 0) return;
    // Held until it is removed: a writer that has created it but not locked it yet then creates
    // another one.
    const bool free = posix::lock(file) == 0;
    const bool held = !free && errno == EWOULDBLOCK;
    // On a network file system that may not share locks, only its age can tell whether another
    // machine abandoned it.
    if (!held && (here || (known && free && is_local(file)) || seconds_untouched(file, entry) > day)) {
        std::error_code ignored;
        files::remove_all(entry, ignored);
    }
    ::close(file);
}

} // namespace detail

TG_DEFINITION void remove_unfinished(const files::path& folder) {
    DIR* const open = ::opendir(folder.empty() ? "." : folder.c_str());
    if (open == nullptr) return;
    std::vector<std::string> found;
    while (const dirent* entry = ::readdir(open))
        if (std::string_view(entry->d_name).starts_with(detail::unfinished_prefix)) found.emplace_back(entry->d_name);
    ::closedir(open);
    if (found.empty()) return;
    const detail::process_mark own = detail::own_mark();
    for (const std::string& name : found) detail::remove_if_left(folder / name, name, own);
}

namespace detail {

TG_DEFINITION void remove_unfinished_once(const files::path& folder) {
    if (folder.filename().string().starts_with(unfinished_prefix)) return; // new, and used only by its writer
    static std::atomic<std::size_t> known[64];
    const std::size_t hash = std::hash<std::string>()(folder.string()) | 1;
    if (known[hash / 2 % 64].exchange(hash, std::memory_order_relaxed) != hash) remove_unfinished(folder);
}

} // namespace detail

#endif

} // namespace tapegraph::io
