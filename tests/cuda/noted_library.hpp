#pragma once

#include <cuda/calls.hpp>

#include <tapegraph/cuda/launch_bytes.hpp>
#include <tapegraph/cuda/ops/cumulative/library_scan.hpp>
#include <tapegraph/cuda/ops/ordering/sort.cuh>

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

/// Records the calls of the library that sorts long rows and scans long lines: CUB on a GPU, an
/// imitated one on the executor.

namespace tapegraph::testing {

struct library_call {
    std::string operation;
    std::int64_t count;
    int bits;

    bool operator==(const library_call&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const library_call& c) {
        return out << c.operation << " of " << c.count << " by " << c.bits << " bits";
    }
};

#ifdef TG_SIMT
/// Does exactly what library_sort promises: reads no other bits, and overwrites everything else
/// that it is given.
template <class Key>
struct imitated_library {
    using pair = cuda::kernels::sort_pair<Key>;

    static std::size_t scratch_bytes(std::int64_t count, int) { return static_cast<std::size_t>(count) / 8 + 1; }
    static pair* sort(const char*, void* stream, pair* pairs, pair* other, std::int64_t count, int bits, void* scratch,
                      std::size_t bytes) {
        pair* const to = (bits + 7) / 8 % 2 == 0 ? pairs : other;
        cuda::driver::enqueue(static_cast<cuda::driver::stream>(stream), [=] {
            const int width = 8 * static_cast<int>(sizeof(Key)), of_key = std::min(bits, width);
            const auto lowest = [](auto x, int count) {
                return count == 0 ? decltype(x){} : static_cast<decltype(x)>(x << (8 * sizeof x - count));
            };
            const auto seen = [&](const pair& p) {
                return std::pair(lowest(p.position, bits - of_key), lowest(p.key, of_key));
            };
            std::vector<pair> sorted(pairs, pairs + count);
            std::stable_sort(sorted.begin(), sorted.end(),
                             [&](const pair& a, const pair& b) { return seen(a) < seen(b); });
            std::fill(pairs, pairs + count, pair{Key{12345}, 1});
            std::fill(other, other + count, pair{Key{54321}, 2});
            std::memset(scratch, 0x7E, bytes);
            std::copy(sorted.begin(), sorted.end(), to);
        });
        return to;
    }
};
#endif

/// While it lives, its library sorts the rows for which radix passes move fewer bytes, with a
/// launch counted as a given number of bytes.
template <class Key>
class noted_library {
public:
    static inline std::vector<library_call> calls;

    explicit noted_library(std::int64_t bytes_per_launch = 0)
        : launches_(cuda::detail::bytes_per_launch, bytes_per_launch),
          set_(cuda::sort_of_library<Key>, {under().scratch_bytes, &note}) {
        calls.clear();
    }

    static bool linked() { return under().sort != nullptr; }

private:
    using pair = cuda::kernels::sort_pair<Key>;

    static const cuda::library_sort<Key>& under() {
#ifdef TG_SIMT
        static const cuda::library_sort<Key> it{&imitated_library<Key>::scratch_bytes, &imitated_library<Key>::sort};
#else
        static const cuda::library_sort<Key> it = cuda::sort_of_library<Key>;
#endif
        return it;
    }

    static pair* note(const char* operation, void* stream, pair* pairs, pair* other, std::int64_t count, int bits,
                      void* scratch, std::size_t bytes) {
        CHECK(bytes >= under().scratch_bytes(count, bits));
        calls.push_back({operation, count, bits});
        return under().sort(operation, stream, pairs, other, count, bits, scratch, bytes);
    }

    with_value<std::int64_t> launches_;
    with_value<cuda::library_sort<Key>> set_;
};

struct rows_call {
    std::string operation;
    std::int64_t rows, length;
    int bits;

    bool operator==(const rows_call&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const rows_call& c) {
        return out << c.operation << " of " << c.rows << " rows of " << c.length << " by " << c.bits << " bits";
    }
};

#ifdef TG_SIMT
template <class Key>
struct imitated_rows {
    using pair = cuda::kernels::sort_pair<Key>;

