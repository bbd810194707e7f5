#include <operations/builders.hpp>

/// Products of matrices and vectors. whole: whether the first and the second factor are given transposed.

namespace tapegraph::testing {

namespace contractions {

// A sum of k products of order one is exact to some epsilons of k; the inner extents below stay under 300 but for one.
row product(attributes with, shape_list shapes) {
    return {.with = std::move(with), .shapes = std::move(shapes), .ulps = 32, .floor = 4, .why = "sums of products"};
}
array product_reference(const std::vector<array>& x, const attributes& with) {
    return matmul(x[0], x[1], with.whole[0] != 0, with.whole[1] != 0);
}

bool matrix_partner(choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
    const extents& a = before[0];
    if (a.size() < 2) return false;
    const std::int64_t inner = a[a.size() - static_cast<std::size_t>(random.whole(1, 2))];
    dims = {inner, random.whole(0, 4)};
    if (random.chance(0.4)) std::swap(dims[0], dims[1]);
    if (a.size() > 2 && random.chance(0.5)) dims.insert(dims.begin(), random.chance(0.5) ? a[a.size() - 3] : 1);
    if (dims.size() < 5 && random.chance(0.2)) dims.insert(dims.begin(), a.size() == dims.size() ? 1 : 2);
    return true;
}
bool draw_transposition(choices& random, const std::vector<extents>& x, attributes& with) {
    if (x[0].size() < 2 || x[1].size() < 2) return false;
    for (int attempt = 0; attempt < 6; ++attempt) {
        with.whole = {random.chance(0.4), random.chance(0.4)};
        if (x[0][x[0].size() - (with.whole[0] != 0 ? 2 : 1)] == x[1][x[1].size() - (with.whole[1] != 0 ? 1 : 2)])
            return true;
    }
    return false;
}

operation of_matrices() {
    operation made = make_operation<floating, floating>(
        "matmul",
        [](const auto& x, const auto& y, const attributes& with) {
            return matmul(x, y, {.transpose_a = with.whole[0] != 0, .transpose_b = with.whole[1] != 0});
        },
        {product({{0, 0}, {}},
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
                  {{0, 2, 3}, {3, 2}},
                  // One factor for every batch is one tall product; many small ones are shared out among threads.
                  {{2, 3, 4, 5}, {5, 7}},
                  {{3, 1, 5}, {5, 2}},
                  {{3, 4, 5}, {1, 5, 2}},
                  {{1, 1, 4, 5}, {5, 2}},
                  {{331, 5, 7}, {331, 7, 3}},
                  {{31, 7, 1, 5}, {7, 5, 4}},
                  {{257, 3, 1}, {257, 1, 3}},
                  {{2, 70, 80}, {2, 80, 40}}}), // larger than a thread's share
         product({{1, 0}, {}}, {{{3, 2}, {3, 4}}, {{29, 17}, {29, 13}}, {{4, 3, 2}, {3, 2}}, {{0, 2}, {0, 3}}}),
         product({{0, 1}, {}}, {{{2, 3}, {4, 3}},
                                {{17, 29}, {13, 29}},
                                {{4, 2, 3}, {2, 3}},
                                {{2, 3}, {4, 2, 3}},
                                {{3, 2, 5}, {4, 5}},
                                {{2, 3, 2, 5}, {4, 5}}}),
         product({{1, 1}, {}}, {{{3, 2}, {4, 3}},
                                {{29, 17}, {13, 29}},
                                {{2, 1, 3, 2}, {3, 2, 3}},
                                {{3, 5, 1}, {2, 5}},
                                {{3, 5, 2}, {4, 5}},
                                {{5, 2}, {3, 4, 5}}})});
    made.weight = 4;
    made.partner = matrix_partner;
    made.draw = draw_transposition;
    made.accepts = [](const std::vector<array>& x, const attributes&) { // vectors have an operation of their own
        return x[0].dims.size() > 1 && x[1].dims.size() > 1;
    };
    made.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "matmul(" + x[0] + ", " + x[1] + ", {.transpose_a = " + flag_text(with.whole[0]) +
               ", .transpose_b = " + flag_text(with.whole[1]) + "})";
    };
    made.reference = product_reference;
    return made;
}

