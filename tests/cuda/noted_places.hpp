#pragma once

#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/movement/library_sequence.hpp>
#include <tapegraph/cuda/ops/ordering/library_places.hpp>
#include <tapegraph/ops/ordering/cpu_places.hpp>

#include <algorithm>
#include <string>
#include <vector>

/// Records the calls of the libraries that find positions: CUB and Thrust on a GPU, imitated ones
/// on the executor.

namespace tapegraph::testing {

/// The algorithms that were called, with the number of elements.
inline std::vector<std::string> places_calls;

#ifdef TG_SIMT
namespace imitated_places {

template <class F>
void in_order(void* stream, const F& f) {
    cuda::driver::enqueue(static_cast<cuda::driver::stream>(stream), f);
}
inline std::size_t scratch_bytes(std::int64_t count) { return static_cast<std::size_t>(count) / 16 + 5; }
inline std::size_t table_bytes(std::int64_t count, std::int64_t length) {
    return static_cast<std::size_t>(count / 32 + length) + 3;
}
inline void select(const char*, void* stream, const std::uint8_t* marks, std::int32_t* out, std::int64_t count,
                   std::int64_t size, void* scratch, std::size_t bytes) {
    in_order(stream, [=] {
        std::int64_t found = 0;
        for (std::int64_t i = 0; i < count; ++i)
            if (marks[i] != 0 && found++ < size) out[found - 1] = static_cast<std::int32_t>(i + 1);
        std::memset(scratch, 0x7E, bytes);
    });
}
inline void encode(const char*, void* stream, const std::int32_t* x, std::int32_t* out, std::int64_t count,
                   std::int64_t size, void* scratch, std::size_t bytes) {
    in_order(stream, [=] {
        std::int64_t run = -1;
        for (std::int64_t i = 0; i < count; ++i) {
            if (i == 0 || x[i] != x[i - 1])
                if (++run < size) out[run] = 0;
            if (run < size) ++out[run];
        }
        std::memset(scratch, 0x7E, bytes);
    });
}
inline void count_places(const char*, void* stream, const std::int32_t* x, std::int32_t* out, std::int64_t count,
                         std::int64_t length, void* scratch, std::size_t bytes) {
    in_order(stream, [=] {
        cpu::count_places(1, count, length, x, out);
        std::memset(scratch, 0x7E, bytes);
    });
}
inline bool usable() { return true; }
template <class T>
void search(const char*, void* stream, bool right, const T* sorted, std::int64_t n, const T* values, std::int64_t m,
            std::int32_t* out) {
    in_order(stream, [=] {
        const auto before = [](T a, T b) { return tapegraph::detail::stands_before(a, b); };
        for (std::int64_t i = 0; i < m; ++i)
            out[i] = static_cast<std::int32_t>((right ? std::upper_bound(sorted, sorted + n, values[i], before)
                                                      : std::lower_bound(sorted, sorted + n, values[i], before)) -
                                               sorted);
    });
}

template <class Word>
void sequence(const char*, void* stream, Word* out, std::int64_t count, Word begin, Word step) {
    in_order(stream, [=] {
        for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Word>(begin + step * static_cast<Word>(i));
    });
}

} // namespace imitated_places
#endif

/// The functions registered in a slot on a GPU, where the library is linked; on the executor the
/// imitated ones.
template <class Slot>
const Slot& library_under([[maybe_unused]] const Slot& slot, [[maybe_unused]] const Slot& imitated) {
#ifdef TG_SIMT
    static const Slot it = imitated;
#else
    static const Slot it = slot;
#endif
    return it;
}
#ifdef TG_SIMT
#define TG_IMITATED(...)                                                                                               \
    { __VA_ARGS__ }
#else
#define TG_IMITATED(...)                                                                                               \
    {}
#endif

/// Records the calls of the libraries while it lives. T: the type of the elements that are
/// searched.
template <class T>
class noted_places {
public:
    noted_places()
        : selection_(cuda::selection_of_library, {selection().scratch_bytes, &select}),
          runs_(cuda::runs_of_library, {runs().scratch_bytes, &encode}),
          histogram_(cuda::histogram_of_library, {histogram().scratch_bytes, &count}),
          search_(cuda::search_of_library<T>, {searches().usable, &search}) {
        places_calls.clear();
    }
    static bool linked() {
        return selection().select != nullptr && runs().encode != nullptr && histogram().count != nullptr &&
               searches().search != nullptr && searches().usable();
    }

private:
    static const cuda::library_selection& selection() {
        return library_under<cuda::library_selection>(
            cuda::selection_of_library, TG_IMITATED(&imitated_places::scratch_bytes, &imitated_places::select));
    }
    static const cuda::library_runs& runs() {
        return library_under<cuda::library_runs>(
            cuda::runs_of_library, TG_IMITATED(&imitated_places::scratch_bytes, &imitated_places::encode));
    }
    static const cuda::library_histogram& histogram() {
        return library_under<cuda::library_histogram>(
            cuda::histogram_of_library, TG_IMITATED(&imitated_places::table_bytes, &imitated_places::count_places));
    }
    static const cuda::library_search<T>& searches() {
        return library_under<cuda::library_search<T>>(
            cuda::search_of_library<T>, TG_IMITATED(&imitated_places::usable, &imitated_places::search<T>));
    }
    static void note(const char* algorithm, std::int64_t count) {
        places_calls.push_back(algorithm + (" of " + std::to_string(count)));
    }

