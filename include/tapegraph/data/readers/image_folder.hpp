#pragma once

#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/data/readers/image.hpp>
#include <tapegraph/data/readers/labelled_images.hpp>
#include <tapegraph/data/readers/stb.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/folder.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Images in class folders: `folder/<class>/<image>.png`. Needs stb_image.

namespace tapegraph::data {

/// How files of a folder are ordered.
enum class file_order {
    natural,      ///< compare numbers by value: cat.2.png before cat.10.png
    lexicographic ///< compare bytes: cat.10.png before cat.2.png
};

/// Options of `read_image_folder`.
struct image_folder_options {
    std::int64_t height = 0, width = 0; ///< 0 and 0: as the first image; all must agree unless `resize`
    bool resize = false;                ///< resize every image to height x width instead of refusing other sizes
    file_order order = file_order::natural;
    image_decoder decoder =
        nullptr; ///< for JPEG files: stb_image, or another such as decode_jpeg_by_turbo (data/readers/jpeg.hpp)
};

namespace detail {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Runs of digits compare as numbers, everything else as bytes; names that differ only in leading
/// zeros compare as bytes.
inline bool natural_less(std::string_view left, std::string_view right) {
    std::size_t l = 0, r = 0;
    while (l < left.size() && r < right.size()) {
        if (!is_digit(left[l]) || !is_digit(right[r])) {
            if (left[l] != right[r]) return static_cast<unsigned char>(left[l]) < static_cast<unsigned char>(right[r]);
            ++l, ++r;
            continue;
        }
        while (l < left.size() && left[l] == '0') ++l;
        while (r < right.size() && right[r] == '0') ++r;
        const std::size_t left_start = l, right_start = r;
        while (l < left.size() && is_digit(left[l])) ++l;
        while (r < right.size() && is_digit(right[r])) ++r;
        if (l - left_start != r - right_start) return l - left_start < r - right_start;
        const int compared =
            left.substr(left_start, l - left_start).compare(right.substr(right_start, r - right_start));
        if (compared != 0) return compared < 0;
    }
    if (l < left.size() || r < right.size()) return l == left.size();
    return left < right;
}

inline bool is_image_name(const std::string& name) {
    const auto dot = name.rfind('.');
    if (dot == 0 || dot == std::string::npos) return false;
    std::string extension = name.substr(dot);
    for (char& c : extension)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

/// Names in a folder that `wanted` accepts, without hidden ones, unsorted.
template <class Wanted>
std::vector<std::string> folder_entries(const files::path& folder, const Wanted& wanted) {
    std::error_code failure;
    files::directory_iterator entries(folder, failure);
    if (failure) throw data_error(io::detail::quoted(folder) + ": " + failure.message());
    std::vector<std::string> names;
    for (const auto end = files::directory_iterator(); entries != end;) {
        const std::string name = entries->path().filename().string();
        if (name[0] != '.' && wanted(*entries)) names.push_back(name);
        entries.increment(failure);
        if (failure) throw data_error(io::detail::quoted(folder) + ": " + failure.message());
    }
    return names;
}

inline rgb_image decode_image_with(std::span<const std::uint8_t> file, image_decoder decode,
                                   image_decoder decode_jpeg) {
    if (decode_jpeg != nullptr && file.size() >= 2 && file[0] == 0xFF && file[1] == 0xD8) return decode_jpeg(file);
    check_image_file(file);
    return decode(file);
}

inline rgb_image read_image_file(const files::path& path, image_decoder decode, image_decoder decode_jpeg = nullptr) {
    try {
        return decode_image_with(io::read_file(path), decode, decode_jpeg);
    } catch (const data_error& failure) {
        const std::string reason = failure.what();
        if (reason.starts_with(io::detail::quoted(path))) throw;
        throw data_error(io::detail::quoted(path) + ": " + reason);
    }
}

inline std::string size_text(std::int64_t height, std::int64_t width) {
    return std::to_string(height) + "x" + std::to_string(width);
}

} // namespace detail

/// Images in class folders that have not been read yet.
struct image_files {
    std::vector<std::string> paths;
    std::vector<std::int32_t> labels;     ///< [paths.size()], in [0, class_names.size())
    std::vector<std::string> class_names; ///< name of each label
};

/// The PNG and JPEG files of all class folders, in the order in which read_image_folder reads them. Throws data_error naming a folder
/// that is missing or empty.
inline image_files list_image_folder(const files::path& folder, file_order order = file_order::natural) {
    std::error_code failure;
    if (!files::is_directory(folder, failure)) throw data_error(io::detail::quoted(folder) + ": no such folder");
    image_files result;
    result.class_names = detail::folder_entries(folder, [](const auto& entry) { return entry.is_directory(); });
    std::sort(result.class_names.begin(), result.class_names.end());
    if (result.class_names.empty()) throw data_error(io::detail::quoted(folder) + ": no class folders");
    for (std::size_t label = 0; label < result.class_names.size(); ++label) {
        const auto class_folder = folder / result.class_names[label];
        auto names = detail::folder_entries(class_folder, [](const auto& entry) {
            return detail::is_image_name(entry.path().filename().string()) && !entry.is_directory();
        });
        if (names.empty()) throw data_error(io::detail::quoted(class_folder) + ": no PNG or JPEG images");
        if (order == file_order::natural)
            std::sort(names.begin(), names.end(), detail::natural_less);
        else
            std::sort(names.begin(), names.end());
        for (const auto& name : names) {
            result.paths.push_back((class_folder / name).string());
            result.labels.push_back(static_cast<std::int32_t>(label));
        }
    }
    return result;
}

namespace detail {

/// read_image_folder with the decoder as an argument, so that this function is the same in every source.
inline labelled_images read_image_folder_with(const files::path& folder, const image_folder_options& options,
                                              image_decoder decode) {
    const std::string operation = "read_image_folder(" + io::detail::quoted(folder) + ")";
    if (options.height < 0 || options.width < 0 || (options.height == 0) != (options.width == 0))
        throw argument_error(operation + ": impossible size " + size_text(options.height, options.width));
    image_files found = list_image_folder(folder, options.order);
    const std::vector<std::string>& files = found.paths;

    labelled_images result;
    result.channels = 3;
    result.class_names = std::move(found.class_names);
    result.labels = std::move(found.labels);
    result.count = static_cast<std::int64_t>(files.size());
    result.height = options.height;
    result.width = options.width;
    if (result.height == 0) {
        const auto first = read_image_file(files.front(), decode, options.decoder);
        result.height = first.height;
        result.width = first.width;
    }
    const std::int64_t image_size = result.height * result.width * 3;
    result.images.resize(static_cast<std::size_t>(result.count * image_size));
    // An exception must not leave a parallel loop; of several the first in file order is thrown,
    // for any thread count.
    std::vector<std::exception_ptr> failures(files.size());
    cpu::parallel_for(result.count, true, [&](std::int64_t i) {
        const auto& file = files[static_cast<std::size_t>(i)];
        try {
            const auto image = read_image_file(file, decode, options.decoder);
            if (!options.resize && (image.height != result.height || image.width != result.width))
                throw data_error(io::detail::quoted(file) + ": image is " + size_text(image.height, image.width) +
                                 " (height x width), expected " + size_text(result.height, result.width));
            resize_image(image, result.height, result.width, result.images.data() + i * image_size);
        } catch (...) {
            failures[static_cast<std::size_t>(i)] = std::current_exception();
        }
    });
    for (auto& thrown : failures)
        if (thrown) std::rethrow_exception(thrown);
    return result;
}

// Static, like the decoder it calls: see stb.hpp. Grey is repeated to three channels, alpha is
// dropped, and 16-bit samples keep their upper byte.
static inline rgb_image decode_with_stb(std::span<const std::uint8_t> file) {
    int width = 0, height = 0, channels = 0;
    stb::stbi_uc* pixels =
        stb::stbi_load_from_memory(file.data(), static_cast<int>(file.size()), &width, &height, &channels, 3);
    if (pixels == nullptr) throw data_error(std::string("corrupt image: ") + stb::stbi_failure_reason());
    struct release {
        stb::stbi_uc* held;
        ~release() { stb::stbi_image_free(held); }
    } const owner{pixels};
    return {height, width,
            std::vector<std::uint8_t>(pixels, pixels + std::size_t{3} * static_cast<std::size_t>(width) *
                                                           static_cast<std::size_t>(height))};
}

} // namespace detail

/// Decodes the content of a PNG or JPEG file, a JPEG by `decoder` if one is given. Throws
/// data_error with only the reason.
[[maybe_unused]] static inline rgb_image decode_image(std::span<const std::uint8_t> file,
                                                      image_decoder decoder = nullptr) {
    return detail::decode_image_with(file, detail::decode_with_stb, decoder);
}

/// Reads one PNG or JPEG as 8-bit RGB, a JPEG by `decoder` if one is given. Throws data_error
/// naming the file if it is missing, truncated or corrupt.
[[maybe_unused]] static inline rgb_image read_image(const files::path& path, image_decoder decoder = nullptr) {
    return detail::read_image_file(path, detail::decode_with_stb, decoder);
}

/// Reads all PNG and JPEG files of all class folders, decoding in parallel. Folders sorted by name
/// (bytewise) are the labels 0, 1, ...; images come class by class, files in `options.order`.
/// Hidden entries and files with other extensions are ignored. Values are floats in [0, 1], 3
/// channels. Throws data_error naming folder or file for a missing, empty, truncated or corrupt
/// one, and for a wrong size (naming both sizes) unless `options.resize`.
[[maybe_unused]] static inline labelled_images read_image_folder(const files::path& folder,
                                                                 const image_folder_options& options = {}) {
    return detail::read_image_folder_with(folder, options, detail::decode_with_stb);
}

} // namespace tapegraph::data
