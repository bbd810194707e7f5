// needs: zlib
#include <damaged/target.hpp>

#include <tapegraph/data/readers/record_file.hpp>
#include <tapegraph/data/readers/record_stream.hpp>

#include <support/temporary_folder.hpp>

namespace {

const support::temporary_folder& folder() {
    static const support::temporary_folder made;
    return made;
}

} // namespace

std::vector<std::string> sound_files() {
    using tapegraph::data::record_compression;
    std::vector<std::string> files;
    for (const auto kind : {record_compression::none, record_compression::gzip, record_compression::zlib}) {
        tapegraph::data::record_file_writer out(folder().path() / "sound", kind);
        for (const std::size_t bytes : {5u, 0u, 3000u, 1u})
            out.write(std::string(bytes, static_cast<char>('a' + bytes % 7)));
        out.commit();
        files.push_back(support::read_text(folder().path() / "sound"));
    }
    files.emplace_back();
    return files;
}

bool read_damaged(const std::string& bytes) {
    try {
        tapegraph::data::record_stream in(folder().write("damaged", bytes));
        for (std::string data; in.next(data);) static_cast<void>(data);
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 1; // nothing is held that the file's size decides