    static void select(const char* operation, void* stream, const std::uint8_t* marks, std::int32_t* out,
                       std::int64_t count, std::int64_t size, void* scratch, std::size_t bytes) {
        CHECK(bytes == selection().scratch_bytes(count));
        note("select", count);
        selection().select(operation, stream, marks, out, count, size, scratch, bytes);
    }
    static void encode(const char* operation, void* stream, const std::int32_t* x, std::int32_t* out,
                       std::int64_t count, std::int64_t size, void* scratch, std::size_t bytes) {
        CHECK(bytes == runs().scratch_bytes(count));
        note("encode", count);
        runs().encode(operation, stream, x, out, count, size, scratch, bytes);
    }
    static void count(const char* operation, void* stream, const std::int32_t* x, std::int32_t* out, std::int64_t count,
                      std::int64_t length, void* scratch, std::size_t bytes) {
        CHECK(bytes == histogram().scratch_bytes(count, length));
        note("histogram", count);
        histogram().count(operation, stream, x, out, count, length, scratch, bytes);
    }
    static void search(const char* operation, void* stream, bool right, const T* sorted, std::int64_t n,
                       const T* values, std::int64_t m, std::int32_t* out) {
        note(right ? "upper_bound" : "lower_bound", m);
        searches().search(operation, stream, right, sorted, n, values, m, out);
    }

    with_value<cuda::library_selection> selection_;
    with_value<cuda::library_runs> runs_;
    with_value<cuda::library_histogram> histogram_;
    with_value<cuda::library_search<T>> search_;
};

template <class Word>
class noted_sequence {
public:
    noted_sequence() : set_(cuda::sequence_of_library<Word>, {under().usable, &sequence}) { places_calls.clear(); }
    static bool linked() { return under().sequence != nullptr && under().usable(); }

private:
    static const cuda::library_sequence<Word>& under() {
        return library_under<cuda::library_sequence<Word>>(
            cuda::sequence_of_library<Word>, TG_IMITATED(&imitated_places::usable, &imitated_places::sequence<Word>));
    }
    static void sequence(const char* operation, void* stream, Word* out, std::int64_t count, Word begin, Word step) {
        places_calls.push_back("sequence of " + std::to_string(count));
        under().sequence(operation, stream, out, count, begin, step);
    }

    with_value<cuda::library_sequence<Word>> set_;
};
#undef TG_IMITATED

/// Removes the libraries while it lives.
template <class T>
class own_places {
    with_value<cuda::library_selection> selection_{cuda::selection_of_library, {}};
    with_value<cuda::library_runs> runs_{cuda::runs_of_library, {}};
    with_value<cuda::library_histogram> histogram_{cuda::histogram_of_library, {}};
    with_value<cuda::library_search<T>> search_{cuda::search_of_library<T>, {}};
};

} // namespace tapegraph::testing
