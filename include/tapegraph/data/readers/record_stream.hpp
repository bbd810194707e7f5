#pragma once

#include <tapegraph/data/pipeline/set.hpp>
#include <tapegraph/data/readers/record_compression.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/record_framing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Reads TFRecord files sequentially, compressed or not, in memory that does not depend on the
/// file's size:
///
///     data::record_stream in("train-0.tfrecord.gz");
///     for (std::string bytes; in.next(bytes);) ...
///
///     auto train = data::streamed_records(paths).shuffle(seed, {.buffer = 10000}).map(parse, {.threads = 2}).batch(32);
///
/// data/readers/record_file.hpp reads records in any order, but holds compressed files decompressed
/// in memory.

namespace tapegraph::data {

/// Options of `record_stream`.
struct record_stream_options {
    record_compression compression = record_compression::automatic; ///< detected from the content by default
    bool check = true; ///< verify each record's data checksum; the checksums of lengths are always verified
    std::size_t longest = std::size_t{1} << 30; ///< maximum bytes of a record's data
};

namespace detail {

/// The bytes of a file in sequence, decompressed on demand.
class record_byte_source {
public:
    record_byte_source(const files::path& path, record_compression kind)
        : file_(path), what_(io::detail::quoted(path)), packed_(buffer_bytes) {
        if (kind == record_compression::automatic) {
            char start[io::record_head_bytes] = {};
            const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(file_.size(), sizeof start));
            file_.read(start, known, 0);
            kind = compression_of(std::string_view(start, known));
        }
        kind_ = kind;
        if (kind_ != record_compression::none) start_inflating();
    }
    record_byte_source(const record_byte_source&) = delete;
    record_byte_source& operator=(const record_byte_source&) = delete;

    const std::string& path() const { return file_.name(); }
    /// Reads the next `bytes` bytes; fewer only at the end of the file. Throws data_error if the
    /// compressed data are corrupt, end too early or continue after their end.
    std::size_t read(char* to, std::size_t bytes) {
        std::size_t done = 0;
        while (done < bytes && !ended_)
            done += inflating_ ? inflated(to + done, bytes - done) : plain(to + done, bytes - done);
        return done;
    }

private:
    static constexpr std::size_t buffer_bytes = std::size_t{1} << 16;

    void start_inflating() {
        inflating_ = std::make_unique<io::detail::inflater>(
            kind_ == record_compression::gzip ? io::deflate_frame::gzip : io::deflate_frame::zlib, what_);
    }
    // Reads another part of the file, which fills the buffer or ends the file.
    std::size_t fill() {
        const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(packed_.size(), file_.size() - at_));
        file_.read(packed_.data(), part, at_);
        at_ += part;
        return part;
    }
    std::size_t plain(char* to, std::size_t bytes) {
        if (given_ == filled_) {
            filled_ = fill();
            given_ = 0;
            ended_ = filled_ == 0;
        }
        const std::size_t part = std::min(bytes, filled_ - given_);
        std::copy_n(reinterpret_cast<const char*>(packed_.data()) + given_, part, to);
        given_ += part;
        return part;
    }
    std::size_t inflated(char* to, std::size_t bytes) {
        if (inflating_->unread() == 0) inflating_->feed(packed_.data(), fill());
        const std::size_t got = inflating_->take(reinterpret_cast<std::byte*>(to), bytes);
        const bool more = inflating_->unread() > 0 || at_ < file_.size();
        if (inflating_->ended()) {
            ended_ = !more;
            if (more && kind_ != record_compression::gzip)
                throw data_error(what_ + ": bytes after the end of the deflate data");
            if (more) inflating_->again();
        } else if (got == 0 && !more) {
            throw data_error(what_ + ": truncated deflate data");
        }
        return got;
    }

