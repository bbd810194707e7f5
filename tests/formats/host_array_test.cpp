#include <tapegraph/core/half.hpp>
#include <tapegraph/formats/host_array.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace host_array_test {

using tapegraph::dtype;
using tapegraph::dtype_error;
using tapegraph::shape_error;
using tapegraph::io::host_array;

TEST_CASE("host_array keeps values, type and shape") {
    const auto array = host_array::of<std::int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
    CHECK(array.type == dtype::i32);
    CHECK(array.size() == 6);
    CHECK(array.values<std::int32_t>()[5] == 6);
    CHECK(host_array::of<double>({}, {2.5}).values<double>()[0] == 2.5);
    CHECK(host_array::of<float>({0, 7}, std::vector<float>{}).size() == 0);
    CHECK(host_array::zeros(dtype::u16, {3, 5}).bytes.size() == 30);
}

TEST_CASE("host_array holds 16-bit numbers") {
    const std::vector<tapegraph::bfloat16> values{tapegraph::bfloat16(0.5f), tapegraph::bfloat16(-3)};
    const auto array = host_array::of<tapegraph::bfloat16>({2}, values);
    CHECK(array.type == dtype::bf16);
    CHECK(array.bytes.size() == 4);
    CHECK(array.values<tapegraph::bfloat16>()[1] == values[1]);
    CHECK_THROWS_AS((void)array.values<tapegraph::half>(), dtype_error);
}

TEST_CASE("host_array refuses other types and shapes") {
    auto array = host_array::of<float>({3}, {1, 2, 3});
    CHECK(support::message_of<dtype_error>([&] { (void)array.values<double>(); }) ==
          "host_array [3]: holds f32, not f64");
    CHECK(support::message_of<shape_error>([] {
              host_array::of<float>({2, 2}, {1, 2, 3});
          }) == "host_array: 3 values do not fill shape [2,2]");
    CHECK_THROWS_AS(host_array::zeros(dtype::f32, {-1}), shape_error);
}

TEST_CASE("sizes that overflow are refused rather than wrapped") {
    std::int64_t size = 0;
    const std::vector<std::int64_t> wraps{std::int64_t{1} << 32, std::int64_t{1} << 32};
    CHECK_FALSE(tapegraph::io::checked_size(wraps, 1, size));
    const std::vector<std::int64_t> bytes_wrap{INT64_MAX / 4};
    CHECK(tapegraph::io::checked_size(bytes_wrap, 4, size));
    CHECK_FALSE(tapegraph::io::checked_size(bytes_wrap, 8, size));
    const std::vector<std::int64_t> empty{INT64_MAX, 0, INT64_MAX};
    CHECK(tapegraph::io::checked_size(empty, 8, size));
    CHECK(size == 0);
}

} // namespace host_array_test
