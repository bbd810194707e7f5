#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/data/readers/labelled_images.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/host_array.hpp>
#include <tapegraph/formats/path.hpp>

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// IDX, the format of MNIST: two zero bytes, an element type, the rank, big-endian extents,
/// big-endian values. Plain or gzip, distinguished by content. Needs zlib. Format:
/// http://yann.lecun.com/exdb/mnist/

namespace tapegraph::data {

namespace detail {

/// Reads plain and gzip files alike, with errors that name the file.
class gzip_reader {
public:
    explicit gzip_reader(const files::path& path) : name_(io::detail::quoted(path)) {
        if (io::detail::file_size_of(path) == 0) throw data_error(name_ + ": empty file");
        file_ = gzopen(path.c_str(), "rb");
        if (file_ == nullptr) throw data_error(name_ + ": cannot be opened");
        gzbuffer(file_, 1u << 17);
    }
    gzip_reader(const gzip_reader&) = delete;
    gzip_reader& operator=(const gzip_reader&) = delete;
    ~gzip_reader() { gzclose_r(file_); }

    /// Reads up to `bytes` bytes; fewer only at the end of the file.
    std::size_t read(void* to, std::size_t bytes) {
        std::size_t done = 0;
        while (done < bytes) {
            const auto part = static_cast<unsigned>(std::min<std::size_t>(bytes - done, 1u << 30));
            const int got = gzread(file_, static_cast<char*>(to) + done, part);
            if (got <= 0) {
                int code = Z_OK;
                const char* reason = gzerror(file_, &code);
                if (code == Z_BUF_ERROR) throw data_error(name_ + ": truncated gzip data");
                if (code != Z_OK) throw data_error(name_ + ": corrupt gzip data: " + reason);
                break;
            }
            done += static_cast<std::size_t>(got);
        }
        return done;
    }

private:
    std::string name_;
    gzFile file_ = nullptr;
};

inline bool idx_type(std::uint8_t code, dtype& type) {
    switch (code) {
    case 0x08: type = dtype::u8; return true;
    case 0x09: type = dtype::i8; return true;
    case 0x0B: type = dtype::i16; return true;
    case 0x0C: type = dtype::i32; return true;
    case 0x0D: type = dtype::f32; return true;
    case 0x0E: type = dtype::f64; return true;
    default: return false;
    }
}

} // namespace detail

/// Reads one IDX file of any element type. Throws data_error naming the file if it is missing,
/// empty, truncated, longer than its header says, or not an IDX file.
inline io::host_array read_idx(const files::path& path) {
    const std::string file = io::detail::quoted(path);
    detail::gzip_reader in(path);
    std::array<std::uint8_t, 4> magic{};
    if (in.read(magic.data(), 4) != 4) throw data_error(file + ": truncated IDX header");
    io::host_array array;
    if (magic[0] != 0 || magic[1] != 0 || !detail::idx_type(magic[2], array.type) || magic[3] == 0)
        throw data_error(file + ": not an IDX file (first bytes " + std::to_string(magic[0]) + " " +
                         std::to_string(magic[1]) + " " + std::to_string(magic[2]) + " " + std::to_string(magic[3]) +
                         ")");
    for (int axis = 0; axis < magic[3]; ++axis) {
        std::array<std::uint8_t, 4> extent{};
        if (in.read(extent.data(), 4) != 4) throw data_error(file + ": truncated IDX header");
        array.shape.push_back(std::int64_t{extent[0]} << 24 | std::int64_t{extent[1]} << 16 |
                              std::int64_t{extent[2]} << 8 | std::int64_t{extent[3]});
    }
    std::int64_t size = 0;
    if (!io::checked_size(array.shape, size_of(array.type), size))
        throw data_error(file + ": impossible shape " + io::shape_text(array.shape));

    // Grown block by block: a size in a corrupt header is never allocated before the bytes exist.
    const auto expected = static_cast<std::size_t>(size) * size_of(array.type);
    constexpr std::size_t block = std::size_t{1} << 24;
    for (std::size_t done = 0; done < expected;) {
        const std::size_t part = std::min(block, expected - done);
        array.bytes.resize(done + part);
        const std::size_t got = in.read(array.bytes.data() + done, part);
        if (got != part)
            throw data_error(file + ": truncated: shape " + io::shape_text(array.shape) + " of " + name_of(array.type) +
                             " needs " + std::to_string(expected) + " bytes, got " + std::to_string(done + got));
        done += part;
    }
    std::byte more{};
    if (in.read(&more, 1) != 0) // reading to the end makes zlib check its checksum, too
        throw data_error(file + ": more bytes than shape " + io::shape_text(array.shape) + " needs");
    const std::size_t width = size_of(array.type);
    for (std::size_t at = 0; width > 1 && at < array.bytes.size(); at += width)
        std::reverse(array.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     array.bytes.begin() + static_cast<std::ptrdiff_t>(at + width));
    return array;
}

/// Reads a pair of IDX files, u8 images [count, height, width] and u8 labels [count], as floats in [0, 1] with one
/// channel. Labels must be below `classes`. Throws data_error naming file and record.
inline labelled_images read_idx_images(const files::path& images, const files::path& labels,
                                       std::int32_t classes = 10) {
    const std::string image_file = io::detail::quoted(images), label_file = io::detail::quoted(labels);
    const auto pixels = read_idx(images);
    const auto numbers = read_idx(labels);
    if (pixels.type != dtype::u8 || pixels.shape.size() != 3)
        throw data_error(image_file + ": holds " + name_of(pixels.type) + io::shape_text(pixels.shape) +
                         ", expected images u8[count,height,width]");
    if (numbers.type != dtype::u8 || numbers.shape.size() != 1)
        throw data_error(label_file + ": holds " + name_of(numbers.type) + io::shape_text(numbers.shape) +
                         ", expected labels u8[count]");
    if (pixels.shape[0] != numbers.shape[0])
        throw data_error(image_file + " holds " + std::to_string(pixels.shape[0]) + " images, " + label_file + " " +
                         std::to_string(numbers.shape[0]) + " labels");
    if (pixels.size() == 0) throw data_error(image_file + ": no images");
    labelled_images result;
    result.count = pixels.shape[0];
    result.height = pixels.shape[1];
    result.width = pixels.shape[2];
    result.channels = 1;
    result.images.reserve(static_cast<std::size_t>(pixels.size()));
    for (const auto value : pixels.values<std::uint8_t>())
        result.images.push_back(static_cast<float>(value) * (1.0f / 255.0f));
    for (const auto label : numbers.values<std::uint8_t>()) {
        if (label >= classes)
            throw data_error(label_file + ", record " + std::to_string(result.labels.size()) + ": label " +
                             std::to_string(label) + " of " + std::to_string(classes) + " classes");
        result.labels.push_back(label);
    }
    for (std::int32_t label = 0; label < classes; ++label) result.class_names.push_back(std::to_string(label));
    return result;
}

/// Reads MNIST or a data set in the same layout: `<part>-images-idx3-ubyte` and
/// `<part>-labels-idx1-ubyte` in `folder`, each with or without .gz; `part` is "train" or "t10k".
inline labelled_images read_mnist(const files::path& folder, const std::string& part = "train") {
    const auto find = [&](const std::string& name) {
        std::error_code failure;
        const auto plain = folder / name;
        if (files::exists(plain, failure)) return plain;
        const auto zipped = folder / (name + ".gz");
        if (files::exists(zipped, failure)) return zipped;
        throw data_error(io::detail::quoted(plain) + ": no such file, nor with .gz");
    };
    const auto images = find(part + "-images-idx3-ubyte");
    return read_idx_images(images, find(part + "-labels-idx1-ubyte"));
}

} // namespace tapegraph::data
