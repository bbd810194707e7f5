#include <tapegraph/data/loader.hpp>
#include <tapegraph/data/text/windows.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace windows_test {

using namespace tapegraph;

TEST_CASE("windows: tokens and those one later") {
    for (const std::int64_t count : {6, 10, 11, 12, 23}) {
        std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
        std::iota(tokens.begin(), tokens.end(), 0);
        for (const std::int64_t stride : {0, 1, 3, 7}) {
            CAPTURE(count);
            CAPTURE(stride);
            const std::int64_t length = 5, step = stride == 0 ? length : stride;
            const auto set = data::next_token_windows(tokens, count, length, stride);
            std::int64_t expected = 0;
            while (expected * step + length + 1 <= count) ++expected;
            REQUIRE(set.size() == expected);
            data::loader batches(set.batch(expected));
            batches.begin_epoch(0);
            const data::batch* b = batches.next();
            for (std::int64_t i = 0; i < expected; ++i)
                for (std::int64_t t = 0; t < length; ++t) {
                    const auto at = static_cast<std::size_t>(i * length + t);
                    REQUIRE(b->values<float>("tokens")[at] == static_cast<float>(i * step + t));
                    REQUIRE(b->values<std::int32_t>("next")[at] == i * step + t + 1);
                }
        }
    }
}

TEST_CASE("windows that do not fit, tokens that no vocabulary has") {
    CHECK_THROWS_AS(data::next_token_windows({0, 1, 2}, 3, 3), argument_error);
    CHECK(data::next_token_windows({0, 1, 2, 2}, 3, 3).size() == 1);
    CHECK_THROWS_AS(data::next_token_windows({0, 1}, 3, 0), argument_error);
    CHECK_THROWS_AS(data::next_token_windows({0, 1}, 3, 1, -1), argument_error);
    const auto message = support::message_of<range_error>([] { data::next_token_windows({0, 1, 3}, 3, 1); });
    CHECK(support::contains(message, "index 3 at position 2 is outside [0, 3)"));
    CHECK_THROWS_AS(data::next_token_windows({0, -1, 1}, 3, 1), range_error);
    CHECK(data::next_token_windows<std::int32_t>({0, 1}, 2, 1).columns()[0].type == dtype::i32);
}

} // namespace windows_test
