// needs: images
// needs: zlib
#include <tapegraph/data/images/resize.hpp>
#include <tapegraph/data/readers/image_folder.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

/// `PROGRAM FILE METHOD HEIGHT WIDTH` writes the image, resized with antialiasing, to standard output as bytes.

int main(int argc, char** argv) {
    namespace data = tapegraph::data;
    if (argc != 5) return 2;
    const std::string method = argv[2];
    const auto how = method == "bilinear"  ? data::images::resize_method::bilinear
                     : method == "bicubic" ? data::images::resize_method::bicubic
                                           : data::images::resize_method::area;
    const auto resized =
        data::images::resize(data::read_image(argv[1]), std::atoi(argv[3]), std::atoi(argv[4]), {how, true});
    std::fwrite(resized.pixels.data(), 1, resized.pixels.size(), stdout);
    return 0;
}
