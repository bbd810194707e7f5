#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

/// Plain arrays with NumPy's semantics, as the reference for kernels. They use no code of the
/// library, so a mistake would have to be made twice. Values are long double, which keeps the
/// reference's own rounding out of the comparison with double.

namespace tapegraph::testing {

using real = long double;
using extents = std::vector<std::int64_t>;

inline std::int64_t count_of(const extents& dims) {
    return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

struct array {
    extents dims;
    std::vector<real> values;

    array() : values(1) {}
    explicit array(extents d, real value = 0)
        : dims(std::move(d)), values(static_cast<std::size_t>(count_of(dims)), value) {}
    array(extents d, std::vector<real> v) : dims(std::move(d)), values(std::move(v)) {}

    std::int64_t size() const { return static_cast<std::int64_t>(values.size()); }
    real& operator[](std::int64_t i) { return values[static_cast<std::size_t>(i)]; }
    real operator[](std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
    real& at(const extents& index) { return values[static_cast<std::size_t>(offset(index))]; }
    real at(const extents& index) const { return values[static_cast<std::size_t>(offset(index))]; }

    std::int64_t offset(const extents& index) const {
        std::int64_t flat = 0;
        for (std::size_t i = 0; i < dims.size(); ++i) flat = flat * dims[i] + index[i];
        return flat;
    }
};

/// The index of the element at flat position `flat`.
inline extents unravel(std::int64_t flat, const extents& dims) {
    extents index(dims.size());
    for (std::size_t i = dims.size(); i-- > 0;) {
        index[i] = flat % dims[i];
        flat /= dims[i];
    }
    return index;
}

inline extents broadcast_dims(const std::vector<array>& operands) {
    std::size_t rank = 0;
    for (const array& a : operands) rank = std::max(rank, a.dims.size());
    extents dims(rank, 1);
    for (const array& a : operands)
        for (std::size_t i = 0; i < a.dims.size(); ++i) {
            std::int64_t& d = dims[rank - a.dims.size() + i];
            if (a.dims[i] != 1) d = a.dims[i];
        }
    return dims;
}

/// The element of an array of `dims` that corresponds to `index` of the broadcast result.
inline std::int64_t broadcast_offset(const extents& index, const extents& dims) {
    std::int64_t flat = 0;
    const std::size_t lead = index.size() - dims.size();
    for (std::size_t i = 0; i < dims.size(); ++i) flat = flat * dims[i] + (dims[i] == 1 ? 0 : index[lead + i]);
    return flat;
}

using scalar_function = std::function<real(const real*)>;

inline array map(const std::vector<array>& operands, const scalar_function& f) {
    array result(broadcast_dims(operands));
    std::vector<real> x(operands.size());
    for (std::int64_t i = 0; i < result.size(); ++i) {
        const extents index = unravel(i, result.dims);
        for (std::size_t k = 0; k < operands.size(); ++k) x[k] = operands[k][broadcast_offset(index, operands[k].dims)];
        result[i] = f(x.data());
    }
    return result;
}

/// Sum of `x` down to `dims`, the adjoint of broadcasting.
inline array sum_to(const array& x, const extents& dims) {
    array result(dims);
    for (std::int64_t i = 0; i < x.size(); ++i) result[broadcast_offset(unravel(i, x.dims), dims)] += x[i];
    return result;
}

/// Folds with `f` over the elements that differ in `axes` only, in order; without axes over all of
/// them.
inline array fold(const array& x, std::vector<int> axes, bool keepdims,
                  const std::function<real(const std::vector<real>&)>& f) {
    const int rank = static_cast<int>(x.dims.size());
    std::vector<bool> reduced(x.dims.size(), axes.empty());
    for (int axis : axes) reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
    extents kept = x.dims, squeezed;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        if (reduced[i]) kept[i] = 1;
        if (!reduced[i] || keepdims) squeezed.push_back(kept[i]);
    }
    std::vector<std::vector<real>> groups(static_cast<std::size_t>(count_of(kept)));
    for (std::int64_t i = 0; i < x.size(); ++i)
        groups[static_cast<std::size_t>(broadcast_offset(unravel(i, x.dims), kept))].push_back(x[i]);
    array result(squeezed);
    for (std::size_t g = 0; g < groups.size(); ++g) result.values[g] = f(groups[g]);
    return result;
}

/// [..., m, k] by [..., k, n]; operands may be given transposed.
inline array matmul(const array& a, const array& b, bool transpose_a = false, bool transpose_b = false) {
    const auto swapped = [](const array& x, bool swap) {
        if (!swap) return x;
        array y = x;
        const std::size_t r = x.dims.size();
        std::swap(y.dims[r - 2], y.dims[r - 1]);
        for (std::int64_t i = 0; i < x.size(); ++i) {
            extents index = unravel(i, x.dims);
            std::swap(index[r - 2], index[r - 1]);
            y.at(index) = x[i];
        }
        return y;
    };
    const array x = swapped(a, transpose_a), y = swapped(b, transpose_b);
    const std::size_t rx = x.dims.size(), ry = y.dims.size();
    const std::int64_t m = x.dims[rx - 2], inner = x.dims[rx - 1], n = y.dims[ry - 1];
    const extents outer_x(x.dims.begin(), x.dims.end() - 2), outer_y(y.dims.begin(), y.dims.end() - 2);
    const extents outer = broadcast_dims({array(outer_x), array(outer_y)});
    extents dims = outer;
    dims.push_back(m);
    dims.push_back(n);
    array result(dims);
    for (std::int64_t o = 0; o < count_of(outer); ++o) {
        const extents index = unravel(o, outer);
        const std::int64_t ox = broadcast_offset(index, outer_x), oy = broadcast_offset(index, outer_y);
        for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j)
                for (std::int64_t k = 0; k < inner; ++k)
                    result[(o * m + i) * n + j] += x[(ox * m + i) * inner + k] * y[(oy * inner + k) * n + j];
    }
    return result;
}

/// Window geometry of one spatial axis.
struct window {
    std::int64_t stride = 1, dilation = 1, before = 0, after = 0;
    bool same = false;

