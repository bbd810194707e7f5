#pragma once

#include <tapegraph/scalar/sparse/pattern.hpp>

#include <Eigen/SparseCore>

/// Sparse matrices as Eigen's. Needs Eigen 3.3 or newer; nothing else of the library includes it.

namespace tapegraph {

/// A view of the matrix, which must live as long: `Eigen::SparseMatrix<double> copy = tg::eigen_view(m)`.
template <class T>
Eigen::Map<const Eigen::SparseMatrix<T, Eigen::RowMajor, std::int32_t>> eigen_view(const sparse_matrix<T>& m) {
    return {static_cast<Eigen::Index>(m.rows()),
            static_cast<Eigen::Index>(m.columns()),
            static_cast<Eigen::Index>(m.values.size()),
            m.pattern.starts.data(),
            m.pattern.columns.data(),
            m.values.data()};
}

} // namespace tapegraph
