#pragma once

#include <cuda/device_array.hpp>

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/half.hpp>

#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <type_traits>
#include <vector>

/// Builds calls of kernels for tests: operands filled with numbers, results filled with NaN, and
/// the same call for the CPU's kernel and the device's.

namespace cuda_test {

namespace tg = tapegraph;
using extents = std::vector<std::int64_t>;

inline std::int64_t size_of(const extents& e) {
    std::int64_t n = 1;
    for (std::int64_t x : e) n *= x;
    return n;
}

/// Numbers of either sign around zero, converted for unsigned elements and bool.
template <class T>
std::vector<T> numbers(std::int64_t count, unsigned seed, double most = 4) {
    std::vector<T> v(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < v.size(); ++i) {
        seed = seed * 1664525u + 1013904223u;
        const double x = (static_cast<double>(seed >> 8) / (1 << 23) - 1) * most;
        if constexpr (std::is_same_v<T, bool>)
            v[i] = x > 0;
        else if constexpr (std::is_unsigned_v<T>)
            v[i] = static_cast<T>(seed >> 9);
        else
            v[i] = static_cast<T>(x);
    }
    return v;
}

/// Whether two numbers are equal or both NaN.
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const T x = a[i], y = b[i];
        if (!(x == y) && (x == x || y == y)) return false;
    }
    return true;
}

class device_call {
public:
    tg::kernel_call call;

    device_call() { call.attributes = attributes_; }
    device_call(const device_call&) = delete;
    device_call& operator=(const device_call&) = delete;

    /// `shift` is the number of elements by which the operand misses an alignment of 64 bytes.
    template <class T>
    device_call& in(const extents& e, unsigned seed, double most = 4, int shift = 0) {
        const std::vector<T> v = numbers<T>(size_of(e), seed, most);
        void* const at = memory(v.size() * sizeof(T) + static_cast<std::size_t>(shift) * sizeof(T), 0x5A);
        T* const to = static_cast<T*>(at) + shift;
        for (std::size_t i = 0; i < v.size(); ++i) to[i] = v[i];
        in_.push_back(view(to, tg::dtype_of<T>, e));
        return update();
    }
    template <class T>
    device_call& in(const extents& e, const std::vector<T>& values) {
        T* const to = static_cast<T*>(memory(values.size() * sizeof(T), 0x5A));
        for (std::size_t i = 0; i < values.size(); ++i) to[i] = values[i];
        in_.push_back(view(to, tg::dtype_of<T>, e));
        return update();
    }
    template <class T>
    device_call& out(const extents& e, int shift = 0) {
        void* const at =
            memory((static_cast<std::size_t>(size_of(e)) + static_cast<std::size_t>(shift)) * sizeof(T), 0xFF);
        out_.push_back(view(static_cast<T*>(at) + shift, tg::dtype_of<T>, e));
        return update();
    }
    device_call& not_wanted(tg::dtype type, const extents& e) {
        out_.push_back(view(nullptr, type, e));
        return update();
    }
    /// Places result k in the memory of operand s.
    device_call& in_place(int k, int s) {
        out_[static_cast<std::size_t>(k)].data = in_[static_cast<std::size_t>(s)].data;
        return update();
    }
    device_call& domain(const extents& e) {
        call.domain = view(nullptr, tg::dtype::f32, e);
        return *this;
    }
    template <class Attributes>
    device_call& attributes(const Attributes& a) {
        static_assert(sizeof a <= sizeof attributes_);
        std::memcpy(attributes_, &a, sizeof a);
        return *this;
    }
    device_call& workspace(std::size_t bytes) {
        call.workspace = memory(bytes, 0xFF);
        return *this;
    }

    /// Calls run(call) with everything in device memory, then copies the results back.
    template <class F>
    void on_device(const F& run) {
#ifdef TG_SIMT // its memory is the host's
        run(call);
#else
        std::deque<::on_device::device_array<unsigned char>> remote;
        for (const block& m : memory_) remote.emplace_back(m.at, static_cast<std::int64_t>(m.bytes));
        const auto moved = [&](void* data) -> void* {
            const auto* const at = static_cast<unsigned char*>(data);
            for (std::size_t k = 0; k < memory_.size(); ++k)
                if (at >= memory_[k].at && at < memory_[k].at + memory_[k].bytes)
                    return remote[k].data() + (at - memory_[k].at);
            return nullptr;
        };
        std::vector<tg::buffer_view> in = in_, out = out_;
        for (auto* list : {&in, &out})
            for (tg::buffer_view& v : *list) v.data = moved(v.data);
        tg::kernel_call there = call;
        there.in = in.data(), there.out = out.data(), there.workspace = moved(call.workspace);
        run(there);
        for (std::size_t k = 0; k < memory_.size(); ++k) {
            const auto bytes = remote[k].host();
            std::memcpy(memory_[k].at, bytes.data(), bytes.size());
        }
#endif
    }

    template <class T>
    std::vector<T> result(int k = 0) const {
        const tg::buffer_view& v = out_[static_cast<std::size_t>(k)];
        const T* const from = v.as<const T>();
        return std::vector<T>(from, from + v.elements());
    }
    /// The bytes of everything that a kernel may have written to, and of the memory around it.
    std::vector<unsigned char> bytes() const {
        std::vector<unsigned char> all;
        for (const block& m : memory_) all.insert(all.end(), m.at, m.at + m.bytes);
        return all;
    }

private:
    static tg::buffer_view view(void* data, tg::dtype type, const extents& e) {
        tg::buffer_view v;
        v.data = data, v.type = type, v.rank = static_cast<int>(e.size());
        for (std::size_t i = 0; i < e.size(); ++i) v.extents[i] = e[i];
        return v;
    }
    void* memory(std::size_t bytes, unsigned char fill) {
        block& m = memory_.emplace_back();
        m.bytes = bytes + canary;
        m.all.assign(m.bytes + 64, fill);
        m.at = reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(m.all.data()) + 63) / 64 * 64);
        return m.at;
    }
    device_call& update() {
        call.in = in_.data(), call.inputs = static_cast<int>(in_.size());
        call.out = out_.data(), call.outputs = static_cast<int>(out_.size());
        return *this;
    }

    static constexpr std::size_t canary = 64;
    struct block {
        std::vector<unsigned char> all;
        unsigned char* at;
        std::size_t bytes;
    };
    std::deque<block> memory_;
    std::vector<tg::buffer_view> in_, out_;
    std::int64_t attributes_[8]{};
};

} // namespace cuda_test
