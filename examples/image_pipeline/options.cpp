#include "options.hpp"

#include "../common/command_line.hpp"

#include <limits>

namespace image_pipeline {

bool parse(int argc, char** argv, options& into) {
    CLI::App app(
        "Trains a small network on a folder tree of images: decode, random-resized crop, flip, normalise, batch,\n"
        "prefetch, train. Without --data the images are shapes that it draws into a folder of its own.",
        "image_pipeline");
    app.get_formatter()->column_width(28);
    using examples::between;
    app.add_option("--data", into.data, "folder with a folder of PNG and JPEG files for each class")
        ->type_name("FOLDER");
    app.add_option("--images", into.images, "to draw where there is no --data [300]")
        ->type_name("N")
        ->check(between(15, 1000000));
#if defined(IMAGE_PIPELINE_TURBO)
    app.add_option("--decoder", into.decoder, "of JPEG files: stb or turbo [stb]")
        ->type_name("NAME")
        ->check(examples::one_of({"stb", "turbo"}));
#endif
    app.add_option("--epochs", into.epochs, "[3]")->type_name("N")->check(between(1, 1000000));
    app.add_option("--batch-size", into.batch_size, "[16]")->type_name("N")->check(between(1, 4096));
    app.add_option("--steps", into.steps, "stop each epoch after so many steps")
        ->type_name("N")
        ->check(between(1, 1000000000));
    app.add_option("--threads", into.threads, "that read and decode [all cores but one]")
        ->type_name("N")
        ->check(between(0, 1024));
    app.add_option("--prefetch", into.prefetch, "batches made ahead [2]")->type_name("N")->check(between(0, 4096));
    app.add_option("--learning-rate", into.learning_rate, "of Adam [0.003]")->type_name("X");
    app.add_option("--seed", into.seed, "of weights, order, crops and drawn images [1]")
        ->type_name("N")
        ->check(between(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
    if (!examples::parse(app, argc, argv)) return false;
    if (!(into.learning_rate > 0 && into.learning_rate < 1e30))
        throw examples::usage_error("--learning-rate must be above 0");
    return true;
}

} // namespace image_pipeline
