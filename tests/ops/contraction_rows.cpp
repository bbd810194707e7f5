#include <ops/table.hpp>

namespace tapegraph::testing {

// A sum of k products of order one is exact to some epsilons of k; the inner extents below stay under 300 but for one.
std::vector<row> contraction_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<extents>> shapes) {
        r.shapes = std::move(shapes);
        r.ulps = 32;
        r.floor = 4;
        r.why = "sums of products";
        rows.push_back(std::move(r));
    };
    put(make_row<2>(
            "matmul", [](auto a, auto b) { return matmul(a, b); }, {},
            [](const std::vector<array>& x) { return matmul(x[0], x[1]); }),
        {{{2, 3}, {3, 4}},
         {{1, 1}, {1, 1}},
         {{5, 1}, {1, 3}},
         {{0, 3}, {3, 2}},
         {{3, 0}, {0, 2}}, // an empty sum is zero
         {{3, 2}, {2, 0}},
         {{17, 29}, {29, 13}},
         {{67, 131}, {131, 71}},
         {{1, 1031}, {1031, 1}},
         {{4, 2, 3}, {4, 3, 2}}, // batches
         {{4, 2, 3}, {3, 2}},    // one factor for all batches: its adjoint is summed
         {{2, 3}, {4, 3, 2}},
         {{5, 1, 2, 3}, {1, 4, 3, 2}}, // both broadcast
         {{2, 1, 2, 3}, {3, 3, 2}},
         {{0, 2, 3}, {3, 2}}});
    put(make_row<2>(
            "matmul transposed a", [](auto a, auto b) { return matmul(a, b, {.transpose_a = true}); }, {},
            [](const std::vector<array>& x) { return matmul(x[0], x[1], true); }),
        {{{3, 2}, {3, 4}}, {{29, 17}, {29, 13}}, {{4, 3, 2}, {3, 2}}, {{0, 2}, {0, 3}}});
    put(make_row<2>(
            "matmul transposed b", [](auto a, auto b) { return matmul(a, b, {.transpose_b = true}); }, {},
            [](const std::vector<array>& x) { return matmul(x[0], x[1], false, true); }),
        {{{2, 3}, {4, 3}}, {{17, 29}, {13, 29}}, {{4, 2, 3}, {2, 3}}, {{2, 3}, {4, 2, 3}}});
    put(make_row<2>(
            "matmul both transposed",
            [](auto a, auto b) { return matmul(a, b, {.transpose_a = true, .transpose_b = true}); }, {},
            [](const std::vector<array>& x) { return matmul(x[0], x[1], true, true); }),
        {{{3, 2}, {4, 3}}, {{29, 17}, {13, 29}}, {{2, 1, 3, 2}, {3, 2, 3}}});
    // Vectors: a row on the left, a column on the right.
    put(make_row<2>(
            "matmul of vectors", [](auto a, auto b) { return matmul(a, b); }, {},
            [](const std::vector<array>& x) {
                array a = x[0], b = x[1];
                const bool row = a.dims.size() == 1, column = b.dims.size() == 1;
                if (row) a.dims.insert(a.dims.begin(), 1);
                if (column) b.dims.push_back(1);
                array c = matmul(a, b);
                if (column) c.dims.pop_back();
                if (row) c.dims.erase(c.dims.end() - (column ? 1 : 2));
                return c;
            }),
        {{{3}, {3}},
         {{0}, {0}},
         {{3}, {3, 2}},
         {{2, 3}, {3}},
         {{4, 2, 3}, {3}},
         {{3}, {4, 3, 2}},
         {{0, 2, 3}, {3}},
         {{1031}, {1031}}});
    // One factor for every batch is one tall product; many small products are shared out among threads.
    put(make_row<2>(
            "matmul of batches", [](auto a, auto b) { return matmul(a, b); }, {},
            [](const std::vector<array>& x) { return matmul(x[0], x[1]); }),
        {{{2, 3, 4, 5}, {5, 7}},
         {{3, 1, 5}, {5, 2}},
         {{3, 4, 5}, {1, 5, 2}},
         {{1, 1, 4, 5}, {5, 2}},
         {{331, 5, 7}, {331, 7, 3}},
         {{31, 7, 1, 5}, {7, 5, 4}},
         {{257, 3, 1}, {257, 1, 3}},
         {{2, 70, 80}, {2, 80, 40}}}); // larger than a thread's share
    put(make_row<2, false>(
            "matmul of batches, transposed", [](auto a, auto b) { return matmul(a, b, {.transpose_a = true, .transpose_b = true}); },
            {}, [](const std::vector<array>& x) { return matmul(x[0], x[1], true, true); }),
        {{{3, 5, 1}, {2, 5}}, {{3, 5, 2}, {4, 5}}, {{5, 2}, {3, 4, 5}}});
    put(make_row<2, false>(
            "matmul of batches, second transposed", [](auto a, auto b) { return matmul(a, b, {.transpose_b = true}); }, {},
            [](const std::vector<array>& x) { return matmul(x[0], x[1], false, true); }),
        {{{3, 2, 5}, {4, 5}}, {{2, 3, 2, 5}, {4, 5}}});
    // Formulas as operands are sealed first; one tensor in both places receives both adjoints.
    put(make_row<1, false>(
            "matmul of a formula with itself", [](auto a) { return matmul(tanh(a), a, {.transpose_b = true}); }, {},
            [](const std::vector<array>& x) {
                return matmul(map(x, [](const real* v) { return std::tanh(*v); }), x[0], false, true);
            }),
        {{{3, 2}}, {{1, 1}}});
    return rows;
}

} // namespace tapegraph::testing
