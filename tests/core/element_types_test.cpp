#include <tapegraph/core/element_types.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace element_types_test {

namespace tg = tapegraph;
using tg::dtype;

namespace {

constexpr std::array all{
#define TG_ROW(name, T, bytes, text) dtype::name,
    TG_ELEMENT_TYPES(TG_ROW)
#undef TG_ROW
};

// Files and frozen programs have the numbers.
static_assert(all.size() == 13 && static_cast<int>(dtype::f32) == 0 && static_cast<int>(dtype::bf16) == 3 &&
              static_cast<int>(dtype::boolean) == 12);

// Every row agrees with its C++ type, in both directions.
#define TG_ROW(name, T, bytes, text)                                                                                   \
    static_assert(std::is_same_v<tg::element_t<dtype::name>, T> && tg::dtype_of<T> == dtype::name &&                   \
                  tg::size_of(dtype::name) == sizeof(T) && std::string_view(tg::name_of(dtype::name)) == text &&       \
                  tg::is_floating(dtype::name) == tg::is_floating_type<T> &&                                           \
                  tg::is_storage_type(dtype::name) == tg::storage_type<T>);
TG_ELEMENT_TYPES(TG_ROW)
#undef TG_ROW

template <class List>
std::vector<dtype> visited() {
    std::vector<dtype> found;
    for (const dtype type : all) {
        dtype seen{};
        const bool has = List::visit(type, [&]<class T>(std::type_identity<T>) { seen = tg::dtype_of<T>; });
        if (!has) continue;
        CHECK(seen == type);
        found.push_back(type);
    }
    return found;
}

} // namespace

TEST_CASE("a visitor is called with the C++ type, and its result comes back") {
    for (const dtype type : all) {
        CHECK(tg::visit_type(type, []<class T>(std::type_identity<T>) { return tg::dtype_of<T>; }) == type);
        CHECK(tg::visit_type(type, []<class T>(std::type_identity<T>) { return sizeof(T); }) == tg::size_of(type));
    }
    static_assert(tg::visit_type(dtype::u16, []<class T>(std::type_identity<T>) {
                      return static_cast<double>(std::numeric_limits<T>::max());
                  }) == 65535);
}

TEST_CASE("a list visits its own types, once each, and no others") {
    using enum dtype;
    CHECK(visited<tg::storage_types>() == std::vector{f16, bf16});
    CHECK(visited<tg::computed_types>() == std::vector{f32, f64});
    CHECK(visited<tg::index_types>() == std::vector{i32, i64});
    CHECK(visited<tg::floating_types>() == std::vector{f32, f64, f16, bf16});
    CHECK(visited<tg::number_types>() == std::vector{f32, f64, f16, bf16, i32, i64});
    CHECK(visited<tg::common_types>() == std::vector{f32, f64, f16, bf16, i32, i64, u8, boolean});
    CHECK(visited<tg::element_types<>>().empty());
    int calls = 0;
    tg::common_types::each(
        [&]<class T>(std::type_identity<T>) { calls += tg::common_types::visit(tg::dtype_of<T>, [](auto) {}); });
    CHECK(calls == 8);
}

TEST_CASE("macros of the table have the rows of the lists, and pass on what follows") {
#define TG_NAME_OF_ROW(name, T, suffix) std::string(tg::name_of(tg::dtype_of<T>)) + suffix,
    const std::vector<std::string> floating{TG_FLOATING_TYPES(TG_NAME_OF_ROW, "!")};
    const std::vector<std::string> common{TG_COMMON_TYPES(TG_NAME_OF_ROW, "?")};
#undef TG_NAME_OF_ROW
    CHECK(floating == std::vector<std::string>{"f32!", "f64!", "f16!", "bf16!"});
    CHECK(common == std::vector<std::string>{"f32?", "f64?", "f16?", "bf16?", "i32?", "i64?", "u8?", "bool?"});
}

} // namespace element_types_test