    std::int64_t span(std::int64_t taps) const { return (taps - 1) * dilation + 1; }
    std::int64_t out(std::int64_t in, std::int64_t taps) const {
        if (same) return (in + stride - 1) / stride; // TensorFlow: ceil(in / stride)
        const std::int64_t room = in + before + after - span(taps);
        return room < 0 ? 0 : room / stride + 1;
    }
    std::int64_t front(std::int64_t in, std::int64_t taps) const {
        if (!same) return before;
        return std::max<std::int64_t>((out(in, taps) - 1) * stride + span(taps) - in, 0) / 2;
    }
};

/// x [n, h, w, c] by k [kh, kw, c / groups, f].
inline array convolution(const array& x, const array& k, const window& vertical, const window& horizontal,
                         std::int64_t groups = 1) {
    const std::int64_t n = x.dims[0], h = x.dims[1], w = x.dims[2];
    const std::int64_t kh = k.dims[0], kw = k.dims[1], c = k.dims[2], f = k.dims[3];
    const std::int64_t oh = vertical.out(h, kh), ow = horizontal.out(w, kw);
    const std::int64_t top = vertical.front(h, kh), left = horizontal.front(w, kw);
    array y({n, oh, ow, f});
    for (std::int64_t b = 0; b < n; ++b)
        for (std::int64_t i = 0; i < oh; ++i)
            for (std::int64_t j = 0; j < ow; ++j)
                for (std::int64_t o = 0; o < f; ++o) {
                    real sum = 0;
                    for (std::int64_t p = 0; p < kh; ++p)
                        for (std::int64_t q = 0; q < kw; ++q) {
                            const std::int64_t r = i * vertical.stride + p * vertical.dilation - top;
                            const std::int64_t s = j * horizontal.stride + q * horizontal.dilation - left;
                            if (r < 0 || r >= h || s < 0 || s >= w) continue;
                            for (std::int64_t u = 0; u < c; ++u)
                                sum += x.at({b, r, s, o / (f / groups) * c + u}) * k.at({p, q, u, o});
                        }
                    y.at({b, i, j, o}) = sum;
                }
    return y;
}

/// `f` over the elements of each window that lie inside the image.
inline array pool(const array& x, std::int64_t wh, std::int64_t ww, const window& vertical, const window& horizontal,
                  const std::function<real(const std::vector<real>&)>& f) {
    const std::int64_t n = x.dims[0], h = x.dims[1], w = x.dims[2], c = x.dims[3];
    const std::int64_t oh = vertical.out(h, wh), ow = horizontal.out(w, ww);
    const std::int64_t top = vertical.front(h, wh), left = horizontal.front(w, ww);
    array y({n, oh, ow, c});
    for (std::int64_t i = 0; i < y.size(); ++i) {
        const extents at = unravel(i, y.dims);
        std::vector<real> inside;
        for (std::int64_t p = 0; p < wh; ++p)
            for (std::int64_t q = 0; q < ww; ++q) {
                const std::int64_t r = at[1] * vertical.stride + p * vertical.dilation - top;
                const std::int64_t s = at[2] * horizontal.stride + q * horizontal.dilation - left;
                if (r >= 0 && r < h && s >= 0 && s < w) inside.push_back(x.at({at[0], r, s, at[3]}));
            }
        y[i] = f(inside);
    }
    return y;
}

inline real sum_of(const std::vector<real>& v) { return std::accumulate(v.begin(), v.end(), real(0)); }
inline real mean_of(const std::vector<real>& v) { return sum_of(v) / static_cast<real>(v.size()); }
inline real max_of(const std::vector<real>& v) {
    real best = -INFINITY;
    for (real x : v) best = std::isnan(best) || std::isnan(x) ? NAN : std::max(best, x);
    return best;
}
inline real min_of(const std::vector<real>& v) {
    real best = INFINITY;
    for (real x : v) best = std::isnan(best) || std::isnan(x) ? NAN : std::min(best, x);
    return best;
}

} // namespace tapegraph::testing
