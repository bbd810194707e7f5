#pragma once

#include <tapegraph/minimizers/vectors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace tapegraph::minimizers {

/// Householder's reflections over a matrix stored by columns. On return the upper triangle has R, and `right` Q' right.
/// With `pivots` the longest remaining column is taken first. Returns the rank: columns as long as rounding end it.
template <class T>
std::size_t reflect(std::vector<T>& a, std::size_t rows, std::size_t columns, std::vector<T>& right,
                    std::vector<std::size_t>* pivots) {
    const std::size_t most = std::min(rows, columns);
    T longest = 0;
    for (std::size_t k = 0; k < most; ++k) {
        if (pivots != nullptr) {
            std::size_t best = k;
            T best_length = -1;
            for (std::size_t j = k; j < columns; ++j) {
                const std::span<const T> rest(&a[j * rows + k], rows - k);
                const T length = norm(rest);
                if (length > best_length) best = j, best_length = length;
            }
            if (k == 0) longest = best_length;
            if (!(best_length > static_cast<T>(std::max(rows, columns)) * epsilon<T> * longest)) return k;
            if (best != k) {
                std::swap_ranges(&a[k * rows], &a[k * rows] + rows, &a[best * rows]);
                std::swap((*pivots)[k], (*pivots)[best]);
            }
        }
        const std::span<T> column(&a[k * rows + k], rows - k);
        const T length = std::copysign(norm(std::span<const T>(column)), column[0]);
        if (length == 0) continue;
        // The reflection I - v v' / (length * v[0]) with v = column + length * e.
        column[0] += length;
        const T denominator = length * column[0];
        const auto apply = [&](std::span<T> y) {
            const T product = dot(std::span<const T>(column), std::span<const T>(y));
            add_scaled(y, -product / denominator, std::span<const T>(column));
        };
        for (std::size_t j = k + 1; j < columns; ++j) apply(std::span<T>(&a[j * rows + k], rows - k));
        apply(std::span<T>(&right[k], rows - k));
        column[0] = -length;
    }
    return most;
}

/// min |A p - b|, also with more rows of a diagonal matrix below: min |A p - b|^2 + |D p|^2.
template <class T>
class pivoted_qr {
public:
    /// A has the columns `which` of a matrix stored by rows, `width` numbers each.
    void factor(const std::vector<T>& matrix, const std::vector<T>& b, std::size_t width,
                const std::vector<std::size_t>& which) {
        const std::size_t rows = b.size();
        rows_ = rows, columns_ = which.size();
        a_.resize(rows * columns_);
        for (std::size_t k = 0; k < columns_; ++k)
            for (std::size_t j = 0; j < rows; ++j) a_[k * rows + j] = matrix[j * width + which[k]];
        right_ = b;
        pivots_.resize(columns_);
        std::iota(pivots_.begin(), pivots_.end(), std::size_t{0});
        rank_ = reflect(a_, rows, columns_, right_, &pivots_);
    }
    /// `diagonal`: D, or empty; then columns beyond the rank get 0.
    void solve(std::span<const T> diagonal, std::span<T> p) {
        std::fill(p.begin(), p.end(), T(0));
        if (diagonal.empty()) {
            back_substitute(a_, rows_, right_, rank_, p);
            return;
        }
        const std::size_t kept = std::min(rows_, columns_), rows = kept + columns_;
        stacked_.assign(rows * columns_, T(0));
        stacked_right_.assign(rows, T(0));
        for (std::size_t k = 0; k < columns_; ++k) {
            const std::size_t filled = std::min(k + 1, kept), upper = k < rank_ ? filled : kept;
            for (std::size_t j = 0; j < upper; ++j) stacked_[k * rows + j] = a_[k * rows_ + j];
            stacked_[k * rows + kept + k] = diagonal[pivots_[k]];
        }
        std::copy_n(right_.begin(), kept, stacked_right_.begin());
        reflect<T>(stacked_, rows, columns_, stacked_right_, nullptr);
        back_substitute(stacked_, rows, stacked_right_, columns_, p);
    }

private:
    void back_substitute(const std::vector<T>& r, std::size_t rows, const std::vector<T>& right, std::size_t count,
                         std::span<T> p) {
        solution_.assign(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(count));
        for (std::size_t k = count; k-- > 0;) {
            solution_[k] /= r[k * rows + k];
            for (std::size_t j = 0; j < k; ++j) solution_[j] -= solution_[k] * r[k * rows + j];
        }
        for (std::size_t k = 0; k < count; ++k) p[pivots_[k]] = solution_[k];
    }

    std::size_t rows_ = 0, columns_ = 0, rank_ = 0;
    std::vector<T> a_, right_, stacked_, stacked_right_, solution_;
    std::vector<std::size_t> pivots_;
};

} // namespace tapegraph::minimizers
