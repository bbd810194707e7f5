#include <tapegraph/core/dtype.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <set>
#include <string>

using tapegraph::dtype;
using tapegraph::dtype_of;
using tapegraph::name_of;
using tapegraph::size_of;

static_assert(dtype_of<float> == dtype::f32 && dtype_of<const double> == dtype::f64);
static_assert(dtype_of<bool> == dtype::boolean && dtype_of<std::uint8_t> == dtype::u8);
static_assert(dtype_of<long> == dtype::i64 && dtype_of<long long> == dtype::i64 && dtype_of<unsigned> == dtype::u32);
static_assert(size_of(dtype_of<std::int16_t>) == 2 && size_of(dtype::bf16) == 2 && size_of(dtype::u64) == 8);

TEST_CASE("every dtype has a size and a name of its own") {
    std::set<std::string> names;
    for (int code = 0; code <= static_cast<int>(dtype::boolean); ++code) {
        const auto type = static_cast<dtype>(code);
        CHECK(size_of(type) > 0);
        CHECK(names.insert(name_of(type)).second);
    }
    CHECK(names.count("?") == 0);
    CHECK(std::strcmp(name_of(dtype::f32), "f32") == 0);
}
