#pragma once

#include <cuda/calls.hpp>

#include <tapegraph/cuda/library_reduction.hpp>

#include <ostream>
#include <string>
#include <vector>

/// Records the calls of the library that reduces whole tensors: CUB on a GPU, an imitated one on
/// the executor.

namespace tapegraph::testing {

struct reduction_call {
    std::string operation;
    std::int64_t count;

    bool operator==(const reduction_call&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const reduction_call& c) {
        return out << c.operation << " of " << c.count;
    }
};

/// Reads from the last element on, and overwrites its scratch memory: no result may depend on
/// either.
template <class T>
struct imitated_reduction {
    static std::size_t scratch_bytes(reduction kind, std::int64_t count) {
        return static_cast<std::size_t>(count) / 32 + (kind == reduction::sum ? 2 : 1);
    }
    static T folded(reduction kind, const T* x, std::int64_t count) {
        using tapegraph::detail::combine, tapegraph::detail::identity;
        const auto all = [&](auto with) {
            constexpr reduction by = decltype(with)::value;
            T total = identity<by, T>;
            for (std::int64_t i = count; i-- > 0;) combine<by>(total, x[i]);
            return total;
        };
        switch (kind) {
        case reduction::sum: return all(std::integral_constant<reduction, reduction::sum>());
        case reduction::product: return all(std::integral_constant<reduction, reduction::product>());
        case reduction::maximum: return all(std::integral_constant<reduction, reduction::maximum>());
        default: return all(std::integral_constant<reduction, reduction::minimum>());
        }
    }
#ifdef TG_SIMT
    static void reduce(const char*, void* stream, reduction kind, const T* x, T* out, std::int64_t count, void* scratch,
                       std::size_t bytes) {
        cuda::driver::enqueue(static_cast<cuda::driver::stream>(stream), [=] {
            *out = folded(kind, x, count);
            std::memset(scratch, 0x7E, bytes);
        });
    }
#endif
};

template <class T>
struct imitated_search {
    static std::size_t scratch_bytes(bool maximum, std::int64_t count) {
        return static_cast<std::size_t>(count) / 32 + (maximum ? 2 : 1);
    }
    static std::int32_t found(bool maximum, const T* x, std::int64_t count) {
        std::int64_t best = count - 1;
        for (std::int64_t i = count - 1; i-- > 0;) {
            const bool nan = x[i] != x[i], best_nan = x[best] != x[best];
            if (nan || (!best_nan && (maximum ? x[i] >= x[best] : x[i] <= x[best]))) best = i;
        }
        return static_cast<std::int32_t>(best);
    }
#ifdef TG_SIMT
    static void find(const char*, void* stream, bool maximum, const T* x, std::int32_t* out, std::int64_t count,
                     void* scratch, std::size_t bytes) {
        cuda::driver::enqueue(static_cast<cuda::driver::stream>(stream), [=] {
            *out = found(maximum, x, count);
            std::memset(scratch, 0x7E, bytes);
        });
    }
#endif
};

/// Records the calls of the library while it lives.
template <class T>
class noted_reduction {
public:
    static inline std::vector<reduction_call> calls;

    noted_reduction() : set_(cuda::reduction_of_library<T>, {under().scratch_bytes, &note}) { calls.clear(); }
    static bool linked() { return under().reduce != nullptr; }

private:
    static const cuda::library_reduction<T>& under() {
#ifdef TG_SIMT
        static const cuda::library_reduction<T> it{&imitated_reduction<T>::scratch_bytes,
                                                   &imitated_reduction<T>::reduce};
#else
        static const cuda::library_reduction<T> it = cuda::reduction_of_library<T>;
#endif
        return it;
    }
    static void note(const char* operation, void* stream, reduction kind, const T* x, T* out, std::int64_t count,
                     void* scratch, std::size_t bytes) {
        CHECK(bytes == under().scratch_bytes(kind, count));
        calls.push_back({operation, count});
        under().reduce(operation, stream, kind, x, out, count, scratch, bytes);
    }

    with_value<cuda::library_reduction<T>> set_;
};

template <class T>
class noted_search {
public:
    static inline std::vector<reduction_call> calls;

    noted_search() : set_(cuda::arg_reduction_of_library<T>, {under().scratch_bytes, &note}) { calls.clear(); }
    static bool linked() { return under().find != nullptr; }

private:
    static const cuda::library_arg_reduction<T>& under() {
#ifdef TG_SIMT
        static const cuda::library_arg_reduction<T> it{&imitated_search<T>::scratch_bytes, &imitated_search<T>::find};
#else
        static const cuda::library_arg_reduction<T> it = cuda::arg_reduction_of_library<T>;
#endif
        return it;
    }
    static void note(const char* operation, void* stream, bool maximum, const T* x, std::int32_t* out,
                     std::int64_t count, void* scratch, std::size_t bytes) {
        CHECK(bytes == under().scratch_bytes(maximum, count));
        calls.push_back({operation, count});
        under().find(operation, stream, maximum, x, out, count, scratch, bytes);
    }

    with_value<cuda::library_arg_reduction<T>> set_;
};

} // namespace tapegraph::testing
