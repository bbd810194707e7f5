#pragma once

#include <tapegraph/data/images/image.hpp>

#if !__has_include(<turbojpeg.h>)
#error "tapegraph/data/readers/jpeg.hpp: needs libjpeg-turbo (Debian: libturbojpeg0-dev; CMake: tapegraph::jpeg)"
#endif
#include <turbojpeg.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// JPEG by libjpeg-turbo, up to twice as fast as stb_image. The two differ by some levels in a
/// pixel, so it must be selected explicitly:
///
///     data::read_image_folder(folder, {.decoder = data::decode_jpeg_by_turbo});
///     images::image<std::uint8_t> x = data::decode_jpeg(bytes, {.least_height = 224, .least_width = 224});

namespace tapegraph::data {

/// An image's size in pixels.
struct jpeg_size {
    std::int64_t height = 0, width = 0;
};

/// Options of `decode_jpeg`.
struct jpeg_options {
    /// Decode at 1/2, 1/4 or 1/8 of the size if that still has at least this many rows and columns;
    /// 0: full size.
    std::int64_t least_height = 0, least_width = 0;
    bool fast =
        /// Faster approximations of the cosine transform and of colours between samples, which
        /// differ by some levels.
        false;
};

namespace detail {

/// A decompressor for each thread.
class jpeg_decompressor {
public:
    jpeg_decompressor(const jpeg_decompressor&) = delete;
    jpeg_decompressor& operator=(const jpeg_decompressor&) = delete;
    ~jpeg_decompressor() { release(); }