// Vectors: a row on the left, a column on the right.
operation of_vectors() {
    operation made = make_operation<floating, floating>(
        "matmul_vector", [](const auto& x, const auto& y, const attributes&) { return matmul(x, y); },
        {product({}, {{{3}, {3}},
                      {{0}, {0}},
                      {{3}, {3, 2}},
                      {{2, 3}, {3}},
                      {{4, 2, 3}, {3}},
                      {{3}, {4, 3, 2}},
                      {{0, 2, 3}, {3}},
                      {{1031}, {1031}}})});
    made.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        const extents& a = before[0];
        if (a.empty()) return false;
        dims = {a.back()};
        if (a.size() == 1 && random.chance(0.7)) dims.push_back(random.whole(0, 4));
        if (dims.size() == 2 && random.chance(0.3)) dims.insert(dims.begin(), random.whole(1, 3));
        return true;
    };
    made.source = [](const std::vector<std::string>& x, const attributes&) {
        return "matmul(" + x[0] + ", " + x[1] + ")";
    };
    made.reference = [](const std::vector<array>& x, const attributes&) {
        array a = x[0], b = x[1];
        const bool row = a.dims.size() == 1, column = b.dims.size() == 1;
        if (row) a.dims.insert(a.dims.begin(), 1);
        if (column) b.dims.push_back(1);
        array c = matmul(a, b);
        if (column) c.dims.pop_back();
        if (row) c.dims.erase(c.dims.end() - (column ? 1 : 2));
        return c;
    };
    return made;
}

// What the pass for epilogues looks for; random neighbours alone would seldom spell it.
operation with_epilogue() {
    operation made = make_operation<double, double, double>(
        "matmul_relu", [](const auto& x, const auto& w, const auto& b, const attributes& with) {
            return relu(matmul(x, w, {.transpose_b = with.whole[0] != 0}) + b);
        });
    made.weight = 9;
    made.partner = [](choices& random, std::size_t k, const std::vector<extents>& before, extents& dims) {
        const extents& a = before[0];
        if (a.size() < 2) return false;
        if (k == 1)
            dims = {a.back(), random.whole(0, 4)};
        else
            dims = {before[1].back()};
        return true;
    };
    made.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (x[0].size() < 2 || x[1].size() != 2 || x[2].size() != 1) return false;
        with.whole = {random.chance(0.4)};
        const std::size_t inner = with.whole[0] != 0 ? 1 : 0;
        return x[1][inner] == x[0].back() && x[1][1 - inner] == x[2][0];
    };
    made.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "relu(matmul(" + x[0] + ", " + x[1] + ", {.transpose_b = " + flag_text(with.whole[0]) + "}) + " + x[2] +
               ")";
    };
    made.reference = [](const std::vector<array>& x, const attributes& with) {
        return map({matmul(x[0], x[1], false, with.whole[0] != 0), x[2]},
                   [](const real* v) { return std::max(v[0] + v[1], real(0)); });
    };
    return made;
}

// Formulas as operands are sealed first; one tensor in both places receives both adjoints.
operation of_itself() {
    return one_operand<double>("matmul of a formula with itself", not_drawn{[](const auto& a, const attributes&) {
                                   return matmul(tanh(a), a, {.transpose_b = true});
                               }},
                               nullptr, nullptr,
                               [](const array& x, const attributes&) {
                                   return matmul(map({x}, [](const real* v) { return std::tanh(*v); }), x, false, true);
                               },
                               {product({}, {{{3, 2}}, {{1, 1}}})});
}

} // namespace contractions

std::vector<operation> contraction_operations() {
    using namespace contractions;
    std::vector<operation> made{of_matrices(), of_vectors(), with_epilogue(), of_itself()};
    for (operation& each : made) each.domains.assign(each.types.size(), {-30, 30});
    return made;
}

} // namespace tapegraph::testing
