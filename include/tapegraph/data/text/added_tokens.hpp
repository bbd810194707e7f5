#pragma once

#include <tapegraph/data/text/tokens.hpp>
#include <tapegraph/data/text/unicode.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Tokens that tokenizers find in texts literally, beside those of their models.

namespace tapegraph::data {

/// A token outside a model's vocabulary: "<|endoftext|>". It is found in texts literally.
struct added_token {
    std::string content;
    std::int32_t id = 0;
    bool special = true;      ///< decode can leave it out
    bool single_word = false; ///< found only where no unicode::is_word_character touches it
    bool lstrip = false;      ///< includes the blanks before it
    bool rstrip = false;      ///< includes the blanks after it
    bool normalized = false;  ///< looked for after the normalizers, which change its content, too; otherwise before
};

namespace detail {

/// Finds added tokens in texts.
class added_token_finder {
public:
    added_token_finder() = default;
    /// `texts`: what is looked for, the tokens' contents or what normalizers made of them.
    added_token_finder(std::vector<added_token> added, std::vector<std::string> texts)
        : added_(std::move(added)), texts_(std::move(texts)) {
        for (std::size_t i = 0; i < texts_.size(); ++i) {
            (added_[i].normalized ? some_normalized_ : some_literal_) = true;
            if (!texts_[i].empty()) order_.push_back(i);
        }
        const auto content = [&](std::size_t i) -> const std::string& { return texts_[i]; };
        std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
            const auto first_a = static_cast<unsigned char>(content(a)[0]),
                       first_b = static_cast<unsigned char>(content(b)[0]);
            return first_a != first_b ? first_a < first_b : content(a).size() > content(b).size();
        });
        for (const std::size_t i : order_) ++begin_[static_cast<unsigned char>(content(i)[0]) + 1];
        for (std::size_t b = 0; b < 256; ++b) begin_[b + 1] += begin_[b];
    }
    /// Appends the added tokens of a text, and gives what is between them to `rest`.
    template <class Rest>
    void split(std::string_view text, bool find_added, bool normalized, std::vector<std::int32_t>& ids,
               const Rest& rest) const {
        std::size_t done = 0;
        if (!find_added || !(normalized ? some_normalized_ : some_literal_)) return rest(text);
        for (std::size_t at = 0; at < text.size();) {
            std::size_t begin = at, end = at;
            const added_token* const found = added_at(text, at, normalized, end);
            if (found == nullptr) {
                ++at;
                continue;
            }
            while (found->lstrip && begin > done && detail::is_blank(text[begin - 1])) --begin;
            while (found->rstrip && end < text.size() && detail::is_blank(text[end])) ++end;
            rest(text.substr(done, begin - done));
            ids.push_back(found->id);
            done = at = end;
        }
        rest(text.substr(done));
    }

private:
    /// The longest added token that starts there, of those that are looked for in normalized texts or of the
    /// others, and the end of its content; null if there is none.
    const added_token* added_at(std::string_view text, std::size_t at, bool normalized, std::size_t& end) const {
        const auto first = static_cast<unsigned char>(text[at]);
        for (std::size_t i = begin_[first]; i < begin_[first + 1]; ++i) {
            const added_token& each = added_[order_[i]];
            const std::string& content = texts_[order_[i]];
            if (each.normalized != normalized || !text.substr(at).starts_with(content)) continue;
            end = at + content.size();
            if (each.single_word) {
                std::size_t before = at;
                while (before > 0 && detail::continues_character(text[--before])) {}
                if (at > 0 && unicode::is_word_character(decode_utf8(text, before).code)) continue;
                if (end < text.size() && unicode::is_word_character(decode_utf8(text, end).code)) continue;
            }
            return &each;
        }
        return nullptr;
    }

    std::vector<added_token> added_;
    std::vector<std::string> texts_; // what is looked for
    std::vector<std::size_t> order_; // by first byte, long ones first
    bool some_normalized_ = false, some_literal_ = false;
    std::size_t begin_[257] = {};
};

} // namespace detail

} // namespace tapegraph::data
