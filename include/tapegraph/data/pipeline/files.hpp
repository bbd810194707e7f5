#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/core/component.hpp>
#include <tapegraph/data/pipeline/set.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <glob.h>

/// File names, and lines of text, as elements.

namespace tapegraph::data {

namespace detail {

void add_matches(const std::string& pattern, int flags, std::vector<std::string>& names);

/// Strings, with their text as origin.
struct names_source {
    std::shared_ptr<const std::vector<std::string>> names;
    static constexpr const char* name = "files";
    std::int64_t size() const { return static_cast<std::int64_t>(names->size()); }
    std::string at(std::int64_t i) const { return (*names)[static_cast<std::size_t>(i)]; }
    std::string origin(std::int64_t i) const { return "'" + at(i) + "'"; }
};

/// Reads bytes of a file, a block at a time.
class plain_input {
public:
    explicit plain_input(const std::string& path) : file_(std::fopen(path.c_str(), "rb")) {
        if (file_ == nullptr) throw data_error("'" + path + "': cannot be opened");
    }
    plain_input(plain_input&& other) noexcept : file_(std::exchange(other.file_, nullptr)) {}
    plain_input& operator=(plain_input&& other) noexcept {
        std::swap(file_, other.file_);
        return *this;
    }
    ~plain_input() {
        if (file_ != nullptr) std::fclose(file_);
    }
    std::size_t read(char* to, std::size_t most, const std::string& path) {
        const std::size_t count = std::fread(to, 1, most, file_);
        if (count == 0 && std::ferror(file_) != 0) throw data_error("'" + path + "': cannot be read");
        return count;
    }

private:
    std::FILE* file_;
};

template <class Input>
struct lines_source {
    std::shared_ptr<const std::vector<std::string>> paths;
    std::size_t longest;
    static constexpr const char* name = "text_lines";

    class reader {
    public:
        explicit reader(const lines_source& from) : paths_(from.paths), longest_(from.longest) {}

        std::optional<std::string> next() {
            std::string text;
            bool any = false;
            for (;;) {
                if (at_ == filled_) {
                    if (fill()) continue;
                    if (any) break; // the last line has no line end
                    if (path_ == paths_->size()) return std::nullopt;
                    continue;
                }
                any = true;
                const std::string_view block(buffer_.data() + at_, filled_ - at_);
                const std::size_t end = block.find('\n');
                const std::string_view part = block.substr(0, end);
                if (text.size() + part.size() > longest_)
                    throw data_error(place(1) + ": longer than " + std::to_string(longest_) + " bytes");
                text += part;
                at_ += part.size();
                if (end == block.npos) continue;
                ++at_;
                break;
            }
            ++line_;
            if (text.ends_with('\r')) text.pop_back();
            return text;
        }
        std::string origin() const { return place(0); }

    private:
        // Reads another block of this file; returns false at its end. The next file is started only
        // after the rest was returned.
        bool fill() {
            if (!input_) {
                if (path_ == paths_->size()) return false;
                input_.emplace((*paths_)[path_]);
                line_ = 0;
                buffer_.resize(std::size_t{1} << 16);
            }
            at_ = 0;
            filled_ = input_->read(buffer_.data(), buffer_.size(), (*paths_)[path_]);
            if (filled_ > 0) return true;
            input_.reset();
            ++path_;
            return false;
        }
        std::string place(std::int64_t ahead) const {
            const std::size_t file = input_ || path_ == 0 ? path_ : path_ - 1;
            return "'" + (*paths_)[file] + "', line " + std::to_string(line_ + ahead);
        }

