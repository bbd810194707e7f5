#pragma once

#include <cuda/device_array.hpp>

#include <tapegraph/cuda/fault.cuh>
#include <tapegraph/cuda/kernel.cuh>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

/// Runs one call with the CPU's kernel and with the device's. Results and scratch memory lie
/// between guards and are poisoned first.

namespace tapegraph::testing {

using extents = std::vector<std::int64_t>;

/// Memory with guards on both sides. `shift` is the number of bytes by which it misses an alignment
/// of 64.
class guarded {
public:
    guarded(bool on_device, std::size_t bytes, std::size_t shift = 0, const std::vector<unsigned char>& values = {})
        : bytes_(bytes), memory_(bytes + shift + 3 * guard, guard_byte) {
        begin_ = guard + (guard - reinterpret_cast<std::uintptr_t>(memory_.data()) % guard) % guard + shift;
        if (on_device) begin_ = guard + shift; // device_array is aligned
        std::memset(memory_.data() + begin_, 0xFF, bytes);
        if (!values.empty()) std::memcpy(memory_.data() + begin_, values.data(), bytes);
        if (on_device) device_ = std::make_unique<on_device::device_array<unsigned char>>(memory_);
    }
    void* data() { return (device_ ? device_->data() : memory_.data()) + begin_; }
    /// After the kernel: copies the device's memory back and checks the guards.
    bool intact() {
        if (device_) memory_ = device_->host();
        for (std::size_t i = 0; i < memory_.size(); ++i)
            if ((i < begin_ || i >= begin_ + bytes_) && memory_[i] != guard_byte) return false;
        return true;
    }
    std::vector<unsigned char> bytes() const { return {memory_.data() + begin_, memory_.data() + begin_ + bytes_}; }

private:
    static constexpr std::size_t guard = 64;
    static constexpr unsigned char guard_byte = 0x5C;
    std::size_t bytes_, begin_;
    std::vector<unsigned char> memory_;
    std::unique_ptr<on_device::device_array<unsigned char>> device_;
};

/// An operand, or the type and shape of a result.
struct argument {
    buffer_view view;
    std::vector<unsigned char> values;
    std::size_t shift = 0;
};
inline argument shaped(dtype type, const extents& e) {
    argument a;
    a.view.type = type;
    a.view.rank = static_cast<int>(e.size());
    for (std::size_t i = 0; i < e.size(); ++i) a.view.extents[i] = e[i];
    return a;
}
template <class E>
argument shaped(const extents& e) {
    return shaped(dtype_of<E>, e);
}
/// An argument with f(i) as element i.
template <class E, class F>
argument filled(const extents& e, const F& f) {
    argument a = shaped<E>(e);
    a.values.resize(a.view.bytes());
    for (std::int64_t i = 0; i < a.view.elements(); ++i) {
        const E value = static_cast<E>(f(i));
        std::memcpy(a.values.data() + static_cast<std::size_t>(i) * sizeof(E), &value, sizeof(E));
    }
    return a;
}
/// Unordered numbers in [0, below).
inline std::uint32_t scattered(std::int64_t i, std::uint32_t below, std::uint32_t seed = 1) {
    std::uint64_t x = (static_cast<std::uint64_t>(i) + 1) * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
    x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9ull;
    return static_cast<std::uint32_t>((x >> 32) * below >> 32);
}
/// Distinct elements, which a test recognises wherever they are moved.
template <class E>
argument distinct(const extents& e) {
    return filled<E>(e, [](std::int64_t i) { return static_cast<int>(i % 251); });
}
/// Numbers whose sum depends on the order.
template <class E>
argument uneven(const extents& e, std::uint32_t seed = 1) {
    return filled<E>(e, [&](std::int64_t i) {
        const double x = scattered(i, 20001, seed) - 10000.0;
        return std::is_integral_v<E> ? x : x / 997 * (i % 7 == 0 ? 1e3 : 1);
    });
}

/// The outcome of a call: the text of an error, or the bytes of the results.
struct outcome {
    std::string error;
    std::vector<std::vector<unsigned char>> out;

