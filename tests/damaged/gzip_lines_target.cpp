// needs: zlib
#include <damaged/folder.hpp>

#include <tapegraph/data/pipeline/gzip_lines.hpp>

namespace {

std::string compressed(const std::string& text) {
    const std::string path = (folder().path() / "sound").string();
    const gzFile out = ::gzopen(path.c_str(), "wb");
    ::gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
    ::gzclose(out);
    return support::read_text(path);
}

} // namespace

std::vector<std::string> sound_files() {
    std::string many;
    for (int i = 0; i < 500; ++i) many += "line " + std::to_string(i * i) + "\r\n";
    return {compressed("one\ntwo\n\nthree"), compressed(many), "plain text\nof two lines\n"};
}

bool read_damaged(const std::string& bytes) {
    try {
        const std::string path = folder().write("damaged", bytes);
        std::size_t all = 0;
        for (const std::string& line : tapegraph::data::gzip_lines(std::vector<std::string>{path}, 1000).epoch(0))
            all += line.size();
        return all < std::size_t{1} << 40;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 1;
