#pragma once

#include <support/messages.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cstdlib>

#include <unistd.h>

/// A separate folder for each test, removed when the test ends.

namespace support {

/// Where tests have their folders: TMPDIR, else memory where there is a gigabyte of it for files, else the system's place. What
/// tests write is flushed a few thousand times, which takes a disk milliseconds each.
inline std::filesystem::path place_of_folders() {
    const std::filesystem::path memory = "/dev/shm";
    std::error_code missing;
    const auto space = std::filesystem::space(memory, missing);
    const bool use = std::getenv("TMPDIR") == nullptr && !missing && space.available >= std::uintmax_t{1} << 30 &&
                     ::access(memory.c_str(), W_OK) == 0;
    return use ? memory : std::filesystem::temp_directory_path();
}

class temporary_folder {
public:
    temporary_folder() {
        std::string pattern = (place_of_folders() / "tapegraph_test_XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;
    ~temporary_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    const std::filesystem::path& path() const { return path_; }

    /// Writes a file, making the folders it lies in; returns its path. An earlier file of that name is removed first: ext4 writes
    /// a file that was emptied to the disk when it is closed, which takes milliseconds.
    template <class Bytes = std::string_view>
    std::filesystem::path write(const std::string& name, const Bytes& bytes) const {
        const auto path = path_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::filesystem::remove(path);
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(std::data(bytes)), static_cast<std::streamsize>(std::size(bytes)));
        return path;
    }

private:
    std::filesystem::path path_;
};

inline std::string read_text(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// The folder of real data sets, or an empty path where TAPEGRAPH_DATA is unset or has no `name`.
inline std::filesystem::path real_data(const std::string& name) {
    const char* root = std::getenv("TAPEGRAPH_DATA");
    if (root == nullptr || !std::filesystem::is_directory(std::filesystem::path(root) / name)) return {};
    return std::filesystem::path(root) / name;
}

} // namespace support
