#include <tapegraph/data/images.hpp>
#include <tapegraph/data/readers/image_folder.hpp>
#include <tapegraph/formats/file.hpp>
#if __has_include(<turbojpeg.h>)
#include <tapegraph/data/readers/jpeg.hpp>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

/// Measures images per second of one core, by processor time: decode, random-resized crop, flip,
/// normalise to 224x224 floats. The files are in memory. Usage: image_decode FOLDER [seconds];
/// benchmarks/image_decode.py makes a folder and runs torchvision for comparison.

namespace {

namespace data = tapegraph::data;
namespace images = tapegraph::data::images;

double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

constexpr std::int64_t side = 224;

/// Decodes into `photo`, whose memory is reused.
template <class Decode>
void measure(const char* name, const std::vector<std::vector<std::uint8_t>>& files, double seconds,
             const Decode& decode) {
    images::image<std::uint8_t> photo;
    std::vector<float> slot(static_cast<std::size_t>(side * side * 3));
    images::model_input_options options;
    options.normalize = images::imagenet_statistics();
    double decoding = 0, rest = 0;
    std::uint64_t record = 0;
    for (const double begin = processor_seconds(); processor_seconds() - begin < seconds; ++record) {
        data::counter_random random(1, record);
        const double start = processor_seconds();
        decode(files[record % files.size()], photo);
        const double decoded = processor_seconds();
        const auto part = images::random_resized_box(photo.height, photo.width, random);
        options.mirror = random.uniform() < 0.5;
        images::model_input_into(images::crop(photo, part), std::span<float>(slot), side, side, options);
        decoding += decoded - start;
        rest += processor_seconds() - decoded;
    }
    const auto count = static_cast<double>(record);
    std::printf("%s %.1f images/s, decode %.0f us, crop to normalise %.0f us\n", name, count / (decoding + rest),
                1e6 * decoding / count, 1e6 * rest / count);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: image_decode FOLDER [seconds]\n");
        return 2;
    }
    const double seconds = argc > 2 ? std::atof(argv[2]) : 2;
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<std::vector<std::uint8_t>> files;
    for (const auto& path : paths) files.push_back(tapegraph::io::read_file(path));
    if (files.empty()) {
        std::fprintf(stderr, "image_decode: no files\n");
        return 1;
    }
#if __has_include(<turbojpeg.h>)
    measure("turbo", files, seconds, [](const auto& file, auto& to) { data::decode_jpeg_into(file, to); });
    measure("turbo_fast", files, seconds,
            [](const auto& file, auto& to) { data::decode_jpeg_into(file, to, {.fast = true}); });
#endif
    measure("stb", files, seconds, [](const auto& file, auto& to) { to = data::decode_image(file); });
    return 0;
}
