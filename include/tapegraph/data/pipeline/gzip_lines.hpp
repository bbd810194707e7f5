#pragma once

#include <tapegraph/data/pipeline/files.hpp>

#if !__has_include(<zlib.h>)
#error "tapegraph/data/pipeline/gzip_lines.hpp: needs zlib (Debian: zlib1g-dev; CMake: tapegraph::zlib)"
#endif
#include <zlib.h>

/// Lines of compressed text.

namespace tapegraph::data {

namespace detail {

class gzip_input {
public:
    explicit gzip_input(const std::string& path) : file_(::gzopen(path.c_str(), "rb")) {
        if (file_ == nullptr) throw data_error("'" + path + "': cannot be opened");
    }
    gzip_input(gzip_input&& other) noexcept : file_(std::exchange(other.file_, nullptr)) {}
    gzip_input& operator=(gzip_input&& other) noexcept {
        std::swap(file_, other.file_);
        return *this;
    }
    ~gzip_input() {
        if (file_ != nullptr) ::gzclose(file_);
    }
    std::size_t read(char* to, std::size_t most, const std::string& path) {
        const int count = ::gzread(file_, to, static_cast<unsigned>(most));
        int code = Z_OK;
        const char* const why = ::gzerror(file_, &code);
        // zlib reports a file that ends within its compressed data as Z_BUF_ERROR, after the
        // readable data.
        if (count < 0 || (count == 0 && code != Z_OK && code != Z_STREAM_END))
            throw data_error("'" + path + "': corrupt gzip data at byte " +
                             std::to_string(static_cast<long long>(::gztell(file_))) + " of the text: " + why);
        return static_cast<std::size_t>(count);
    }

private:
    gzFile file_;
};

} // namespace detail

/// Like text_lines, for files that may be compressed by gzip.
inline auto gzip_lines(std::vector<std::string> paths, std::size_t longest = std::size_t{1} << 24) {
    return from(detail::lines_source<detail::gzip_input>{
        std::make_shared<const std::vector<std::string>>(std::move(paths)), longest});
}
inline auto gzip_lines(std::string path) { return gzip_lines(std::vector<std::string>{std::move(path)}); }

} // namespace tapegraph::data
