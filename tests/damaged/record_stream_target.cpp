// needs: zlib
#include <damaged/record_files.hpp>

#include <tapegraph/data/readers/record_stream.hpp>

std::vector<std::string> sound_files() { return record_files(3000); }

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