    template <class E>
    std::vector<E> values(std::size_t k = 0) const {
        std::vector<E> v(out[k].size() / sizeof(E));
        if (!v.empty()) std::memcpy(v.data(), out[k].data(), out[k].size());
        return v;
    }
};

template <class Op>
outcome run(bool on_device, const runtime::kernel_functions& kernel, const typename Op::attributes& attributes,
            const std::vector<argument>& in, const std::vector<argument>& out) {
    const auto words = [&] {
        if constexpr (attribute_words<Op> == 0)
            return std::int64_t{};
        else
            return attributes_to_words<Op>(attributes);
    }();
    std::vector<guarded> memory;
    std::vector<buffer_view> views;
    for (const auto* list : {&in, &out})
        for (const argument& a : *list) {
            memory.emplace_back(on_device, a.view.bytes(), a.shift, a.values);
            views.push_back(a.view);
            views.back().data = memory.back().data();
        }
    const on_device::device_array<cuda::device_fault> fault(std::vector<cuda::device_fault>(1));
    kernel_call call;
    call.in = views.data(), call.inputs = static_cast<int>(in.size());
    call.out = views.data() + in.size(), call.outputs = static_cast<int>(out.size());
    call.attributes = reinterpret_cast<const std::int64_t*>(&words);
    call.fault = on_device ? fault.data() : nullptr;
    outcome result;
    try {
        guarded scratch(on_device, kernel.workspace(call));
        call.workspace = scratch.data();
        kernel.run(call);
        CHECK(scratch.intact());
        const cuda::device_fault seen = fault.host()[0];
        CHECK(seen.lock == 0);
        cuda::throw_fault(seen);
    }
#ifdef TG_SIMT
    catch (const simt::error&) {
        throw;
    }
#endif
    catch (const error& e) {
        result.error = e.what();
    }
    for (std::size_t k = 0; k < memory.size(); ++k) {
        CHECK(memory[k].intact());
        if (k < in.size())
            CHECK(memory[k].bytes() == in[k].values);
        else
            result.out.push_back(memory[k].bytes());
    }
    return result;
}

template <class Op, class T>
outcome run_on_cpu(const typename Op::attributes& attributes, const std::vector<argument>& in,
                   const std::vector<argument>& out) {
    return run<Op>(false, runtime::kernel_for<Op, T>(), attributes, in, out);
}
template <class Op, class T>
outcome run_on_device(const typename Op::attributes& attributes, const std::vector<argument>& in,
                      const std::vector<argument>& out) {
    return run<Op>(true, cuda::kernel_for<Op, T>(), attributes, in, out);
}

/// The bits of a NaN among the results. Operations that move numbers keep those of their operand;
/// arithmetic on a GPU gives 0x7FFFFFFF (and its like in other types), on x86 those of an operand,
/// or 0xFFC00000 where no operand is NaN.
enum class nan_bits { kept, any };

/// Whether two results have the same bits, except for those of NaN.
template <class T>
bool same_numbers(const std::vector<unsigned char>& a, const std::vector<unsigned char>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t at = 0; at < a.size(); at += sizeof(T)) {
        T x{}, y{};
        std::memcpy(&x, a.data() + at, sizeof(T));
        std::memcpy(&y, b.data() + at, sizeof(T));
        if (std::memcmp(&x, &y, sizeof(T)) != 0 && (x == x || y == y)) return false;
    }
    return true;
}

/// Checks that both give the same bits, or report the same error, whichever thread runs first. Use
/// nan_bits::any only where all results are of T.
template <class Op, class T>
void check_same(const typename Op::attributes& attributes, const std::vector<argument>& in,
                const std::vector<argument>& out, nan_bits nans = nan_bits::kept) {
    const outcome want = run_on_cpu<Op, T>(attributes, in, out);
    on_device::in_orders([&] {
        const outcome got = run_on_device<Op, T>(attributes, in, out);
        CHECK(got.error == want.error);
        if (!want.error.empty()) return;
        if (nans == nan_bits::kept) {
            CHECK(got.out == want.out);
            return;
        }
        for (std::size_t k = 0; k < want.out.size(); ++k) CHECK(same_numbers<T>(got.out[k], want.out[k]));
    });
}

/// Sets a variable of the library for a scope.
template <class V>
class with_value {
public:
    with_value(V& variable, std::type_identity_t<V> value) : variable_(variable), before_(variable) {
        variable = value;
    }
    with_value(const with_value&) = delete;
    with_value& operator=(const with_value&) = delete;
    ~with_value() { variable_ = before_; }

private:
    V& variable_;
    V before_;
};

} // namespace tapegraph::testing
