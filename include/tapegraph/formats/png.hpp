#pragma once

#include <tapegraph/core/error.hpp>

#if __has_include(<stb/stb_image_write.h>)
#include <stb/stb_image_write.h>
#elif __has_include(<stb_image_write.h>)
#include <stb_image_write.h>
#else
#error "tapegraph/formats/png.hpp: needs stb_image_write (Debian: libstb-dev; CMake: tapegraph::images)"
#endif

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

/// Writes images as PNG (ISO/IEC 15948), 8 bits per channel, by stb_image_write. Programs link
/// stb's library (CMake: tapegraph::images), or compile it in one of their sources: that one
/// defines STB_IMAGE_WRITE_IMPLEMENTATION and includes stb_image_write.h.

namespace tapegraph::io {

/// An image [height, width, channels] as the bytes of a PNG file; 1 channel is gray, 2 gray and
/// alpha, 3 RGB, 4 RGBA. What the program sets in stb_image_write's global variables (the level of
/// compression, whether rows are flipped) counts here, too. Throws argument_error for an invalid
/// image or one of more than 512 MiB.
inline std::string encode_png(std::span<const std::uint8_t> pixels, std::int64_t height, std::int64_t width,
                              std::int64_t channels) {
    const auto refuse = [](const std::string& what) { throw argument_error("encode_png: " + what); };
    const std::string extents =
        "[" + std::to_string(height) + ", " + std::to_string(width) + ", " + std::to_string(channels) + "]";
    if (channels < 1 || channels > 4)
        refuse("a picture " + extents + " has " + std::to_string(channels) + " channels, not 1 to 4");
    // stb counts bytes in an int, and its buffer for the compressed ones doubles as it grows.
    constexpr std::int64_t most = std::int64_t{1} << 29;
    if (height < 1 || width < 1 || width > most / channels - 1 || height > most / (width * channels + 1))
        refuse("a picture " + extents + " has no pixels, or too many");
    const std::int64_t stride = width * channels;
    if (pixels.size() != static_cast<std::size_t>(height * stride))
        refuse(std::to_string(pixels.size()) + " bytes for a picture " + extents);
    std::string out;
    const auto append = [](void* to, void* bytes, int count) {
        static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), static_cast<std::size_t>(count));
    };
    if (stbi_write_png_to_func(append, &out, static_cast<int>(width), static_cast<int>(height),
                               static_cast<int>(channels), pixels.data(), static_cast<int>(stride)) == 0)
        throw error("encode_png: stb_image_write gives no memory for a picture " + extents);
    return out;
}

} // namespace tapegraph::io
