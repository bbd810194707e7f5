#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

/// Sums tensors that are each placed along an axis: every element of the result is written once.

namespace tapegraph::cpu {

namespace placed_detail {

inline constexpr int most_operands = 16;
inline constexpr std::int64_t piece_elements = 16384, parallel_elements = 32768;
// Up to so many elements finding segments takes longer than adding twice.
inline constexpr std::int64_t few_elements = 128;

/// Rows of the result, [axis, inner] as one run, are divided into segments, within which the same
/// operands have elements.
struct segment {
    std::int64_t begin, end;
    int operands;
    int operand[most_operands];
};

template <class T>
struct rows {
    int segments, operands;
    std::int64_t length;
    segment at[2 * most_operands + 1]; // not initialized, which would slow down calls of few elements
    const T* in[most_operands];
    std::int64_t begin[most_operands], width[most_operands];

    void cut() {
        std::int64_t border[2 * most_operands + 2]{};
        int count = 0;
        const auto insert = [&](std::int64_t value) { // values arrive nearly in order
            int i = count++;
            for (; i > 0 && border[i - 1] > value; --i) border[i] = border[i - 1];
            border[i] = value;
        };
        insert(0);
        for (int k = 0; k < operands; ++k) insert(begin[k]), insert(begin[k] + width[k]);
        insert(length);
        segments = 0;
        for (int i = 0; i + 1 < count; ++i) {
            if (border[i] == border[i + 1]) continue;
            segment& s = at[segments++];
            s.begin = border[i];
            s.end = border[i + 1];
            s.operands = 0;
            for (int k = 0; k < operands; ++k)
                if (begin[k] <= s.begin && s.end <= begin[k] + width[k]) s.operand[s.operands++] = k;
        }
    }

    // A missing operand counts as +0, which turns -0 into +0; adding it more often makes no
    // difference.
    TG_INLINE void add(const segment& s, std::int64_t row, std::int64_t from, std::int64_t to, T* out) const {
        const std::int64_t count = to - from;
        const auto operand = [&](int k) {
            const int which = s.operand[k];
            return in[which] + row * width[which] + (from - begin[which]);
        };
        if (s.operands == 0)
            return void(std::memset(static_cast<void*>(out), 0, static_cast<std::size_t>(count) * sizeof(T)));
        const T* const a = operand(0);
        if (s.operands == 1) {
            TG_SIMD
            for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] + T(0);
            return;
        }
        const T* const b = operand(1);
        if (s.operands == 2 && operands > 2) {
            TG_SIMD
            for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i] + T(0);
            return;
        }
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
        for (int k = 2; k < s.operands; ++k) {
            const T* const c = operand(k);
            TG_SIMD
            for (std::int64_t i = 0; i < count; ++i) out[i] += c[i];
        }
        if (s.operands > 2 && s.operands < operands) {
            TG_SIMD
            for (std::int64_t i = 0; i < count; ++i) out[i] += T(0);
        }
    }
};

/// All rows of a small result. An element that some operand does not have starts at +0, one that all have at -0, to
/// which anything may be added without a change: so the bits are those of segments, where a single operand is added to +0.
template <class T>
inline void add_few(const rows<T>& r, std::int64_t elements, T* out) {
    std::int64_t common = 0, end_of_common = r.operands > 1 ? r.length : 0;
    for (int k = 0; k < r.operands; ++k) {
        common = std::max(common, r.begin[k]);
        end_of_common = std::min(end_of_common, r.begin[k] + r.width[k]);
    }
    for (std::int64_t row = 0, at = 0; at < elements; ++row, at += r.length) {
        T* const to = out + at;
        for (std::int64_t i = 0; i < r.length; ++i) to[i] = T(0);
        for (std::int64_t i = common; i < end_of_common; ++i) to[i] = -T(0);
        for (int k = 0; k < r.operands; ++k) {
            const T* const from = r.in[k] + row * r.width[k];
            T* const part = to + r.begin[k];
            for (std::int64_t i = 0; i < r.width[k]; ++i) part[i] += from[i];
        }
    }
}

/// Computes elements [at, end) of the result.
template <class T>
struct piece {
    template <class Isa>
    TG_INLINE static void run(const rows<T>* r, std::int64_t at, std::int64_t end, T* out) {
        std::int64_t row = at > 0 ? at / r->length : 0, within = at - row * r->length;
        int s = 0;
        while (r->at[s].end <= within) ++s;
        while (at < end) {
            const std::int64_t to = std::min(r->at[s].end, within + (end - at));
            r->add(r->at[s], row, within, to, out + at);
            at += to - within;
            within = to;
            if (within == r->at[s].end) ++s;
            if (within == r->length) within = 0, s = 0, ++row;
        }
    }
};

} // namespace placed_detail

/// out = the sum of in[k], each starting at begin[k] along `axis` and zero elsewhere, added in
/// their order.
template <class T>
void placed_sum(const buffer_view* in, const std::int64_t* begin, int count, int axis, const buffer_view& out) {
    using namespace placed_detail;
    const std::int64_t elements = out.elements();
    if (elements == 0) return;
    std::int64_t inner = 1;
    for (int i = axis + 1; i < out.rank; ++i) inner *= out.extents[i];
    rows<T> r;
    r.operands = count;
    r.length = out.extents[axis] * inner;
    for (int k = 0; k < count; ++k) {
        r.in[k] = in[k].as<const T>();
        r.begin[k] = begin[k] * inner;
        r.width[k] = in[k].extents[axis] * inner;
    }
    if (elements <= few_elements) return add_few(r, elements, out.as<T>());
    r.cut();
    const std::int64_t pieces = (elements + piece_elements - 1) / piece_elements;
    parallel_for(pieces, elements >= parallel_elements, [&](std::int64_t i) {
        const std::int64_t from = i * piece_elements;
        dispatch<piece<T>>(&r, from, std::min(elements, from + piece_elements), out.as<T>());
    });
}

} // namespace tapegraph::cpu
