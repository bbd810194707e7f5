#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/io/tensorboard/histogram.hpp>
#if __has_include(<stb/stb_image_write.h>) || __has_include(<stb_image_write.h>)
#include <tapegraph/formats/png.hpp>
#endif

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// Encodes tensors as PNG files.

namespace tapegraph::io::detail {

/// Converts elements to bytes: u8 unchanged, floating point from [0, 1] to [0, 255].
template <class T>
std::uint8_t pixel_of(T value) {
    if constexpr (std::is_same_v<T, std::uint8_t>) return value;
    const auto x = static_cast<double>(value);
    return x > 0 ? static_cast<std::uint8_t>(std::min(x, 1.0) * 255 + 0.5) : std::uint8_t{0};
}

/// Throws dtype_error for elements that are not pixels.
inline std::vector<std::uint8_t> pixels_of(const any_tensor& t) {
    if (t.type() != dtype::u8 && !is_floating(t.type()))
        throw dtype_error(std::string("image: elements are ") + name_of(t.type()) +
                          ", not u8 or floating point from 0 to 1");
    std::vector<std::uint8_t> pixels;
    visit_elements(t, [&]<class T>(const T* data, std::size_t count) {
        pixels.reserve(count);
        if constexpr (!std::is_same_v<T, bool>)
            for (std::size_t i = 0; i < count; ++i) pixels.push_back(pixel_of(data[i]));
    });
    return pixels;
}

/// The strings of an image summary: width, height, PNG files.
struct encoded_images {
    encoded_images(const any_tensor& t, int most) {
#if __has_include(<stb/stb_image_write.h>) || __has_include(<stb_image_write.h>)
        const int rank = t.rank();
        const auto extent = [&](int axis) { return t.shape()[axis].value; };
        const std::int64_t channels = rank > 2 ? extent(rank - 1) : 1;
        if (rank < 2 || rank > 4 || channels < 1 || channels > 4)
            throw shape_error("image: shape " + to_string(t.shape()) +
                              " is not [height, width], [height, width, channels] or [n, height, width, channels] with "
                              "1 to 4 channels");
        const int rows = rank == 4 ? 1 : 0;
        const std::int64_t height = extent(rows), width = extent(rows + 1), count = rank == 4 ? extent(0) : 1;
        if (height < 1 || width < 1) throw shape_error("image: shape " + to_string(t.shape()) + " has no pixels");
        const std::vector<std::uint8_t> pixels = pixels_of(t);
        const auto each = static_cast<std::size_t>(height * width * channels);
        texts.push_back(std::to_string(width));
        texts.push_back(std::to_string(height));
        for (std::int64_t i = 0; i < std::min<std::int64_t>(count, most); ++i)
            texts.push_back(encode_png(std::span(pixels).subspan(static_cast<std::size_t>(i) * each, each), height,
                                       width, channels));
        strings.assign(texts.begin(), texts.end());
#else
        static_assert(!std::is_void_v<X>,
                      "image: needs stb_image_write (Debian: libstb-dev; CMake: tapegraph::images)");
        static_cast<void>(t), static_cast<void>(most);
#endif
    }
    encoded_images(const encoded_images&) = delete;
    encoded_images& operator=(const encoded_images&) = delete;

    std::vector<std::string> texts;
    std::vector<std::string_view> strings;
};

} // namespace tapegraph::io::detail