    static std::size_t scratch_bytes(std::int64_t rows, std::int64_t, int bits) {
        return static_cast<std::size_t>(rows + bits);
    }
    static pair* sort(const char* operation, void* stream, pair* pairs, pair* other, std::int64_t rows,
                      std::int64_t length, int bits, void* scratch, std::size_t bytes) {
        pair* sorted = nullptr;
        for (std::int64_t begin = 0; begin < rows * length; begin += length)
            sorted = imitated_library<Key>::sort(operation, stream, pairs + begin, other + begin, length, bits, scratch,
                                                 bytes) -
                     begin;
        return sorted;
    }
};
#endif

/// While it lives, its library sorts `least` or more rows side by side where that moves fewer
/// bytes, and all others as before.
template <class Key>
class noted_rows {
public:
    static inline std::vector<rows_call> calls;

    explicit noted_rows(std::int64_t least)
        : least_(cuda::detail::rows_of_blocks, least),
          set_(cuda::sort_of_library<Key>,
               {under().scratch_bytes, under().sort, under().scratch_bytes_of_rows, &note}) {
        calls.clear();
    }
    static bool linked() { return under().sort_rows != nullptr; }

private:
    using pair = cuda::kernels::sort_pair<Key>;

    static const cuda::library_sort<Key>& under() {
#ifdef TG_SIMT
        static const cuda::library_sort<Key> it{&imitated_library<Key>::scratch_bytes, &imitated_library<Key>::sort,
                                                &imitated_rows<Key>::scratch_bytes, &imitated_rows<Key>::sort};
#else
        static const cuda::library_sort<Key> it = cuda::sort_of_library<Key>;
#endif
        return it;
    }
    static pair* note(const char* operation, void* stream, pair* pairs, pair* other, std::int64_t rows,
                      std::int64_t length, int bits, void* scratch, std::size_t bytes) {
        CHECK(bytes >= under().scratch_bytes_of_rows(rows, length, bits));
        calls.push_back({operation, rows, length, bits});
        return under().sort_rows(operation, stream, pairs, other, rows, length, bits, scratch, bytes);
    }

    with_value<std::int64_t> least_;
    with_value<cuda::library_sort<Key>> set_;
};

struct scan_call {
    std::string operation;
    bool product, exclusive;
    std::int64_t count;

    bool operator==(const scan_call&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const scan_call& c) {
        return out << c.operation << (c.product ? " of products" : " of sums")
                   << (c.exclusive ? ", exclusive, of " : " of ") << c.count;
    }
};

#ifdef TG_SIMT
template <class Word>
struct imitated_scan {
    static std::size_t scratch_bytes(cuda::scan_way way, std::int64_t count) {
        return static_cast<std::size_t>(count) / 16 + (way.exclusive ? 2 : 1);
    }
    static void scan(const char*, void* stream, cuda::scan_way way, const Word* x, Word* y, std::int64_t count,
                     void* scratch, std::size_t bytes) {
        cuda::driver::enqueue(static_cast<cuda::driver::stream>(stream), [=] {
            Word total = way.product ? 1 : 0;
            for (std::int64_t i = 0; i < count; ++i) {
                const Word next = way.product ? total * x[i] : total + x[i];
                y[i] = way.exclusive ? total : next;
                total = next;
            }
            std::memset(scratch, 0x7E, bytes);
        });
    }
};
#endif

/// While it lives, its library scans the lines for which it moves fewer bytes, with a launch
/// counted as a given number of bytes.
template <class Word>
class noted_scan {
public:
    static inline std::vector<scan_call> calls;

    explicit noted_scan(std::int64_t bytes_per_launch = 0)
        : launches_(cuda::detail::bytes_per_launch, bytes_per_launch),
          set_(cuda::scan_of_library<Word>, {under().scratch_bytes, &note}) {
        calls.clear();
    }

    static bool linked() { return under().scan != nullptr; }

private:
    static const cuda::library_scan<Word>& under() {
#ifdef TG_SIMT
        static const cuda::library_scan<Word> it{&imitated_scan<Word>::scratch_bytes, &imitated_scan<Word>::scan};
#else
        static const cuda::library_scan<Word> it = cuda::scan_of_library<Word>;
#endif
        return it;
    }

    static void note(const char* operation, void* stream, cuda::scan_way way, const Word* x, Word* y,
                     std::int64_t count, void* scratch, std::size_t bytes) {
        CHECK(bytes == under().scratch_bytes(way, count));
        calls.push_back({operation, way.product, way.exclusive, count});
        under().scan(operation, stream, way, x, y, count, scratch, bytes);
    }

    with_value<std::int64_t> launches_;
    with_value<cuda::library_scan<Word>> set_;
};

} // namespace tapegraph::testing
