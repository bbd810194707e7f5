// needs: zlib
#include <damaged/folder.hpp>

#include <tapegraph/formats/zip.hpp>

#include <string>
#include <vector>

namespace {

std::string archive(const tapegraph::io::zip_options& options) {
    const auto path = folder().path() / "sound";
    tapegraph::io::zip_writer writer(path, options);
    writer.add("first.txt", "some text");
    writer.add("deep/second", std::string(300, 'z') + "abcdefgh");
    writer.add("empty", "");
    writer.commit();
    return support::read_text(path);
}

} // namespace

std::vector<std::string> sound_files() {
    return {archive({}), archive({.level = 9}), archive({.zip64_from = 0}), archive({.level = 6, .zip64_from = 20})};
}

bool read_damaged(const std::string& bytes) {
    try {
        const tapegraph::io::zip_reader reader(folder().write("damaged", bytes));
        for (const auto& member : reader.members()) static_cast<void>(reader.read(member));
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 3 * 1032; // what deflate can make of a byte, while it grows
