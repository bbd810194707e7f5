#include <tapegraph/data/text/unicode.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <zlib.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace unicode_test {

using namespace tapegraph;
namespace unicode = data::unicode;
using codes = std::vector<std::uint32_t>;

TEST_CASE("every character encodes and decodes") {
    std::string all;
    std::int64_t count = 0;
    for (std::uint32_t code = 0; code < 0x110000; ++code) {
        if (code >= 0xD800 && code < 0xE000) continue;
        std::string one;
        data::append_utf8(one, code);
        const auto back = data::decode_utf8(one, 0);
        if (!back.valid || back.code != code || back.length != one.size()) FAIL("code " << code);
        all += one;
        ++count;
    }
    CHECK(all.size() == 0x80 + 2 * 0x780 + 3 * (0xF800 - 0x800) + 4 * 0x100000);
    CHECK(data::find_invalid_utf8(all) == std::string::npos);
    CHECK(static_cast<std::int64_t>(data::code_points(all).size()) == count);
    CHECK(data::repaired_utf8(all) == all);
    std::string text;
    for (const std::uint32_t code : {0xD800u, 0xDFFFu, 0x110000u})
        CHECK_THROWS_AS(data::append_utf8(text, code), range_error);
    CHECK(text.empty());
}

TEST_CASE("what is no UTF-8, cut as Python's errors='replace' cuts it") {
    // bytes(...).decode('utf-8', 'replace') of CPython 3.11
    const auto repaired = [](const std::string& text) { return data::code_points(data::repaired_utf8(text)); };
    constexpr std::uint32_t bad = data::replacement_character;
    CHECK(repaired("a\x80z") == codes{'a', bad, 'z'});
    CHECK(repaired("\xC0\x80") == codes{bad, bad});                   // a longer form than needed
    CHECK(repaired("\xE0\x9F\x80") == codes{bad, bad, bad});          // the same
    CHECK(repaired("\xED\xA0\x80") == codes{bad, bad, bad});          // a surrogate
    CHECK(repaired("\xF4\x90\x80\x80") == codes{bad, bad, bad, bad}); // above U+10FFFF
    CHECK(repaired("\xF0\x9F\x98") == codes{bad});                    // cut off
    CHECK(repaired("\xF0\x9F\x98z") == codes{bad, 'z'});
    CHECK(repaired("\xE2\x82\xE2\x82\xAC") == codes{bad, 0x20AC});
    CHECK(repaired("\xFF\xFE") == codes{bad, bad});
    CHECK(data::find_invalid_utf8("abc\xE2\x82") == 3);
    CHECK_NOTHROW(data::check_utf8("\xE2\x82\xAC", "x"));
    CHECK(support::message_of<data_error>([] { data::check_utf8("ab\xE2\x82", "'book.txt'"); }) ==
          "'book.txt': no UTF-8 at byte 2: 0xe2");
}

TEST_CASE("letters, numbers, marks, punctuation, blanks") {
    for (const std::uint32_t code :
         codes{'a', 'Z', 0xAA, 0xDF, 0x3B1, 0x416, 0x5D0, 0x905, 0x4E2D, 0x9FFF, 0xAC00, 0x1D400, 0x20000, 0x2A6DF})
        if (!unicode::is_letter(code)) FAIL("letter " << code);
    for (const std::uint32_t code :
         codes{'0', '[', '`', '{', ' ', 0xB2, 0xD7, 0xF7, 0x300, 0x660, 0x2160, 0x1F600, 0x10FFFF})
        if (unicode::is_letter(code)) FAIL("no letter " << code);
    for (const std::uint32_t code : codes{'0', '9', 0xB2, 0xBC, 0x660, 0x2160, 0x2460, 0x3007, 0x1D7CE, 0x1F100})
        if (!unicode::is_number(code)) FAIL("number " << code);
    for (const std::uint32_t code : codes{'a', '/', ':', 0x4E00, 0x10FFFF})
        if (unicode::is_number(code)) FAIL("no number " << code);
    CHECK(unicode::is_mark(0x301));
    CHECK(unicode::is_mark(0x0903));
    CHECK_FALSE(unicode::is_mark('a'));
    CHECK(unicode::is_punctuation('!'));
    CHECK(unicode::is_punctuation(0xBF));
    CHECK(unicode::is_punctuation(0x3002));
    CHECK_FALSE(unicode::is_punctuation('$'));
    CHECK_FALSE(unicode::is_punctuation('a'));
    std::int64_t spaces = 0, letters = 0, numbers = 0, ascii_signs = 0;
    for (std::uint32_t code = 0; code < 0x110000; ++code) {
        spaces += unicode::is_space(code);
        letters += unicode::is_letter(code);
        numbers += unicode::is_number(code);
        ascii_signs += code < 128 && unicode::is_punctuation(code);
        if (unicode::is_letter(code) + unicode::is_number(code) + unicode::is_mark(code) + unicode::is_space(code) +
                unicode::is_punctuation(code) >
            1)
            FAIL("two kinds " << code);
    }
    CHECK(spaces == 25); // PropList.txt, White_Space
    CHECK(ascii_signs == 23);
    CHECK(letters > 131600); // 131,612 in Unicode 14, and the newer ones of utf8proc
    CHECK(numbers > 1790);   // 1,791
}

