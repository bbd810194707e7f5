#pragma once

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/data/text/added_tokens.hpp>
#include <tapegraph/data/text/normalizers.hpp>
#include <tapegraph/data/text/unicode.hpp>
#include <tapegraph/data/text/vocabulary.hpp>
#include <tapegraph/formats/quoted_text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// WordPiece, the tokens of BERT (Devlin et al., arXiv 1810.04805): words are cut into the longest
/// pieces that the vocabulary has, from the left; pieces inside a word begin with "##".

namespace tapegraph::data {

/// What BERT does to a text before it looks for pieces.
struct word_piece_options {
    bool clean_text = true;       ///< removes control characters, and makes spaces of all blanks
    bool separate_chinese = true; ///< each ideograph is a word
    bool lower_case = true;       ///< of all alphabets, character by character
    std::optional<bool>
        strip_accents{};             ///< decomposes letters and removes their accents; without it, as lower_case says
    std::string unknown = "[UNK]";   ///< of a word that has no pieces
    std::string prefix = "##";       ///< of pieces inside words
    std::int64_t longest_word = 100; ///< characters; a longer word is unknown
};

namespace detail {

inline bool is_ideograph(std::uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}
inline bool is_word_piece_sign(std::uint32_t c) {
    if (c < 0x80) return c > ' ' && c < 0x7F && !unicode::is_letter(c) && !unicode::is_number(c);
    return unicode::is_punctuation(c);
}

/// A text after `change(code, result)` of each character; invalid UTF-8 is U+FFFD there.
template <class Change>
std::string changed_characters(std::string_view text, const Change& change) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const utf8_character next = decode_utf8(text, at);
        change(next.valid ? next.code : 0xFFFDu, result);
        at += next.length;
    }
    return result;
}

inline std::string bert_normalized(std::string_view text, const word_piece_options& o) {
    std::string result = changed_characters(text, [&](std::uint32_t c, std::string& to) {
        const bool line = c == '\t' || c == '\n' || c == '\r';
        if (o.clean_text && (c == 0 || c == 0xFFFD || (!line && unicode::is_control(c)))) return;
        if (o.clean_text && unicode::is_space(c)) c = ' ';
        const bool apart = o.separate_chinese && is_ideograph(c);
        if (apart) to += ' ';
        append_utf8(to, c);
        if (apart) to += ' ';
    });
    if (o.strip_accents.value_or(o.lower_case))
        result = changed_characters(unicode::normalized(result, unicode::normal_form::nfd),
                                    [](std::uint32_t c, std::string& to) {
                                        if (!unicode::is_nonspacing_mark(c)) append_utf8(to, c);
                                    });
    return o.lower_case ? normalized_text(result, text_normalizer::lower_case) : result;
}

} // namespace detail

/// Converts texts to tokens and back. Const functions may be called by many threads at once.
///
///     const auto words = data::load_word_piece("bert/tokenizer.json"); // or vocab.txt: data/text/word_piece_files.hpp
///     words.encode("unaffable");                                       // un, ##aff, ##able
class word_piece {
public:
    template <class Mistake = no_such_option_in<word_piece_options>>
    word_piece(const std::vector<std::string>&, ...) = delete;

    /// `tokens`: by id; an empty one is an id without a token. Throws argument_error for a token
    /// that appears twice, and for a vocabulary without the unknown token.
    explicit word_piece(std::vector<std::string> tokens, word_piece_options options = {},
                        std::vector<added_token> added = {})
        : tokens_(std::move(tokens)), options_(std::move(options)), added_(std::move(added)) {
        for (std::size_t id = 0; id < tokens_.size(); ++id)
            if (!tokens_[id].empty() && !ids_.emplace(tokens_[id], static_cast<std::int32_t>(id)).second)
                throw argument_error("word_piece: the token " + io::quoted_text(tokens_[id]) + " appears twice");
        const auto unknown = ids_.find(options_.unknown);
        if (unknown == ids_.end())
            throw argument_error("word_piece: the unknown token " + io::quoted_text(options_.unknown) +
                                 " is not a token");
        unknown_ = unknown->second;
        std::vector<std::string> texts;
        const std::size_t most = 2 * (tokens_.size() + added_.size()) + 1000;
        for (const added_token& each : added_) {
            const auto at = static_cast<std::size_t>(each.id);
            if (each.content.empty() || each.id < 0 || at >= most)
                throw argument_error("word_piece: the added token " + io::quoted_text(each.content) + " has the id " +
                                     std::to_string(each.id));
            if (at >= tokens_.size()) tokens_.resize(at + 1);
            if (!tokens_[at].empty() && tokens_[at] != each.content)
                throw argument_error("word_piece: the added token " + io::quoted_text(each.content) + " has the id " +
                                     std::to_string(each.id) + ", which is that of another token");
            tokens_[at] = each.content;
            texts.push_back(each.normalized ? detail::bert_normalized(each.content, options_) : each.content);
        }
        finder_ = detail::added_token_finder(added_, std::move(texts));
    }

