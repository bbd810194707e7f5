#include <tapegraph/cpu/gemm_transpose.hpp>

#include <support/sums_in_order.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace gemm_transpose_test {

TEST_CASE_TEMPLATE("transpose: squares of vectors, and what is left beside them", T, float, double) {
    support::each_set([](bool) {
        for (const std::int64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 16, 31, 32})
            for (const std::int64_t columns : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 67})
                for (const std::int64_t more : {0, 3}) { // numbers behind each row, which stay
                    std::vector<T> from(static_cast<std::size_t>(rows * (columns + more))),
                        to(static_cast<std::size_t>(columns * (rows + more)), T(-1)), want = to;
                    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i);
                    for (std::int64_t r = 0; r < rows; ++r)
                        for (std::int64_t c = 0; c < columns; ++c)
                            want[static_cast<std::size_t>(c * (rows + more) + r)] =
                                from[static_cast<std::size_t>(r * (columns + more) + c)];
                    tapegraph::cpu::detail::transpose(to.data(), rows + more, from.data(), columns + more, rows,
                                                      columns);
                    INFO(rows << " x " << columns << ", " << more << " more");
                    CHECK(to == want);
                }
    });
}

} // namespace gemm_transpose_test
