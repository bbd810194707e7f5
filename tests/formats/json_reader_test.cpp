#include <doctest/doctest.h>

#include <tapegraph/formats/json_reader.hpp>

#include <support/temporary_folder.hpp>

#include <limits>

namespace json_reader_test {

using namespace tapegraph::io;
using namespace std::string_literals;
using tapegraph::argument_error;
using tapegraph::data_error;

namespace {

/// What reading a whole text throws; empty for JSON.
std::string refusal(const std::string& text, int depth = 64) {
    return support::message_of<data_error>([&] {
        json_reader json(text, "T", depth);
        json.skip();
        json.end();
    });
}
std::string string_of(const std::string& text) {
    json_reader json(text, "T");
    const std::string value = json.string();
    json.end();
    return value;
}
double number_of(const std::string& text) {
    json_reader json(text, "T");
    const double value = json.number();
    json.end();
    return value;
}

} // namespace

TEST_CASE("values are read as the requested type") {
    json_reader json(
        R"( { "name" : "x\ty", "list":[1,-2 , 3.5e1,[],{}], "on":true,"off":false, "none":null, "last": 18446744073709551615 } )",
        "T");
    std::string name;
    REQUIRE(json.peek() == json_kind::object);
    json.begin_object();
    REQUIRE(json.next_name(name));
    CHECK(name == "name");
    CHECK(json.string() == "x\ty");
    REQUIRE(json.next_name(name));
    CHECK(json.peek() == json_kind::array);
    json.begin_array();
    REQUIRE(json.next_element());
    CHECK(json.unsigned_integer() == 1);
    REQUIRE(json.next_element());
    CHECK(json.integer() == -2);
    REQUIRE(json.next_element());
    CHECK(json.number() == 35.0);
    REQUIRE(json.next_element());
    json.begin_array();
    CHECK(!json.next_element());
    REQUIRE(json.next_element());
    json.begin_object();
    CHECK(!json.next_name(name));
    CHECK(!json.next_element());
    REQUIRE(json.next_name(name));
    CHECK(json.boolean());
    REQUIRE(json.next_name(name));
    CHECK(!json.boolean());
    REQUIRE(json.next_name(name));
    json.null();
    REQUIRE(json.next_name(name));
    CHECK(name == "last");
    CHECK(json.unsigned_integer() == std::numeric_limits<std::uint64_t>::max());
    CHECK(!json.next_name(name));
    json.end();
}

TEST_CASE("strings: every escape, and characters of one to four bytes") {
    CHECK(string_of(R"("\"\\\/\b\f\n\r\t")") == "\"\\/\b\f\n\r\t");
    CHECK(string_of(R"("\u0000\u0041\u00e9\u20AC\uD83D\uDE00")") == "\0A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"s);
    CHECK(string_of("\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"") == "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    CHECK(string_of("\"\"").empty());
    for (const char* wrong :
         {R"("\x41")", R"("\u12g4")", R"("\u12)", R"("\uD83D")", R"("\uDE00\uD83D")", R"("\uD83D\u0041")", "\"\n\"",
          "\"a", "\"\\", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"", "\"\xE2\x82\""}) {
        CAPTURE(wrong);
        CHECK(support::contains(refusal(wrong), "T: is not valid JSON: "));
    }
    CHECK(refusal("[1,\"a\n\"]") ==
          "T: is not valid JSON: a string holds a control character, there is '\\n\"]' (offset 5)");
    CHECK(support::contains(refusal("\"ab\xFF\""), "a string is not UTF-8, from its byte 2 on (offset 1)"));
}

TEST_CASE("numbers are exact, and what is none is refused") {
    CHECK(number_of("0") == 0);
    CHECK(number_of("-0.0") == 0);
    CHECK(number_of("0.1") == 0.1);
    CHECK(number_of("1E+2") == 100);
    CHECK(number_of("2.2250738585072014e-308") == std::numeric_limits<double>::min());
    CHECK(number_of("1e-999") == 0);
    CHECK(number_of("9007199254740993") == 9007199254740992.0);
    for (const char* wrong : {"01", "-", "+1", ".5", "1.", "1e", "1e+", "0x1", "NaN", "Infinity", "--1", "1 2"}) {
        CAPTURE(wrong);
        CHECK(support::contains(refusal(wrong), "is not valid JSON"));
    }
    CHECK(support::contains(refusal("1e999"), "'1e999' is not a number that a double holds (offset 0)"));
    const auto whole = [](const std::string& text) {
        return support::message_of<data_error>([&] { json_reader(text, "T").integer(); });
    };
    CHECK(whole("9223372036854775807").empty());
    CHECK(whole("-9223372036854775808").empty());
    CHECK(whole("9223372036854775808") == "T: '9223372036854775808' is not an integer of 64 bits (offset 0)");
    CHECK(support::contains(whole("1.0"), "'1.0' is not an integer"));
    CHECK(support::contains(whole("1e3"), "'1e3' is not an integer"));
    CHECK(whole("\"1\"") == "T: is not an integer of 64 bits (offset 0)");
    CHECK(support::contains(support::message_of<data_error>([] { json_reader("-1", "T").unsigned_integer(); }),
                            "'-1' is not an integer from 0"));
}

TEST_CASE("what is no JSON is refused with its offset") {
    CHECK(refusal("") == "T: is not valid JSON: expected a value, there is the end (offset 0)");
    CHECK(refusal("[1 2]") == "T: is not valid JSON: expected ',' or ']', there is '2]' (offset 3)");
    CHECK(refusal("{\"a\" 1}") == "T: is not valid JSON: expected ':', there is '1}' (offset 5)");
    CHECK(refusal("{a:1}") == "T: is not valid JSON: expected a name in quotes, there is 'a:1}' (offset 1)");
    CHECK(refusal("[1,]") == "T: is not valid JSON: expected a value, there is ']' (offset 3)");
    CHECK(refusal("{} x") == "T: is not valid JSON: expected nothing more, there is 'x' (offset 3)");
    CHECK(refusal("{\"a\":1,\"b\":2,\"a\":3}") == "T: holds the name 'a' twice (offset 13)");
    CHECK(refusal("{\"a\":{\"a\":1},\"b\":[{\"a\":1}]}").empty());
    for (const char* wrong : {"tru", "fals", "nul", "[", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "[1", "[1,", "]", "}",
                              "{,}", "[,]", "{\"a\":1,}"})
        CHECK(support::contains(refusal(wrong), "is not valid JSON"));
    CHECK(refusal(std::string(3, '[') + std::string(3, ']'), 3).empty());
    CHECK(refusal(std::string(4, '[') + std::string(4, ']'), 3) == "T: is nested more than 3 deep (offset 3)");
    CHECK(support::contains(refusal(std::string(1000000, '[')), "nested more than 64 deep"));
}

TEST_CASE("what is written is read back") {
    std::string all;
    for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
    all += "\xC3\xA9\xF0\x9F\x98\x80";
    CHECK(string_of(json_string(all)) == all);
    CHECK(json_string("a\"\\\n\x01") == R"("a\"\\\n\u0001")");
    CHECK(support::message_of<argument_error>([] { json_string("ab\xFFy"); }) ==
          "json_string: 'ab' is followed by bytes that are not UTF-8");
    for (const double value : {0.1, -1e300, 5e-324, 3.0, 1.0 / 3}) CHECK(number_of(json_number(value)) == value);
    CHECK(json_number(std::numeric_limits<double>::quiet_NaN()) == "null");
}

} // namespace json_reader_test
