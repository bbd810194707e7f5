#include <tapegraph/core/number_text.hpp>

#include <doctest/doctest.h>

#include <cerrno>
#include <clocale>
#include <limits>
#include <string>
#include <string_view>

namespace number_text_test {

using tapegraph::number_text;
using tapegraph::rounded_text;

TEST_CASE("a number is shown by the fewest digits that read back") {
    CHECK(number_text(1e-7) == "1e-07");
    CHECK(number_text(0.1) == "0.1");
    CHECK(number_text(0.1f) == "0.1"); // as a double, 0.10000000149011612
    CHECK(number_text(-3.0) == "-3");
    CHECK(number_text(1.0 / 3) == "0.3333333333333333");
    CHECK(number_text(-0.0) == "-0");
    CHECK(number_text(std::numeric_limits<double>::infinity()) == "inf");
    CHECK(number_text(std::numeric_limits<double>::quiet_NaN()) == "nan");
    CHECK(number_text(7) == "7");
    CHECK(number_text(std::numeric_limits<long long>::min()) == "-9223372036854775808");
    CHECK(rounded_text(1.0 / 3, 6) == "0.333333");
    CHECK(rounded_text(600.0, 4) == "600");
    CHECK(rounded_text(1e-300 / 3, 40).size() <= 48);
}

// Where the standard library has std::from_chars, it says what ours must say.
template <class T>
void reads_as_from_chars(std::string_view text) {
    CAPTURE(text);
    T ours = T(-5), expected = T(-5);
    const auto a = tapegraph::detail::read_floating(text.data(), text.data() + text.size(), ours);
    const auto b = tapegraph::detail::read_number(text, expected);
    CHECK(a.ptr - text.data() == b.ptr - text.data());
    CHECK((a.ec == b.ec));
    CHECK(number_text(ours) == number_text(expected));
}

TEST_CASE("numbers are read as by std::from_chars") {
    errno = 3;
    for (const std::string_view text : {"1",
                                        "-1.5",
                                        "0.1",
                                        ".5",
                                        "5.",
                                        "1e5",
                                        "1E-5",
                                        "1e+05",
                                        "1e",
                                        "1e+",
                                        "1e-x",
                                        "2.5e3z",
                                        "",
                                        "-",
                                        ".",
                                        "-.",
                                        "+1",
                                        " 1",
                                        "x",
                                        "e5",
                                        "--1",
                                        "1.2.3",
                                        "1,5",
                                        "0x10",
                                        "inf",
                                        "-INF",
                                        "infinity",
                                        "infinit",
                                        "nan",
                                        "-nan",
                                        "NaN2",
                                        "in",
                                        "1e400",
                                        "-1e400",
                                        "1e39",
                                        "1e-400",
                                        "1e-50",
                                        "-0",
                                        "0e99999",
                                        "4.9e-324",
                                        "1e-45",
                                        "1.7976931348623157e308",
                                        "179769313486231580793728971405301",
                                        "0.30000000000000004",
                                        "9007199254740993",
                                        "16777217",
                                        "2.2250738585072011e-308",
                                        "1.00000005960464477539062500000000000001",
                                        "00012.50"}) {
        reads_as_from_chars<double>(text);
        reads_as_from_chars<float>(text);
    }
    CHECK(errno == 3);
}

TEST_CASE("numbers read back as they were, whatever the locale") {
    const std::string before = std::setlocale(LC_NUMERIC, nullptr);
    for (const char* const name : {"C", "de_DE.UTF-8", "fr_FR.UTF-8", "German_Germany"}) { // those that the machine has
        if (std::setlocale(LC_NUMERIC, name) == nullptr) continue;
        for (const double x : {0.1, -1.0 / 3, 1e-310, 5e300, 123456789.125}) {
            const std::string text = number_text(x);
            CHECK(text.find(',') == std::string::npos);
            double back = 0;
            CHECK(tapegraph::detail::read_floating(text.data(), text.data() + text.size(), back).ptr ==
                  text.data() + text.size());
            CHECK(back == x);
        }
    }
    std::setlocale(LC_NUMERIC, before.c_str());
}

} // namespace number_text_test
