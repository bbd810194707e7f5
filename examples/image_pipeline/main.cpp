/// A folder tree of images is decoded, cropped at random, flipped, normalised and batched in the
/// background while a network trains on it. The program prints images per second of every stage,
/// names the bottleneck, and tells how long the step waited. `--help` lists the options.

#include "../common/program.hpp"
#include "model.hpp"
#include "options.hpp"
#include "pictures.hpp"

#include <tapegraph/data/images.hpp>
#include <tapegraph/data/pipeline.hpp>
#include <tapegraph/data/readers/image_folder.hpp>
#include <tapegraph/formats/file.hpp>
#if defined(IMAGE_PIPELINE_TURBO)
#include <tapegraph/data/readers/jpeg.hpp>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace tg = tapegraph;
namespace data = tapegraph::data;
namespace images = tapegraph::data::images;
using image_pipeline::options;
using image_pipeline::side;
using photo = images::image<std::uint8_t>;

/// A temporary folder, removed when the program ends.
class scratch_folder {
public:
    scratch_folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "image_pipeline_XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw tg::data_error("'" + pattern + "': cannot be made");
        path_ = pattern;
    }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;
    ~scratch_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

struct parts {
    data::image_files train, validation;
};

/// Splits the files: every fifth file of a class is held out.
parts divided(const data::image_files& all) {
    parts result;
    std::vector<int> seen(all.class_names.size());
    for (std::size_t i = 0; i < all.paths.size(); ++i) {
        data::image_files& part =
            seen[static_cast<std::size_t>(all.labels[i])]++ % 5 == 4 ? result.validation : result.train;
        part.paths.push_back(all.paths[i]);
        part.labels.push_back(all.labels[i]);
    }
    return result;
}

data::image_decoder decoder_of([[maybe_unused]] const options& o) {
#if defined(IMAGE_PIPELINE_TURBO)
    if (o.decoder == "turbo") return data::decode_jpeg_by_turbo;
#endif
    return nullptr;
}

/// Maps paths and labels to images and labels, in two stages, so that the report separates the disk
/// from the decoder.
auto decoded(const data::image_files& files, const options& o, std::uint64_t shuffle_seed) {
    const data::map_options threads{.threads = o.threads};
    return data::slices(files.paths, files.labels)
        .shuffle(shuffle_seed)
        .map([](const std::string& path,
                std::int32_t label) { return std::tuple(path, tg::io::read_file(path), label); },
             threads)
        .map(
            [decoder = decoder_of(o)](const std::string& path, const std::vector<std::uint8_t>& bytes,
                                      std::int32_t label) {
                try {
                    return std::tuple(photo(data::decode_image(bytes, decoder)), label);
                } catch (const tg::data_error& failure) {
                    throw tg::data_error("'" + path + "': " + failure.what());
                }
            },
            threads);
}

/// Writes part of a photo as the model's input straight into the batch.
struct input_writer {
    photo whole;
    images::box part;
    bool mirror;

    void operator()(std::span<float> to) const {
        images::model_input_into(images::crop(whole, part), to, side, side,
                                 {.normalize = images::imagenet_statistics(), .mirror = mirror});
    }
};
auto model_input(photo whole, const images::box& part, bool mirror) {
    return data::written<float>({side, side, 3}, input_writer{std::move(whole), part, mirror});
}

/// Random crops, half of them mirrored.
auto training_set(const data::image_files& files, const options& o) {
    return decoded(files, o, o.seed)
        .map(
            [](photo whole, std::int32_t label, data::counter_random& random) {
                const auto part = images::random_resized_box(whole.height, whole.width, random,
                                                             {.least_scale = 0.5, .greatest_scale = 1});
                const bool mirror = random.uniform() < 0.5;
                return std::tuple(model_input(std::move(whole), part, mirror), label);
            },
            {.threads = o.threads, .seed = o.seed})
        .batch(o.batch_size)
        .prefetch(o.prefetch);
}

/// The centre of each image, unchanged.
auto validation_set(const data::image_files& files, const options& o) {
    return decoded(files, o, o.seed)
        .map(
            [](photo whole, std::int32_t label) {
                const std::int64_t least = std::min(whole.height, whole.width);
                const auto part = images::center_box(whole.height, whole.width, least, least);
                return std::tuple(model_input(std::move(whole), part, false), label);
            },
            {.threads = o.threads})
        .batch(o.batch_size);
}

/// Prints the library's report with stage names that say what they do here. The step takes batches,
/// all other stages images.
void print_report(data::pipeline_report report, std::int64_t batch_size) {
    const std::vector<std::string> names{"list", "read", "decode", "choose part", "crop, flip, batch", "train"};
    std::printf("\nstage                images/s of one thread     busy s   waited s\n");
    for (std::size_t i = 0; i < report.stages.size(); ++i) {
        data::stage_report& s = report.stages[i];
        const std::int64_t of = s.name == "step" ? batch_size : 1;
        if (report.stages.size() == names.size()) s.name = names[i];
        std::printf("%-20s %22.0f %10.3f %10.3f\n", s.name.c_str(), s.rate() * static_cast<double>(of), s.busy_seconds,
                    s.wait_seconds);
    }
    std::printf("bottleneck: %s; the step waited %.2f%% of its time\n", report.bottleneck().c_str(),
                100 * report.wait_share());
}

void run(const options& o) {
    const scratch_folder own;
    if (o.data.empty()) image_pipeline::make_pictures(own.path(), o.images, o.seed);
    const data::image_files all = data::list_image_folder(o.data.empty() ? own.path() : o.data);
    if (all.class_names.size() > image_pipeline::most_classes)
        throw tg::data_error("'" + o.data + "': " + std::to_string(all.class_names.size()) +
                             " class folders, at most " + std::to_string(image_pipeline::most_classes));
    const parts sets = divided(all);
    if (sets.validation.paths.empty())
        throw tg::data_error("'" + o.data + "': no class has five images, so that one could be held out");
    std::printf("%zu images of %zu classes to train on, %zu held out; JPEG by %s\n", sets.train.paths.size(),
                all.class_names.size(), sets.validation.paths.size(), o.decoder.c_str());

    const auto train = training_set(sets.train, o);
    auto model = tg::compile<tg::graph>(image_pipeline::classifier{}, tg::spec<float, tg::dyn, side, side, 3>{},
                                        tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = o.learning_rate},
                                        {.seed = o.seed});
    const tg::history h = model.fit(train, {.epochs = o.epochs,
                                            .validation_data = validation_set(sets.validation, o),
                                            .steps_per_epoch = o.steps,
                                            .verbose = 0});
    std::printf("\nepoch  seconds   train: loss  accuracy   validation: loss  accuracy   images/s\n");
    for (std::size_t i = 0; i < h.epochs.size(); ++i) {
        const tg::epoch_result& e = h.epochs[i];
        std::printf("%5zu %8.2f %13.4f %9.4f %18.4f %9.4f %10.0f\n", i + 1, e.seconds, e.loss, e.accuracy,
                    e.validation_loss, e.validation_accuracy, static_cast<double>(e.records) / e.seconds);
    }
    print_report(train.report(), o.batch_size);
}

} // namespace

int main(int argc, char** argv) {
    return examples::run_program("image_pipeline", [&] {
        options o;
        if (image_pipeline::parse(argc, argv, o)) run(o);
    });
}
