#pragma once

#include <damaged/folder.hpp>

#include <tapegraph/data/readers/record_file.hpp>

/// Files of records, in each compression.

/// Four records, the longest of `longest` bytes; and a file of nothing.
inline std::vector<std::string> record_files(std::size_t longest) {
    using tapegraph::data::record_compression;
    std::vector<std::string> files;
    for (const auto kind : {record_compression::none, record_compression::gzip, record_compression::zlib}) {
        tapegraph::data::record_file_writer out(folder().path() / "sound", kind);
        for (const std::size_t bytes : {std::size_t{5}, std::size_t{0}, longest, std::size_t{1}})
            out.write(std::string(bytes, static_cast<char>('a' + bytes % 7)));
        out.commit();
        files.push_back(support::read_text(folder().path() / "sound"));
    }
    files.emplace_back();
    return files;
}