    static jpeg_decompressor& of_thread() {
        static thread_local jpeg_decompressor mine;
        return mine;
    }
    tjhandle handle() {
        if (held_ == nullptr) held_ = tjInitDecompress();
        if (held_ == nullptr) throw data_error("libjpeg-turbo cannot be started");
        return held_;
    }
    /// Throws the library's message, without the name of its function. Version 2.1 stays in the
    /// middle of a damaged header and takes the next file for its continuation, so a failure is
    /// followed by a new decompressor.
    [[noreturn]] void fail() {
        std::string_view text = tjGetErrorStr2(held_);
        if (const auto colon = text.find("(): "); colon != std::string_view::npos) text.remove_prefix(colon + 4);
        const std::string reason(text);
        release();
        throw data_error("corrupt JPEG: " + reason);
    }

private:
    jpeg_decompressor() = default;
    void release() {
        if (held_ != nullptr) tjDestroy(held_);
        held_ = nullptr;
    }
    tjhandle held_ = nullptr;
};

struct jpeg_header {
    int height = 0, width = 0;
    bool four_inks = false; ///< CMYK or YCCK, which the library does not convert to RGB
};

inline jpeg_header read_jpeg_header(jpeg_decompressor& library, std::span<const std::uint8_t> file) {
    if (file.empty()) throw data_error("empty file");
    if (file.size() > std::size_t{1} << 30) throw data_error("larger than 1 GiB");
    if (file.size() < 3 || file[0] != 0xFF || file[1] != 0xD8 || file[2] != 0xFF) throw data_error("not a JPEG");
    const tjhandle handle = library.handle();
    jpeg_header header;
    int subsampling = 0, space = 0;
    if (tjDecompressHeader3(handle, file.data(), static_cast<unsigned long>(file.size()), &header.width, &header.height,
                            &subsampling, &space) != 0 &&
        (tjGetErrorCode(handle) != TJERR_WARNING || header.height < 1 || header.width < 1))
        library.fail(); // a failure after a warning has the warning's code
    if (header.height < 1 || header.width < 1) throw data_error("corrupt JPEG: no pixels");
    // A block of 8x8 takes at least one bit, so a file cannot contain more than 512 pixels a byte.
    if (std::int64_t{header.height} * header.width > static_cast<std::int64_t>(file.size()) * 512)
        throw data_error("corrupt JPEG: " + std::to_string(header.height) + "x" + std::to_string(header.width) +
                         " pixels do not fit into " + std::to_string(file.size()) + " bytes");
    header.four_inks = space == TJCS_CMYK || space == TJCS_YCCK;
    return header;
}

/// The smallest size that suffices.
inline jpeg_size scaled_size(const jpeg_header& header, const jpeg_options& options) {
    jpeg_size size{header.height, header.width};
    if (options.least_height <= 0 && options.least_width <= 0) return size;
    for (const int part : {2, 4, 8}) {
        const tjscalingfactor scale{1, part};
        const jpeg_size smaller{TJSCALED(header.height, scale), TJSCALED(header.width, scale)};
        if (smaller.height < options.least_height || smaller.width < options.least_width) break;
        size = smaller;
    }
    return size;
}

/// Adobe's files store inks inverted, with 255 for none, and no other software writes four of them.
inline void inks_to_rgb(const std::vector<std::uint8_t>& inks, std::uint8_t* to) {
    for (std::size_t i = 0; i + 3 < inks.size(); i += 4, to += 3)
        for (std::size_t c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>((inks[i + c] * inks[i + 3] + 127) / 255);
}

} // namespace detail

/// Height and width of a JPEG, read from its header alone. Throws data_error.
inline jpeg_size jpeg_size_of(std::span<const std::uint8_t> file) {
    const auto header = detail::read_jpeg_header(detail::jpeg_decompressor::of_thread(), file);
    return {header.height, header.width};
}

/// Decodes a JPEG as RGB into an image whose memory is reused for the next. Missing or invalid
/// parts of the file are errors, except for meaningless bytes between segments. The Exif
/// orientation is ignored, as in TensorFlow and torchvision. Throws data_error with only the
/// reason; the caller names the file.
inline void decode_jpeg_into(std::span<const std::uint8_t> file, images::image<std::uint8_t>& to,
                             const jpeg_options& options = {}) {
    auto& library = detail::jpeg_decompressor::of_thread();
    const auto header = detail::read_jpeg_header(library, file);
    const tjhandle handle = library.handle();
    const jpeg_size size = detail::scaled_size(header, options);
    to.height = size.height;
    to.width = size.width;
    to.channels = 3;
    to.pixels.resize(static_cast<std::size_t>(size.height * size.width * 3));
    std::vector<std::uint8_t> inks(header.four_inks ? to.pixels.size() / 3 * 4 : 0);
    const int flags = TJFLAG_LIMITSCANS | (options.fast ? TJFLAG_FASTDCT | TJFLAG_FASTUPSAMPLE : TJFLAG_ACCURATEDCT);
    const int failed = tjDecompress2(handle, file.data(), static_cast<unsigned long>(file.size()),
                                     header.four_inks ? inks.data() : to.pixels.data(), static_cast<int>(size.width), 0,
                                     static_cast<int>(size.height), header.four_inks ? TJPF_CMYK : TJPF_RGB, flags);
    if (failed != 0 && (tjGetErrorCode(handle) != TJERR_WARNING ||
                        std::string_view(tjGetErrorStr2(handle)).find("extraneous bytes") == std::string_view::npos))
        library.fail();
    if (header.four_inks) detail::inks_to_rgb(inks, to.pixels.data());
}

/// The image [height, width, 3], red, green and blue. Throws data_error for a damaged file.
inline images::image<std::uint8_t> decode_jpeg(std::span<const std::uint8_t> file, const jpeg_options& options = {}) {
    images::image<std::uint8_t> decoded;
    decode_jpeg_into(file, decoded, options);
    return decoded;
}

/// The same as an `image_decoder`, for read_image and read_image_folder.
inline rgb_image decode_jpeg_by_turbo(std::span<const std::uint8_t> file) {
    auto decoded = decode_jpeg(file);
    return {decoded.height, decoded.width, std::move(decoded.pixels)};
}

} // namespace tapegraph::data
