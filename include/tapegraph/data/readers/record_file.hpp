#pragma once

#include <tapegraph/data/readers/record_compression.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/record_framing.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Reads TFRecord files in any order, and writes them. Opening a file skips from length to length,
/// so record n is one read away and a shuffle is complete:
///
///     data::record_files records({"train-0.tfrecord", "train-1.tfrecord"});
///     std::string bytes;
///     records.read(17, bytes);               // from any thread
///
///     data::record_file_writer out("made.tfrecord");
///     out.write(bytes);
///     out.commit();                          // until here there is no file of that name

namespace tapegraph::data {

/// Options of `record_file` and `record_files`.
struct record_file_options {
    /// Detected from the content by default. Compressed files are decompressed into memory;
    /// record_stream.hpp reads them piece by piece.
    record_compression compression = record_compression::automatic;
    bool check = true; ///< verify each record's data checksum; the checksums of lengths are always verified
};

/// One file. Several threads may read at once.
class record_file {
public:
    /// Finds the start of each record. Throws data_error naming file, record and byte of damaged or
    /// missing data.
    explicit record_file(const files::path& path, const record_file_options& options = {})
        : file_(std::make_shared<const io::input_file>(path)), check_(options.check) {
        const std::uint64_t size = file_->size();
        char start[io::record_head_bytes] = {};
        const std::size_t known = size < sizeof start ? static_cast<std::size_t>(size) : sizeof start;
        read_at(start, known, 0);
        const auto found = options.compression == record_compression::automatic
                               ? detail::compression_of(std::string_view(start, known))
                               : options.compression;
        std::uint64_t end = size;
        if (found != record_compression::none) {
            const auto bytes = io::read_file(path);
            inflated_ = std::make_shared<const std::vector<std::byte>>(
                io::inflate_bytes(std::as_bytes(std::span(bytes)),
                                  found == record_compression::gzip ? io::deflate_frame::gzip : io::deflate_frame::zlib,
                                  io::detail::most_inflated(bytes.size()), io::detail::quoted(path)));
            end = inflated_->size();
        }
        for (std::uint64_t at = 0; at < end;) {
            char head[io::record_head_bytes] = {};
            if (end - at >= sizeof head) read_at(head, sizeof head, at);
            starts_.push_back(at);
            at +=
                io::record_length(head, end - at, place(size_so_far())) + io::record_head_bytes + io::record_tail_bytes;
        }
        starts_.push_back(end);
    }

    std::int64_t size() const { return static_cast<std::int64_t>(starts_.size()) - 1; }
    /// The path as it was given.
    const std::string& path() const { return file_->name(); }
    /// The position of record n, for errors.
    io::record_place place(std::int64_t record) const {
        return {path(), static_cast<std::uint64_t>(record), starts_[static_cast<std::size_t>(record)]};
    }

    /// Reads the data of a record into memory that the next call reuses. Throws range_error for a
    /// record that does not exist, data_error for a wrong checksum.
    void read(std::int64_t record, std::string& data) const {
        if (record < 0 || record >= size())
            throw range_error("record_file.read: record " + std::to_string(record) + " of '" + path() +
                              "', which has " + std::to_string(size()));
        const auto r = static_cast<std::size_t>(record);
        const auto bytes = static_cast<std::size_t>(starts_[r + 1] - starts_[r] - io::record_head_bytes);
        data.resize(bytes); // including the checksum after it, cut off below
        read_at(data.data(), bytes, starts_[r] + io::record_head_bytes);
        const std::size_t length = bytes - io::record_tail_bytes;
        if (check_) io::check_record(std::string_view(data).substr(0, length), data.data() + length, place(record));
        data.resize(length);
    }
    std::string read(std::int64_t record) const {
        std::string data;
        read(record, data);
        return data;
    }

private:
    std::int64_t size_so_far() const { return static_cast<std::int64_t>(starts_.size()) - 1; }
    void read_at(char* to, std::size_t bytes, std::uint64_t at) const {
        if (inflated_) {
            std::memcpy(to, inflated_->data() + at, bytes);
            return;
        }
        file_->read(to, bytes, at);
    }

    std::shared_ptr<const io::input_file> file_; ///< shared by copies
    bool check_ = true;
    std::shared_ptr<const std::vector<std::byte>> inflated_;
    std::vector<std::uint64_t> starts_; ///< of each record, followed by the end
};

/// Several files as one, with records numbered from the first file's first to the last file's last.
class record_files {
public:
    template <class Path>
    explicit record_files(const std::vector<Path>& paths, const record_file_options& options = {}) {
        for (const auto& path : paths) {
            files_.emplace_back(path, options);
            ends_.push_back(size() + files_.back().size());
        }
    }
    explicit record_files(const files::path& path, const record_file_options& options = {})
        : record_files(std::vector<files::path>{path}, options) {}

    std::int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
    /// Works like record_file's.
    void read(std::int64_t record, std::string& data) const {
        const auto [file, number] = find(record);
        files_[file].read(number, data);
    }
    std::string read(std::int64_t record) const {
        std::string data;
        read(record, data);
        return data;
    }
    /// File, number and byte of a record, for messages. Throws range_error if there is none.
    io::record_place place(std::int64_t record) const {
        const auto [file, number] = find(record);
        return files_[file].place(number);
    }

    /// As a pipeline source: data::from(records) is a set of the records' bytes.
    static constexpr const char* name = "records";
    /// The bytes of a record: what a pipeline reads.
    std::string at(std::int64_t record) const { return read(record); }
    /// File, number and byte of a record as text.
    std::string origin(std::int64_t record) const { return place(record).text(); }

private:
    struct found {
        std::size_t file;
        std::int64_t number;
    };
    found find(std::int64_t record) const {
        if (record < 0 || record >= size())
            throw range_error("record_files.read: record " + std::to_string(record) + " of " + std::to_string(size()) +
                              " in " + std::to_string(files_.size()) + " files");
        std::size_t low = 0, high = ends_.size() - 1;
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            if (record < ends_[middle])
                high = middle;
            else
                low = middle + 1;
        }
        return {low, low == 0 ? record : record - ends_[low - 1]};
    }

    std::vector<record_file> files_;
    std::vector<std::int64_t> ends_;
};

/// Writes a TFRecord file that appears under its name when commit() is called, complete. If it is
/// destroyed earlier, it leaves nothing.
class record_file_writer {
public:
    explicit record_file_writer(const files::path& path, record_compression compression = record_compression::none)
        : file_(path), deflate_(compression) {}

    /// Appends a record. Throws data_error if the disk is full.
    void write(std::string_view data) {
        if (done_) throw argument_error("record_file_writer.write: the file is committed");
        io::append_record(buffer_, data);
        ++written_;
        if (buffer_.size() >= buffer_bytes) flush(false);
    }
    std::int64_t size() const { return written_; }
    /// Writes what is left and gives the file its name; without it nothing appears. Throws argument_error when called
    /// twice.
    void commit() {
        if (done_) throw argument_error("record_file_writer.commit: the file is committed");
        flush(true);
        file_.commit();
        done_ = true;
    }

private:
    static constexpr std::size_t buffer_bytes = 1 << 18;

    void flush(bool last) {
        if (deflate_.used()) {
            packed_.clear();
            deflate_.add(buffer_, last, packed_);
            file_.write(packed_);
        } else {
            file_.write(buffer_);
        }
        buffer_.clear();
    }

    io::atomic_file file_;
    detail::record_deflate deflate_;
    std::string buffer_, packed_;
    std::int64_t written_ = 0;
    bool done_ = false;
};

} // namespace tapegraph::data