    io::input_file file_;
    std::string what_;
    std::vector<std::byte> packed_;
    std::unique_ptr<io::detail::inflater> inflating_;
    std::uint64_t at_ = 0;               ///< position in the file
    std::size_t given_ = 0, filled_ = 0; ///< positions in the buffer, without compression
    record_compression kind_ = record_compression::none;
    bool ended_ = false;
};

} // namespace detail

/// The records of a file in their order. Besides the current record it holds 64 KiB of the file
/// and, for compressed ones, zlib's window.
class record_stream {
public:
    /// Throws data_error if the file is missing or cannot be read.
    explicit record_stream(const files::path& path, const record_stream_options& options = {})
        : bytes_(std::make_unique<detail::record_byte_source>(path, options.compression)), options_(options) {}

    /// Reads the next record's data; returns false after the last one. Throws data_error naming
    /// file, record and byte (of the decompressed data) for a record that is damaged, incomplete or
    /// longer than options.longest.
    bool next(std::string& data) {
        start_ += size_of_last_;
        number_ += size_of_last_ > 0 ? 1 : 0;
        size_of_last_ = 0;
        char head[io::record_head_bytes] = {};
        std::uint64_t there = bytes_->read(head, sizeof head);
        data.clear();
        if (there == 0) return false;
        const std::uint64_t length = io::record_length(head, there < sizeof head ? there : ~std::uint64_t{0}, place());
        if (length > options_.longest)
            throw data_error(place().text() + ": it has " + std::to_string(length) + " bytes of data, more than " +
                             std::to_string(options_.longest));
        // Memory grows with the bytes read, whatever the length says.
        while (data.size() < length) {
            const std::size_t done = data.size();
            const auto part = static_cast<std::size_t>(
                std::min<std::uint64_t>(length - done, std::max<std::size_t>(std::size_t{1} << 20, done)));
            data.resize(done + part);
            const std::size_t got = bytes_->read(data.data() + done, part);
            there += got;
            // Which reports the missing part.
            if (got < part) static_cast<void>(io::record_length(head, there, place()));
        }
        char tail[io::record_tail_bytes] = {};
        there += bytes_->read(tail, sizeof tail);
        static_cast<void>(io::record_length(head, there, place()));
        if (options_.check) io::check_record(data, tail, place());
        size_of_last_ = there;
        return true;
    }
    /// The place of the record that next() returned, or failed to read.
    io::record_place place() const { return {bytes_->path(), number_, start_}; }

private:
    std::unique_ptr<detail::record_byte_source> bytes_;
    record_stream_options options_;
    std::uint64_t number_ = 0, start_ = 0, size_of_last_ = 0;
};

namespace detail {

struct record_stream_source {
    std::shared_ptr<const std::vector<std::string>> paths;
    record_stream_options options;
    static constexpr const char* name = "records";

    class reader {
    public:
        explicit reader(const record_stream_source& source) : paths_(source.paths), options_(source.options) {}
        std::optional<std::string> next() {
            for (;;) {
                if (!in_) {
                    if (file_ == paths_->size()) return std::nullopt;
                    in_.emplace((*paths_)[file_++], options_);
                }
                std::string data;
                if (in_->next(data)) return data;
                in_.reset();
            }
        }
        std::string origin() const { return in_ ? in_->place().text() : std::string(); }

    private:
        std::shared_ptr<const std::vector<std::string>> paths_;
        record_stream_options options_;
        std::size_t file_ = 0;
        std::optional<record_stream> in_;
    };
    reader open() const { return reader(*this); }
};

} // namespace detail

/// The data of all records of TFRecord files, one file after the other, as a set that is read
/// sequentially in every epoch: shuffling it needs a buffer. Throws like record_stream.
inline auto streamed_records(std::vector<std::string> paths, const record_stream_options& options = {}) {
    return from(
        detail::record_stream_source{std::make_shared<const std::vector<std::string>>(std::move(paths)), options});
}
inline auto streamed_records(std::string path, const record_stream_options& options = {}) {
    return streamed_records(std::vector<std::string>{std::move(path)}, options);
}

} // namespace tapegraph::data
