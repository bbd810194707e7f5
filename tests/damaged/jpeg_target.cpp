// needs: jpeg
#include <damaged/target.hpp>

#include <tapegraph/data/readers/jpeg.hpp>

#include <vector>

namespace {

std::string jpeg(int height, int width, int format, int subsampling, int flags) {
    std::vector<unsigned char> pixels;
    for (int i = 0; i < height * width * tjPixelSize[format]; ++i)
        pixels.push_back(static_cast<unsigned char>(i * i / 7));
    const tjhandle handle = tjInitCompress();
    unsigned char* out = nullptr;
    unsigned long size = 0;
    tjCompress2(handle, pixels.data(), width, 0, height, format, &out, &size, subsampling, 70, flags);
    std::string file(reinterpret_cast<char*>(out), size);
    tjFree(out);
    tjDestroy(handle);
    return file;
}

} // namespace

std::vector<std::string> sound_files() {
    return {jpeg(17, 23, TJPF_RGB, TJSAMP_420, 0), jpeg(8, 8, TJPF_GRAY, TJSAMP_GRAY, 0),
            jpeg(33, 9, TJPF_RGB, TJSAMP_444, TJFLAG_PROGRESSIVE), jpeg(16, 16, TJPF_CMYK, TJSAMP_444, 0)};
}

bool read_damaged(const std::string& bytes) {
    try {
        static_cast<void>(
            tapegraph::data::decode_jpeg({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}));
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 512 * 7; // a bit for each block of 64 pixels, of four inks and three colours
