// needs: zlib
#include <damaged/record_files.hpp>

std::vector<std::string> sound_files() { return record_files(300); }

bool read_damaged(const std::string& bytes) {
    try {
        const tapegraph::data::record_file file(folder().write("damaged", bytes));
        std::string data;
        for (std::int64_t i = 0; i < file.size(); ++i) file.read(i, data);
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 3 * 1032; // what deflate makes of a byte, in memory that grows by halves