TEST_CASE("what belongs to a word") {
    for (const std::uint32_t code : codes{'a', '7', '_', 0xE9, 0x301, 0x660, 0x2167, 0x203F, 0x200D, 0x24B6, 0x1F130})
        if (!unicode::is_word_character(code)) FAIL("in words " << code);
    for (const std::uint32_t code : codes{' ', '-', 0xA0, 0xB2, 0x9F9, 0x200E, 0x2460, 0x3002, 0x1F600})
        if (unicode::is_word_character(code)) FAIL("between words " << code);
}

TEST_CASE("lower case as Python's") {
    const auto lower = [](const std::string& text) { return unicode::lower_case_of(text); };
    CHECK(lower("ABC xyz 09 @[`{") == "abc xyz 09 @[`{");
    CHECK(lower("\xC3\x80\xC3\x96\xC3\x97\xC3\x9E\xC3\x9F") == "\xC3\xA0\xC3\xB6\xC3\x97\xC3\xBE\xC3\x9F"); // ÀÖ×Þß
    CHECK(lower("\xD0\x96\xD0\x81\xD3\x80") == "\xD0\xB6\xD1\x91\xD3\x8F");                                 // ЖЁӀ
    CHECK(lower("\xC4\xB0") == "i\xCC\x87");                                                                // İ
    CHECK(lower("\xE1\xBA\x9E\xE2\x84\xA6\xF0\x90\x90\x80") == "\xC3\x9F\xCF\x89\xF0\x90\x90\xA8"); // ẞΩ and Deseret
    // Sigma at the end of a word and elsewhere: ΟΔΟΣ ΣΑΣ. Σ Α'Σ
    CHECK(lower("\xCE\x9F\xCE\x94\xCE\x9F\xCE\xA3 \xCE\xA3\xCE\x91\xCE\xA3. \xCE\xA3 \xCE\x91'\xCE\xA3") ==
          "\xCE\xBF\xCE\xB4\xCE\xBF\xCF\x82 \xCF\x83\xCE\xB1\xCF\x82. \xCF\x83 \xCE\xB1'\xCF\x82");
    CHECK(lower("A\xFF\x80Z") == "a\xFF\x80z"); // no UTF-8 stays
    CHECK(unicode::lower_case(0x130) == 'i');
    CHECK(unicode::lower_case(0x1C4) == 0x1C6);
    CHECK(unicode::lower_case(0x1C5) == 0x1C6);
    CHECK(unicode::lower_case(0x101) == 0x101); // between two capitals
    std::int64_t changed = 0;
    for (std::uint32_t code = 0; code < 0x110000; ++code) {
        const auto small = unicode::lower_case(code);
        changed += small != code;
        if (unicode::lower_case(small) != small) FAIL("twice " << code);
    }
    CHECK(changed >= 1433); // those of CPython 3.11 (Unicode 14), U+0130 among them
}

TEST_CASE("normal forms as Python's") {
    using form = unicode::normal_form;
    const auto all = [](const std::vector<std::uint32_t>& text) {
        std::string bytes;
        for (const std::uint32_t code : text) data::append_utf8(bytes, code);
        std::vector<codes> forms;
        for (const form each : {form::nfd, form::nfc, form::nfkd, form::nfkc})
            forms.push_back(data::code_points(unicode::normalized(bytes, each)));
        return forms;
    };
    // unicodedata.normalize of CPython 3.11: NFD, NFC, NFKD, NFKC
    CHECK(all({'e', 0x301, 0x323, 0xFB01, 0x2460}) == std::vector<codes>{{'e', 0x323, 0x301, 0xFB01, 0x2460},
                                                                         {0x1EB9, 0x301, 0xFB01, 0x2460},
                                                                         {'e', 0x323, 0x301, 'f', 'i', '1'},
                                                                         {0x1EB9, 0x301, 'f', 'i', '1'}});
    CHECK(all({0x1E9B, 0x323}) ==
          std::vector<codes>{{0x17F, 0x323, 0x307}, {0x1E9B, 0x323}, {'s', 0x323, 0x307}, {0x1E69}});
    CHECK(all({0x1100, 0x1161, 0x11A8})[1] == codes{0xAC01});    // Hangul
    CHECK(all({0x212B, 0x958})[1] == codes{0xC5, 0x915, 0x93C}); // which is not composed again
    CHECK(all({'a', 0, 0xE9})[0] == codes{'a', 0, 'e', 0x301});
    CHECK(unicode::normalized("", form::nfc).empty());
    CHECK(unicode::normalized("e\xCC\x81\xFF\xC3\xA9\xCC", form::nfc) == "\xC3\xA9\xFF\xC3\xA9\xCC"); // no UTF-8 stays
    // Characters that have been assigned for long, joined by line feeds: zlib.crc32
    const std::pair<form, uLong> sums[] = {
        {form::nfd, 0xfc2a4b51}, {form::nfc, 0xa1196c0c}, {form::nfkd, 0x55f823e9}, {form::nfkc, 0x31db0c86}};
    for (const auto& [each, expected] : sums) {
        std::string text;
        for (const auto& [first, last] : {std::pair{0xA0u, 0x24Fu},
                                          {0x300, 0x36F},
                                          {0x1E00, 0x1EFF},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFA6D},
                                          {0xFB00, 0xFB06},
                                          {0x2F800, 0x2FA1D}})
            for (std::uint32_t code = first; code <= last; ++code) {
                std::string one;
                data::append_utf8(one, code);
                text.append(text.empty() ? "" : "\n").append(unicode::normalized(one, each));
            }
        CHECK(::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())) == expected);
    }
}

} // namespace unicode_test
