#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace simt {

/// A kernel with its arguments, without their types: the arguments are bytes, as in a launch of CUDA. So what launches, queues and
/// runs kernels is compiled once, not for every kernel.
class bound_kernel {
public:
    template <class... P, class... A>
    explicit bound_kernel(void (*kernel)(P...), A&&... arguments)
        : address_(reinterpret_cast<void (*)()>(kernel)), call_(&call<P...>) {
        static_assert((std::is_trivially_copyable_v<P> && ...), "the arguments of a kernel are copied as bytes");
        static_assert(((alignof(P) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) && ...));
        bytes_.resize(layout<P...>()[sizeof...(P)]);
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            (put(layout<P...>()[I], static_cast<P>(std::forward<A>(arguments))), ...);
        }
        (std::index_sequence_for<P...>{});
    }
    const void* address() const { return reinterpret_cast<const void*>(address_); }
    /// Calls the kernel as one thread, which has its own copies of the arguments.
    void run() const { call_(*this); }

private:
    // The places of the arguments, and the number of bytes.
    template <class... P>
    static constexpr std::array<std::size_t, sizeof...(P) + 1> layout() {
        std::array<std::size_t, sizeof...(P) + 1> places{};
        [[maybe_unused]] std::size_t at = 0, i = 0;
        ((at = (at + alignof(P) - 1) / alignof(P) * alignof(P), places[i++] = at, at += sizeof(P)), ...);
        places[sizeof...(P)] = at;
        return places;
    }
    template <class T>
    void put(std::size_t at, const T& value) {
        std::memcpy(bytes_.data() + at, &value, sizeof(T));
    }
    template <class... P>
    static void call(const bound_kernel& it) {
        [[maybe_unused]] static constexpr auto places = layout<P...>();
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            reinterpret_cast<void (*)(P...)>(it.address_)(*reinterpret_cast<const P*>(it.bytes_.data() + places[I])...);
        }
        (std::index_sequence_for<P...>{});
    }

    void (*address_)();
    void (*call_)(const bound_kernel&);
    std::vector<std::byte> bytes_;
};

} // namespace simt
