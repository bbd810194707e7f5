#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/data/readers/labelled_images.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/path.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// CIFAR-10's binary version: records of one label byte and 3,072 bytes, the red, green and blue planes of a 32x32 image.
/// Format: https://www.cs.toronto.edu/~kriz/cifar.html

namespace tapegraph::data {

/// The five files for training, or the one for testing.
enum class cifar10_part { train, test };

/// Reads batch files one after the other, as floats in [0, 1], [count, 32, 32, 3]. Throws data_error naming file and
/// record for a missing, empty or truncated file or a label above 9.
labelled_images read_cifar10(std::span<const files::path> files);

/// The same for any range of paths, including std::filesystem's.
template <std::ranges::input_range Files>
    requires(std::convertible_to<std::ranges::range_reference_t<const Files&>, files::path> &&
             !std::convertible_to<const Files&, files::path> &&
             !std::convertible_to<const Files&, std::span<const files::path>>)
labelled_images read_cifar10(const Files& batches) {
    const std::vector<files::path> names(std::ranges::begin(batches), std::ranges::end(batches));
    return read_cifar10(std::span<const files::path>(names));
}

/// Reads one batch file, or from a folder `data_batch_1.bin`, `data_batch_2.bin`, ... as far as
/// they exist (or `test_batch.bin`).
labelled_images read_cifar10(const files::path& path, cifar10_part part = cifar10_part::train);

#if TG_DEFINES(data)

TG_DEFINITION labelled_images read_cifar10(std::span<const files::path> files) {
    constexpr std::size_t plane = 32 * 32, record = 1 + 3 * plane;
    if (files.empty()) throw argument_error("read_cifar10: no files given");
    labelled_images result{{},
                           0,
                           32,
                           32,
                           3,
                           {},
                           {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}};
    for (const auto& path : files) {
        const std::string file = io::detail::quoted(path);
        const auto bytes = io::read_file(path);
        if (bytes.empty()) throw data_error(file + ": empty file");
        if (bytes.size() % record != 0)
            throw data_error(file + ": " + std::to_string(bytes.size()) +
                             " bytes are not a whole number of records of " + std::to_string(record) +
                             " bytes; record " + std::to_string(bytes.size() / record) + " is truncated");
        const std::size_t count = bytes.size() / record;
        result.images.reserve(result.images.size() + count * 3 * plane);
        for (std::size_t r = 0; r < count; ++r) {
            const std::uint8_t* at = bytes.data() + r * record;
            if (*at > 9)
                throw data_error(file + ", record " + std::to_string(r) + ": label " + std::to_string(*at) +
                                 " of 10 classes");
            result.labels.push_back(*at++);
            for (std::size_t pixel = 0; pixel < plane; ++pixel)
                for (std::size_t channel = 0; channel < 3; ++channel)
                    result.images.push_back(static_cast<float>(at[channel * plane + pixel]) * (1.0f / 255.0f));
        }
        result.count += static_cast<std::int64_t>(count);
    }
    return result;
}

TG_DEFINITION labelled_images read_cifar10(const files::path& path, cifar10_part part) {
    std::error_code failure;
    std::vector<files::path> files;
    if (!files::is_directory(path, failure)) {
        files.push_back(path);
    } else if (part == cifar10_part::test) {
        files.push_back(path / "test_batch.bin");
    } else {
        for (int batch = 1;
             batch == 1 || files::exists(path / ("data_batch_" + std::to_string(batch) + ".bin"), failure); ++batch)
            files.push_back(path / ("data_batch_" + std::to_string(batch) + ".bin"));
    }
    return read_cifar10(std::span<const files::path>(files));
}

#endif

} // namespace tapegraph::data