        std::shared_ptr<const std::vector<std::string>> paths_;
        std::size_t longest_;
        std::size_t path_ = 0;
        std::optional<Input> input_;
        std::string buffer_;
        std::size_t at_ = 0, filled_ = 0;
        std::int64_t line_ = 0;
    };
    reader open() const { return reader(*this); }
};

struct labelled_names_source {
    std::shared_ptr<const std::vector<std::string>> names;
    std::shared_ptr<const std::vector<std::int32_t>> labels;
    static constexpr const char* name = "files";
    std::int64_t size() const { return static_cast<std::int64_t>(names->size()); }
    std::tuple<std::string, std::int32_t> at(std::int64_t i) const {
        return {(*names)[static_cast<std::size_t>(i)], (*labels)[static_cast<std::size_t>(i)]};
    }
    std::string origin(std::int64_t i) const { return "'" + (*names)[static_cast<std::size_t>(i)] + "'"; }
};

bool has_ending(std::string_view name, const std::vector<std::string>& endings);

inline std::string escaped_pattern(std::string_view path) {
    std::string text;
    for (const char c : path) {
        if (c == '*' || c == '?' || c == '[' || c == '\\') text += '\\';
        text += c;
    }
    return text;
}

} // namespace detail

/// Paths of the files that match the patterns, sorted by bytes, each once: "train/*/*.png",
/// "shard-[0-9][0-9].csv". Folders are excluded. Throws data_error if nothing matches a pattern.
inline auto files(const std::vector<std::string>& patterns) {
    std::vector<std::string> names;
    for (const std::string& pattern : patterns) {
        const std::size_t before = names.size();
        detail::add_matches(pattern, 0, names);
        names.erase(std::remove_if(names.begin() + static_cast<std::ptrdiff_t>(before), names.end(),
                                   [](const std::string& n) { return n.ends_with('/'); }),
                    names.end());
        if (names.size() == before) throw data_error("files: nothing matches '" + pattern + "'");
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return from(detail::names_source{std::make_shared<const std::vector<std::string>>(std::move(names))});
}
inline auto files(const std::string& pattern) { return files(std::vector<std::string>{pattern}); }

/// Names of the subfolders of a folder, sorted by bytes: the classes of labelled_files. Throws
/// data_error if there are none.
std::vector<std::string> class_folders(const std::string& folder);

/// (path, label) of the files in the subfolders of a folder: labels are the indices of
/// class_folders(), and files come class by class, sorted by bytes. File extensions are in lower
/// case; none selects all files. Throws data_error for a class without files.
inline auto labelled_files(const std::string& folder,
                           const std::vector<std::string>& endings = {"png", "jpg", "jpeg"}) {
    std::vector<std::string> names;
    std::vector<std::int32_t> labels;
    std::int32_t label = 0;
    for (const std::string& each : class_folders(folder)) {
        std::vector<std::string> found;
        detail::add_matches(detail::escaped_pattern(folder + "/" + each) + "/*", 0, found);
        std::sort(found.begin(), found.end());
        const std::size_t before = names.size();
        for (std::string& n : found)
            if (!n.ends_with('/') && detail::has_ending(n, endings)) names.push_back(std::move(n));
        if (names.size() == before) throw data_error("'" + folder + "/" + each + "': no files of the class");
        labels.resize(names.size(), label++);
    }
    return from(detail::labelled_names_source{std::make_shared<const std::vector<std::string>>(std::move(names)),
                                              std::make_shared<const std::vector<std::int32_t>>(std::move(labels))});
}

/// Lines of text files, one file after the other, without LF or CRLF; a last line may lack them.
/// Throws data_error for a file that cannot be read, and for a line of more than `longest` bytes.
inline auto text_lines(std::vector<std::string> paths, std::size_t longest = std::size_t{1} << 24) {
    return from(detail::lines_source<detail::plain_input>{
        std::make_shared<const std::vector<std::string>>(std::move(paths)), longest});
}
inline auto text_lines(std::string path) { return text_lines(std::vector<std::string>{std::move(path)}); }

#if TG_DEFINES(data)

namespace detail {

TG_DEFINITION void add_matches(const std::string& pattern, int flags, std::vector<std::string>& names) {
    glob_t found{};
    struct release {
        glob_t* held;
        ~release() { ::globfree(held); }
    } const owner{&found};
    const int result = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_MARK | flags, nullptr, &found);
    if (result == GLOB_NOMATCH) return;
    if (result != 0) throw data_error("files: '" + pattern + "' cannot be looked for");
    for (std::size_t i = 0; i < found.gl_pathc; ++i) names.emplace_back(found.gl_pathv[i]);
}

TG_DEFINITION bool has_ending(std::string_view name, const std::vector<std::string>& endings) {
    const std::size_t dot = name.rfind('.');
    if (endings.empty()) return true;
    if (dot == name.npos) return false;
    std::string ending(name.substr(dot + 1));
    for (char& c : ending)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

} // namespace detail

TG_DEFINITION std::vector<std::string> class_folders(const std::string& folder) {
    std::vector<std::string> names;
    detail::add_matches(detail::escaped_pattern(folder) + "/*/", 0, names);
    for (std::string& n : names) {
        n.pop_back();
        n = n.substr(n.rfind('/') + 1);
    }
    std::sort(names.begin(), names.end());
    if (names.empty()) throw data_error("'" + folder + "': no class folders");
    return names;
}

#endif

} // namespace tapegraph::data
