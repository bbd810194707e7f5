#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/posix.hpp>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <dirent.h>

/// Folder operations like those of <filesystem>, for paths of formats/path.hpp.

namespace tapegraph::files {

/// An entry of a folder.
class directory_entry {
public:
    directory_entry(const path& folder, const char* name) : path_(folder / name) {}

    /// The folder's path and the entry's name.
    const files::path& path() const { return path_; }
    /// Whether it is a folder itself; false if that cannot be found out.
    bool is_directory() const {
        std::error_code ignored;
        return files::is_directory(path_, ignored);
    }
    bool is_directory(std::error_code& failure) const { return files::is_directory(path_, failure); }

private:
    files::path path_;
};

/// The entries of a folder except "." and "..", in the order of the file system, at the time of
/// construction.
class directory_iterator {
public:
    directory_iterator() = default;
    directory_iterator(const path& folder, std::error_code& failure);

    const directory_entry& operator*() const { return (*entries_)[at_]; }
    const directory_entry* operator->() const { return &(*entries_)[at_]; }
    directory_iterator& operator++() {
        if (++at_ == entries_->size()) *this = {};
        return *this;
    }
    /// Goes to the next entry; `failure` is cleared, for entries were read before.
    directory_iterator& increment(std::error_code& failure) {
        failure.clear();
        return ++*this;
    }
    friend bool operator==(const directory_iterator& a, const directory_iterator& b) {
        return a.entries_ == b.entries_ && a.at_ == b.at_;
    }
    friend directory_iterator begin(directory_iterator first) { return first; }
    friend directory_iterator end(const directory_iterator&) { return {}; }

private:
    std::shared_ptr<const std::vector<directory_entry>> entries_; ///< null: the end
    std::size_t at_ = 0;
};

/// Removes a file or an empty folder; returns false if there was none.
inline bool remove(const path& p, std::error_code& failure) {
    failure.clear();
    if (std::remove(p.c_str()) == 0) return true;
    if (errno != ENOENT) failure.assign(errno, std::generic_category());
    return false;
}

/// Removes a folder with all its content; links are removed, not followed.
void remove_all(const path& p, std::error_code& failure);

/// Creates a folder and its parents.
bool create_directories(const path& folder, std::error_code& failure);

#if TG_DEFINES(formats)

TG_DEFINITION directory_iterator::directory_iterator(const path& folder, std::error_code& failure) {
    failure.clear();
    DIR* const open = ::opendir(folder.c_str());
    if (open == nullptr) {
        failure.assign(errno, std::generic_category());
        return;
    }
    std::vector<directory_entry> found;
    errno = 0;
    while (const dirent* entry = ::readdir(open)) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") found.emplace_back(folder, entry->d_name);
    }
    if (errno != 0) failure.assign(errno, std::generic_category());
    ::closedir(open);
    if (!found.empty()) entries_ = std::make_shared<const std::vector<directory_entry>>(std::move(found));
}

TG_DEFINITION void remove_all(const path& p, std::error_code& failure) {
    struct stat found {};
    failure.clear();
    if (posix::link_status(p.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) {
        for (const directory_entry& entry : directory_iterator(p, failure)) {
            remove_all(entry.path(), failure);
            if (failure) return;
        }
        if (failure) return;
    }
    remove(p, failure);
}

TG_DEFINITION bool create_directories(const path& folder, std::error_code& failure) {
    failure.clear();
    for (std::size_t end = 1; end <= folder.string().size(); ++end) {
        if (end < folder.string().size() && folder.string()[end] != '/') continue;
        const path part = folder.string().substr(0, end);
        if (posix::make_folder(part.c_str()) != 0 && (errno != EEXIST || !is_directory(part, failure))) {
            if (!failure) failure.assign(errno == EEXIST ? ENOTDIR : errno, std::generic_category());
            return false;
        }
    }
    return true;
}

#endif

} // namespace tapegraph::files
