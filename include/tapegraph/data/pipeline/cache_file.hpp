#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/data/pipeline/set.hpp>
#include <tapegraph/data/pipeline/stored_element.hpp>
#include <tapegraph/formats/crc32c.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/path.hpp>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

/// Caches elements in a file.
///
///     "TGCACHE1", type (length, text), then per element its bytes and their crc32c, then the offset of each (u64)
///     and of the end of the last one, their number (u64), "TGCACHE1". Numbers are in the machine's byte order: the
///     file is for the machine that wrote it.

namespace tapegraph::data {

namespace detail {

/// Elements in a complete file; several threads may read.
template <class E>
class cache_file {
public:
    explicit cache_file(files::path path) : path_(std::move(path)) {
        const std::uint64_t size = io::detail::file_size_of(path_);
        descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
        if (descriptor_ < 0) fail("cannot be opened");
        try {
            read_index(size);
        } catch (...) {
            ::close(descriptor_);
            throw;
        }
    }
    cache_file(const cache_file&) = delete;
    cache_file& operator=(const cache_file&) = delete;
    ~cache_file() { ::close(descriptor_); }

    std::int64_t size() const { return static_cast<std::int64_t>(places_.size()) - 1; }
    /// Throws data_error for an element whose bytes differ from those written.
    E at(std::int64_t i) const {
        const std::uint64_t first = places_[static_cast<std::size_t>(i)],
                            end = places_[static_cast<std::size_t>(i) + 1];
        const std::string bytes = read(first, end - first);
        std::uint32_t sum = 0;
        const std::size_t length = bytes.size() - sizeof sum;
        std::memcpy(&sum, bytes.data() + length, sizeof sum);
        if (sum != io::crc32c(bytes.data(), length)) fail_at(i, first, "the checksum differs");
        stored_reader from{std::string_view(bytes).substr(0, length)};
        E e{};
        if (!stored<E>::get(from, e) || !from.left.empty()) fail_at(i, first, "the values do not fill its bytes");
        return e;
    }

    static constexpr std::string_view magic = "TGCACHE1";
    static std::string head() {
        const std::string type = stored<E>::type();
        std::string text(magic);
        put_number<std::uint64_t>(text, type.size());
        return text += type;
    }

private:
    void read_index(std::uint64_t size) {
        constexpr std::uint64_t tail = 8 + 8; // number of elements, magic number
        const std::string start = head();
        std::uint64_t count = 0;
        if (size < 8 + 8 + 8 + tail) fail("is not a cache: " + std::to_string(size) + " bytes");
        const std::string end = read(size - tail, tail);
        if (end.substr(8) != magic) fail("is not a cache, or is truncated: its end is not that of a cache");
        if (size < start.size() + 8 + tail || read(0, start.size()) != start)
            fail("is not a cache of elements of type " + stored<E>::type());
        std::memcpy(&count, end.data(), 8);
        if (count > (size - tail - start.size()) / 8 - 1)
            fail("has no room for the " + std::to_string(count) + " elements it says");
        const std::uint64_t index = size - tail - 8 * (count + 1);
        places_.resize(count + 1);
        const std::string bytes = read(index, 8 * (count + 1));
        std::memcpy(places_.data(), bytes.data(), bytes.size());
        std::uint64_t before = start.size();
        for (std::size_t i = 0; i < places_.size(); ++i) {
            const bool valid = i == 0 ? places_[i] == before : places_[i] >= before + 4;
            if (!valid || places_[i] > index)
                fail("element " + std::to_string(i) + " begins at an invalid byte, " + std::to_string(places_[i]));
            before = places_[i];
        }
        if (before != index)
            fail("its elements end at byte " + std::to_string(before) + ", not " + std::to_string(index));
    }
    std::string read(std::uint64_t at, std::uint64_t bytes) const {
        std::string text(bytes, '\0');
        for (std::size_t done = 0; done < text.size();) {
            const auto now =
                ::pread(descriptor_, text.data() + done, text.size() - done, static_cast<::off_t>(at + done));
            if (now < 0 && errno == EINTR) continue;
            if (now <= 0) fail("cannot be read at byte " + std::to_string(at + done));
            done += static_cast<std::size_t>(now);
        }
        return text;
    }
    [[noreturn]] void fail(const std::string& why) const { throw data_error(io::detail::quoted(path_) + ": " + why); }
    [[noreturn]] void fail_at(std::int64_t i, std::uint64_t byte, const char* why) const {
        fail("element " + std::to_string(i) + " at byte " + std::to_string(byte) + ": " + why);
    }

    files::path path_;
    int descriptor_ = -1;
    std::vector<std::uint64_t> places_;
};

template <class E>
class file_store {
public:
    using kept = cache_file<E>;
    explicit file_store(files::path path) // NOLINT(performance-unnecessary-value-param): it is moved
        : held_(std::make_shared<state>()) {
        held_->path = std::move(path);
    }

    /// Writes a temporary file next to its place until it is complete.
    class writer {
    public:
        explicit writer(const file_store& to)
            : to_(&to), file_(std::make_unique<io::atomic_file>(to.held_->path)), bytes_(kept::head()) {
            places_.push_back(bytes_.size());
        }
        void add(const E& e) {
            const std::size_t first = bytes_.size();
            stored<E>::put(bytes_, e);
            put_number(bytes_, io::crc32c(bytes_.data() + first, bytes_.size() - first));
            places_.push_back(places_.back() + bytes_.size() - first);
            if (bytes_.size() >= (std::size_t{1} << 20)) flush();
        }
        void finish() {
            for (const std::uint64_t place : places_) put_number(bytes_, place);
            put_number<std::uint64_t>(bytes_, places_.size() - 1);
            bytes_ += kept::magic;
            flush();
            file_->commit();
            static_cast<void>(to_->whole());
        }

    private:
        void flush() {
            file_->write(bytes_);
            bytes_.clear();
        }
        const file_store* to_;
        std::unique_ptr<io::atomic_file> file_;
        std::string bytes_;
        std::vector<std::uint64_t> places_;
    };
    std::shared_ptr<const kept> whole() const {
        const std::lock_guard lock(held_->mutex);
        std::error_code none;
        if (!held_->whole && files::exists(held_->path, none)) held_->whole = std::make_shared<const kept>(held_->path);
        return held_->whole;
    }

private:
    struct state {
        std::mutex mutex;
        files::path path;
        std::shared_ptr<const kept> whole;
    };
    std::shared_ptr<state> held_;
};

} // namespace detail

/// For set.cache(): keeps elements in a file, which appears once an epoch is complete, and which
/// later runs read. The file does not depend on the functions that made its elements: delete it
/// when these change. Throws data_error for a file that is damaged or has other elements.
struct in_file {
    files::path path;
    template <class E>
    using store = detail::file_store<E>;
    /// The store of elements of type E that a cache fills and reads.
    template <class E>
    store<E> make() const {
        io::detail::remove_unfinished_once(path.parent_path());
        return store<E>(path);
    }
};

} // namespace tapegraph::data
