#pragma once

#include <tapegraph/core/config.hpp>

#include <cerrno>
#include <compare>
#include <concepts>
#include <iosfwd>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <sys/stat.h>

/// Paths without <filesystem>, which costs every program that includes it a third of a second. The
/// names are those of that header.

namespace tapegraph::files {

namespace detail {
/// Matches files::path by its members.
template <class Path>
concept path_of_others = requires(const Path& path) {
    typename Path::string_type;
    { path.native() } -> std::same_as<const std::string&>;
};
} // namespace detail

/// The name of a file or folder. Any type that names one, std::filesystem::path included, converts
/// to it.
class path {
public:
    path() = default;
    path(std::string name) : name_(std::move(name)) {}
    path(std::string_view name) : name_(name) {}
    path(const char* name) : name_(name) {}
    template <detail::path_of_others Path>
    path(const Path& other) : name_(other.native()) {}
    template <detail::path_of_others Path>
    operator Path() const {
        return Path(name_);
    }

    /// The path as text.
    const std::string& string() const { return name_; }
    /// The path as text.
    const std::string& native() const { return name_; }
    /// The path for the system's functions.
    const char* c_str() const { return name_.c_str(); }
    bool empty() const { return name_.empty(); }
    /// Makes it empty.
    void clear() { name_.clear(); }
    /// Whether it begins at the root.
    bool is_absolute() const { return name_.starts_with('/'); }

    /// The part after the last '/'.
    path filename() const { return name_.substr(name_.rfind('/') + 1); }
    /// The part before it; "/" for entries of the root.
    path parent_path() const {
        auto end = name_.rfind('/');
        if (end == std::string::npos) return {};
        while (end > 0 && name_[end - 1] == '/') --end;
        return name_.substr(0, end == 0 ? 1 : end);
    }
    /// Whether it names a folder before the last part.
    bool has_parent_path() const { return name_.find('/') != std::string::npos; }
    /// The filename from its last point on, unless that is its first character or it is "..".
    path extension() const {
        const std::string last = filename().name_;
        const auto point = last.rfind('.');
        return point == std::string::npos || point == 0 || last == ".." ? std::string() : last.substr(point);
    }
    /// The filename without its extension.
    path stem() const {
        const std::string last = filename().name_;
        return last.substr(0, last.size() - extension().name_.size());
    }

    path& operator/=(const path& inner) {
        if (inner.is_absolute()) return *this = inner;
        if (!name_.empty() && name_.back() != '/') name_ += '/';
        name_ += inner.name_;
        return *this;
    }
    path& operator+=(std::string_view more) {
        name_ += more;
        return *this;
    }
    friend path operator/(path outer, const path& inner) { return outer /= inner; }
    friend bool operator==(const path&, const path&) = default;
    friend auto operator<=>(const path&, const path&) = default;
    template <class Other>
        requires(detail::path_of_others<Other> && !std::same_as<Other, path>)
    friend bool operator==(const path& a, const Other& b) { return a.name_ == b.native(); }
    template <class Traits>
    friend std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, const path& p) {
        return out << '"' << p.name_ << '"';
    }

private:
    std::string name_;
};

/// Whether an entry of that name exists; `failure` says why that cannot be determined.
inline bool exists(const path& p, std::error_code& failure) {
    struct stat found {};
    failure.clear();
    if (::stat(p.c_str(), &found) == 0) return true;
    if (errno != ENOENT && errno != ENOTDIR) failure.assign(errno, std::generic_category());
    return false;
}
/// Whether there is a folder of that path; `failure` says what kept the system from looking.
inline bool is_directory(const path& p, std::error_code& failure) {
    struct stat found {};
    failure.clear();
    if (::stat(p.c_str(), &found) == 0) return S_ISDIR(found.st_mode);
    failure.assign(errno, std::generic_category());
    return false;
}

} // namespace tapegraph::files