    /// The options it was made with.
    const word_piece_options& options() const { return options_; }
    /// The vocabulary in the order of its ids.
    const std::vector<std::string>& tokens() const { return tokens_; }
    /// Tokens that are found in the text before it is split.
    const std::vector<added_token>& added() const { return added_; }
    /// The number of ids: an embedding's input_dim.
    std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
    /// The id of a token, or nothing.
    std::optional<std::int32_t> id_of(std::string_view token) const {
        for (const added_token& each : added_)
            if (each.content == token) return each.id;
        if (const auto found = ids_.find(token); found != ids_.end()) return found->second;
        return {};
    }

    /// The tokens of a text, without [CLS] and [SEP] around them. `find_added`: whether added
    /// tokens, such as "[MASK]", are looked for in it; false for untrusted texts.
    std::vector<std::int32_t> encode(std::string_view text, bool find_added = true) const {
        std::vector<std::int32_t> ids;
        finder_.split(text, find_added, false, ids, [&](std::string_view rest) {
            finder_.split(detail::bert_normalized(rest, options_), find_added, true, ids,
                          [&](std::string_view part) { encode_words(part, ids); });
        });
        return ids;
    }
    /// The ids of the text, as `encode` gives them.
    std::vector<std::int32_t> operator()(std::string_view text) const { return encode(text); }

    /// Words with spaces between them, pieces joined to them, and no space before .?!, and English
    /// endings. The text that was encoded is not restored. Throws range_error for an unused id.
    std::string decode(std::span<const std::int32_t> ids, bool skip_special = false) const {
        std::string text;
        bool begun = false;
        for (const std::int32_t id : ids) {
            if (id < 0 || id >= size() || tokens_[static_cast<std::size_t>(id)].empty())
                throw range_error("word_piece: no token has the id " + std::to_string(id));
            const std::string_view token = tokens_[static_cast<std::size_t>(id)];
            const bool special = std::any_of(added_.begin(), added_.end(),
                                             [&](const added_token& a) { return a.id == id && a.special; });
            if (special && skip_special) continue;
            const bool inside = begun && !options_.prefix.empty() && token.starts_with(options_.prefix);
            if (begun && !inside && !joins(token)) text += ' ';
            text += inside ? token.substr(options_.prefix.size()) : token;
            begun = true;
        }
        return text;
    }

private:
    static bool joins(std::string_view token) {
        constexpr std::string_view without_blank[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
        return std::any_of(std::begin(without_blank), std::end(without_blank),
                           [&](std::string_view each) { return token.starts_with(each); });
    }
    /// Words end at blanks, which vanish, and at signs, which are words.
    void encode_words(std::string_view text, std::vector<std::int32_t>& ids) const {
        std::size_t begin = 0;
        for (std::size_t at = 0; at < text.size();) {
            const utf8_character next = decode_utf8(text, at);
            const bool blank = next.valid && unicode::is_space(next.code);
            if (blank || (next.valid && detail::is_word_piece_sign(next.code))) {
                encode_word(text.substr(begin, at - begin), ids);
                if (!blank) encode_word(text.substr(at, next.length), ids);
                begin = at + next.length;
            }
            at += next.length;
        }
        encode_word(text.substr(begin), ids);
    }
    void encode_word(std::string_view word, std::vector<std::int32_t>& ids) const {
        if (word.empty()) return;
        const std::size_t before = ids.size();
        std::vector<std::size_t> ends; // of characters
        for (std::size_t at = 0; at < word.size();) ends.push_back(at += decode_utf8(word, at).length);
        bool known = static_cast<std::int64_t>(ends.size()) <= options_.longest_word;
        std::string piece;
        for (std::size_t first = 0; known && first < ends.size();) {
            const std::size_t begin = first == 0 ? 0 : ends[first - 1];
            std::size_t last = ends.size();
            for (; last > first; --last) {
                piece.assign(first == 0 ? "" : options_.prefix).append(word.substr(begin, ends[last - 1] - begin));
                if (const auto found = ids_.find(piece); found != ids_.end()) {
                    ids.push_back(found->second);
                    break;
                }
            }
            known = last > first;
            first = last;
        }
        if (known) return;
        ids.resize(before);
        ids.push_back(unknown_);
    }

    std::vector<std::string> tokens_;
    word_piece_options options_;
    std::vector<added_token> added_;
    detail::text_map<std::int32_t> ids_;
    detail::added_token_finder finder_;
    std::int32_t unknown_ = 0;
};

} // namespace tapegraph::data
