#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/vector.hpp>

#include <utility>

/// Short convolutions with fewer products (Toom 1963, Cook 1966; two-dimensional: Winograd 1980,
/// Lavin and Gray 2016): m outputs of a filter of r taps are A^T ((B d) . (G g)), where d are the n
/// = m + r - 1 inputs and . multiplies element by element: n products instead of m r. In two
/// dimensions the maps apply to rows and columns.
///
/// B, G and A evaluate polynomials at 0, 1, -1, 2, -2, 1/2, -1/2 and infinity, as many as there are products. Values at x and -x share
/// the sums of their even and of their odd terms.

namespace tapegraph::cpu::detail {

template <int Outputs, int Taps>
struct toom_cook {
    static constexpr int outputs = Outputs, taps = Taps, products = Outputs + Taps - 1;
    static_assert(products % 2 == 0 && products <= 8); // all points but 0 and infinity come in pairs

    static constexpr double point(int i) {
        constexpr double points[7] = {0, 1, -1, 2, -2, 0.5, -0.5};
        return points[i];
    }
    /// Whether rows i and i + 1 of the maps belong to x and -x.
    static constexpr bool pairs(int i) { return i % 2 == 1 && i + 1 < products - 1; }
    static constexpr double power(double x, int n) {
        double result = 1;
        for (int k = 0; k < n; ++k) result *= x;
        return result;
    }

    /// B [products, products]: coefficients of the product of (x - p) over all points but the row's own.
    struct input {
        static constexpr int rows = products, columns = products;
        static constexpr double at(int i, int j) {
            double polynomial[products + 1] = {1};
            int degree = 0;
            for (int p = 0; p < products - 1; ++p) {
                if (p == i) continue;
                for (int k = ++degree; k >= 0; --k)
                    polynomial[k] = (k > 0 ? polynomial[k - 1] : 0) - point(p) * (k < degree ? polynomial[k] : 0);
            }
            return j <= degree ? polynomial[j] : 0;
        }
    };
    /// A [products, outputs]: powers of the points.
    struct output {
        static constexpr int rows = products, columns = outputs;
        static constexpr double at(int i, int j) {
            return i < products - 1 ? power(point(i), j) : j == outputs - 1 ? 1 : 0;
        }
    };
    /// G [products, taps]: powers of the points, divided by the value of B's row at its own point.
    struct filter {
        static constexpr int rows = products, columns = taps;
        static constexpr double at(int i, int j) {
            if (i == products - 1) return j == taps - 1 ? 1 : 0;
            double scale = 1;
            for (int p = 0; p < products - 1; ++p)
                if (p != i) scale *= point(i) - point(p);
            return power(point(i), j) / scale;
        }
    };
};

/// Applies a map of a toom_cook to vectors of channels.
template <class Numbers, class Map, class V>
struct channel_map {
    using type = typename V::type;
    static constexpr int rows = Map::rows, columns = Map::columns;

    template <int I, int J>
    TG_INLINE static void add_term(type& sum, const type& x) {
        constexpr double factor = Map::at(I, J);
        if constexpr (factor == 1)
            sum += x;
        else if constexpr (factor == -1)
            sum -= x;
        else if constexpr (factor != 0)
            V::multiply_add(sum, x, static_cast<float>(factor));
    }

    // One row of the map, every Step-th term from First on.
    template <int I, int First, int Step, int... K>
    TG_INLINE static void row(type& sum, const type (&x)[columns], std::integer_sequence<int, K...>) {
        sum = type{};
        (add_term<I, First + Step * K>(sum, x[First + Step * K]), ...);
    }
    template <int I>
    TG_INLINE static void rows_from(const type (&x)[columns], type (&y)[rows]) {
        if constexpr (Numbers::pairs(I)) {
            type even, odd;
            row<I, 0, 2>(even, x, std::make_integer_sequence<int, (columns + 1) / 2>{});
            row<I, 1, 2>(odd, x, std::make_integer_sequence<int, columns / 2>{});
            y[I] = even + odd;
            y[I + 1] = even - odd;
        } else if constexpr (I == 0 || !Numbers::pairs(I - 1)) {
            row<I, 0, 1>(y[I], x, std::make_integer_sequence<int, columns>{});
        }
    }
    /// y = M x.
    template <int... I>
    TG_INLINE static void forward(const type (&x)[columns], type (&y)[rows], std::integer_sequence<int, I...>) {
        (rows_from<I>(x, y), ...);
    }

    // Multiplies column J of the map by values, those of pairs already added and subtracted.
    template <int I, int J>
    TG_INLINE static void add_folded(type& sum, const type (&folded)[rows]) {
        if constexpr (I == 0 || !Numbers::pairs(I - 1))
            add_term<I, J>(sum, folded[Numbers::pairs(I) && J % 2 == 1 ? I + 1 : I]);
    }
    template <int J, int... I>
    TG_INLINE static void column(type& sum, const type (&folded)[rows], std::integer_sequence<int, I...>) {
        sum = type{};
        (add_folded<I, J>(sum, folded), ...);
    }
    template <int I>
    TG_INLINE static void fold(const type (&x)[rows], type (&folded)[rows]) {
        if constexpr (Numbers::pairs(I)) {
            folded[I] = x[I] + x[I + 1];
            folded[I + 1] = x[I] - x[I + 1];
        } else if constexpr (I == 0 || !Numbers::pairs(I - 1)) {
            folded[I] = x[I];
        }
    }
    /// y = M^T x.
    template <int... I, int... J>
    TG_INLINE static void backward(const type (&x)[rows], type (&y)[columns], std::integer_sequence<int, I...> all,
                                   std::integer_sequence<int, J...>) {
        type folded[rows];
        (fold<I>(x, folded), ...);
        (column<J>(y[J], folded, all), ...);
    }

    using all_rows = std::make_integer_sequence<int, rows>;
    using all_columns = std::make_integer_sequence<int, columns>;

    // x[K] = load(first + step K), and the reverse. The loops below stay loops; their bodies stay
    // in registers.
    template <class Load, int... K>
    TG_INLINE static void load_line(type* x, const Load& load, int first, int step, std::integer_sequence<int, K...>) {
        (load(x[K], first + step * K), ...);
    }
    template <class Store, int... K>
    TG_INLINE static void store_line(const type* y, const Store& store, int first, int step,
                                     std::integer_sequence<int, K...>) {
        (store(first + step * K, y[K]), ...);
    }

    /// M x M^T from a matrix [columns, columns] to one [rows, rows]: load(x, i) loads element i,
    /// store(i, y) stores it.
    template <class Load, class Store>
    TG_INLINE static void forward_both(const Load& load, const Store& store) {
        type half[rows * columns];
        for (int j = 0; j < columns; ++j) {
            type x[columns], y[rows];
            load_line(x, load, j, columns, all_columns{});
            forward(x, y, all_rows{});
            store_line(
                y, [&](int i, const type& v) __attribute__((always_inline)) { half[i] = v; }, j, columns, all_rows{});
        }
        for (int i = 0; i < rows; ++i) {
            type x[columns], y[rows];
            load_line(
                x, [&](type & v, int k) __attribute__((always_inline)) { v = half[k]; }, i * columns, 1, all_columns{});
            forward(x, y, all_rows{});
            store_line(y, store, i * rows, 1, all_rows{});
        }
    }
    /// M^T x M from a matrix [rows, rows] to one [columns, columns].
    template <class Load, class Store>
    TG_INLINE static void backward_both(const Load& load, const Store& store) {
        type half[columns * rows];
        for (int j = 0; j < rows; ++j) {
            type x[rows], y[columns];
            load_line(x, load, j, rows, all_rows{});
            backward(x, y, all_rows{}, all_columns{});
            store_line(
                y, [&](int i, const type& v) __attribute__((always_inline)) { half[i] = v; }, j, rows, all_columns{});
        }
        for (int i = 0; i < columns; ++i) {
            type x[rows], y[columns];
            load_line(
                x, [&](type & v, int k) __attribute__((always_inline)) { v = half[k]; }, i * rows, 1, all_rows{});
            backward(x, y, all_rows{}, all_columns{});
            store_line(y, store, i * columns, 1, all_columns{});
        }
    }
};

} // namespace tapegraph::cpu::detail
