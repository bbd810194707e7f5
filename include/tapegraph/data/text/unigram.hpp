#pragma once

#include <tapegraph/data/text/added_tokens.hpp>
#include <tapegraph/data/text/byte_pair.hpp>
#include <tapegraph/data/text/normalizers.hpp>
#include <tapegraph/data/text/precompiled_normalizer.hpp>
#include <tapegraph/data/text/vocabulary.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// SentencePiece's unigram language model (Kudo, arXiv 1804.10959), the tokens of T5, XLM-R and
/// ALBERT: of all ways to cut a text into pieces the one whose scores have the greatest sum.

namespace tapegraph::data {

/// Writes `to` for each `from`.
struct text_replacement {
    std::string from, to;
    bool runs_of_two = false; ///< for each run of two or more of `from`, which is one character
};
/// Removes blanks of all alphabets at the ends of a text.
struct text_strip {
    bool left = true, right = true;
};
/// One change of a text before it is cut.
using text_change = std::variant<text_normalizer, precompiled_normalizer, text_replacement, text_strip>;

/// The content of a tokenizer's file.
struct unigram_tables {
    std::vector<std::pair<std::string, double>> vocabulary{}; ///< tokens and scores (log probabilities), by id
    std::optional<std::int32_t> unknown{};                    ///< id of what is no piece; without it, that is an error
    bool byte_fallback = false; ///< unknown characters become their bytes, <0x00> to <0xFF>, if they are tokens
    std::vector<added_token> added{};
    std::vector<text_change> changes{}; ///< in this order
    bool split_at_spaces = false;       ///< first, at blanks of all alphabets, which vanish
    blank_prefix prefix = blank_prefix::always;
    bool split_at_blanks = true; ///< pieces begin at each U+2581
};

namespace detail {

inline std::string changed_text(std::string_view text, std::span<const text_change> changes) {
    std::string result(text);
    for (const text_change& each : changes) {
        if (const auto* const by = std::get_if<text_normalizer>(&each)) {
            result = normalized_text(result, *by);
        } else if (const auto* const rules = std::get_if<precompiled_normalizer>(&each)) {
            result = (*rules)(result);
        } else if (const auto* const r = std::get_if<text_replacement>(&each)) {
            std::string changed;
            for (std::size_t at = 0; at < result.size();) {
                std::size_t end = at;
                while (result.compare(end, r->from.size(), r->from) == 0) {
                    end += r->from.size();
                    if (!r->runs_of_two) break;
                }
                if (end > at + (r->runs_of_two ? r->from.size() : 0)) {
                    changed += r->to;
                    at = end;
                } else {
                    changed += result[at++];
                }
            }
            result = std::move(changed);
        } else {
            const auto& strip = std::get<text_strip>(each);
            std::size_t begin = 0, end = result.size();
            while (strip.left && begin < end) {
                const utf8_character c = decode_utf8(result, begin);
                if (!c.valid || !unicode::is_space(c.code)) break;
                begin += c.length;
            }
            while (strip.right && end > begin) {
                std::size_t last = end - 1;
                while (last > begin && continues_character(result[last])) --last;
                const utf8_character c = decode_utf8(result, last);
                if (!c.valid || !unicode::is_space(c.code)) break;
                end = last;
            }
            result = result.substr(begin, end - begin);
        }
    }
    return result;
}

} // namespace detail

/// Converts texts to tokens and back. Const functions may be called by many threads at once.
///
///     const auto words = data::load_unigram("t5/tokenizer.json"); // data/text/unigram_files.hpp
///     words.encode("Hello world");                                 // ▁Hello, ▁world
class unigram {
public:
    /// Throws argument_error for an empty vocabulary, a score that is not a number, an unknown token that is
    /// none, and an added token whose id is another token's.
    explicit unigram(unigram_tables tables) : tables_(std::move(tables)) {
        const std::size_t count = tables_.vocabulary.size();
        if (count == 0) throw argument_error("unigram: the vocabulary is empty");
        if (tables_.unknown && (*tables_.unknown < 0 || static_cast<std::size_t>(*tables_.unknown) >= count))
            throw argument_error("unigram: unk_id " + std::to_string(*tables_.unknown) + " of " +
                                 std::to_string(count) + " tokens");
        double lowest = std::numeric_limits<double>::infinity();
        for (std::size_t id = 0; id < count; ++id) {
            const auto& [token, score] = tables_.vocabulary[id];
            if (!(score > -std::numeric_limits<double>::infinity() && score < std::numeric_limits<double>::infinity()))
                throw argument_error("unigram: the score of " + io::quoted_text(token) + " is not a number");
            lowest = std::min(lowest, score);
            tokens_.push_back(detail::text_of_piece(token));
            special_.push_back(false);
            ids_[token] = static_cast<std::int32_t>(id);
            if (!token.empty()) order_.push_back(static_cast<std::int32_t>(id));
        }
        unknown_score_ = lowest - 10;
        const auto token = [&](std::int32_t id) -> const std::string& { return piece(id); };
        std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
            const int order = token(a).compare(token(b)); // of bytes
            return order != 0 ? order < 0 : a < b;
        });
        // Of equal tokens the last one counts, as in the table of ids.
        std::size_t kept = 0;
        for (std::size_t i = 0; i < order_.size(); ++i)
            if (i + 1 == order_.size() || token(order_[i]) != token(order_[i + 1])) order_[kept++] = order_[i];
        order_.resize(kept);
        for (std::size_t i = 0; i < kept; ++i) ++begin_[static_cast<unsigned char>(token(order_[i])[0]) + 1];
        for (std::size_t b = 0; b < 256; ++b) begin_[b + 1] += begin_[b];
        for (int b = 0; b < 256; ++b) {
            const auto found = ids_.find(detail::byte_piece(static_cast<unsigned char>(b)));
            byte_ids_[b] = found == ids_.end() ? -1 : found->second;
        }
        add_tokens();
    }

    /// What it was made of.
    const unigram_tables& tables() const { return tables_; }
    /// The number of ids, which are in [0, size()): an embedding's input_dim.
    std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
    /// The id of a token as the file has it; nullopt if there is none.
    std::optional<std::int32_t> id_of(std::string_view token) const {
        for (const added_token& each : tables_.added)
            if (each.content == token) return each.id;
        if (const auto found = ids_.find(token); found != ids_.end()) return found->second;
        return {};
    }
    /// Whether an id is that of a special token, which `decode` can skip.
    bool is_special(std::int64_t id) const { return id >= 0 && id < size() && special_[static_cast<std::size_t>(id)]; }

    /// The tokens of a text. `find_added`: whether to look for added tokens; set it to false for
    /// untrusted text, which could otherwise contain them. Throws argument_error for a character that is no
    /// token where there is no unknown one.
    std::vector<std::int32_t> encode(std::string_view text, bool find_added = true) const {
        std::vector<std::int32_t> ids;
        added_.split(text, find_added, false, ids, [&](std::string_view rest) {
            const bool first = rest.data() == text.data();
            const std::string changed = detail::changed_text(rest, tables_.changes);
            added_.split(changed, find_added, true, ids, [&](std::string_view part) {
                encode_words(part, first && part.data() == changed.data(), find_added, ids);
            });
        });
        return ids;
    }
    /// Like encode, with added tokens found.
    std::vector<std::int32_t> operator()(std::string_view text) const { return encode(text); }

    /// The text of some tokens, without the blank that texts get in front. Throws range_error.
    std::string decode(std::span<const std::int32_t> ids, bool skip_special = false) const {
        std::string text;
        for (const auto id : ids) {
            if (id < 0 || id >= size()) throw range_error("unigram: no token has the id " + std::to_string(id));
            if (!skip_special || !is_special(id)) text += tokens_[static_cast<std::size_t>(id)];
        }
        if (tables_.prefix != blank_prefix::never && text.starts_with(' ')) text.erase(0, 1);
        return text;
    }

private:
    struct best_end {
        double score = 0;
        std::int32_t id = -1;
        std::size_t begin = 0;
        bool reached = false;
    };

    const std::string& piece(std::int32_t id) const { return tables_.vocabulary[static_cast<std::size_t>(id)].first; }
    void add_tokens() {
        std::vector<std::string> texts;
        const std::size_t most = 2 * (tokens_.size() + tables_.added.size()) + 1000;
        for (const added_token& each : tables_.added) {
            const auto at = static_cast<std::size_t>(each.id);
            const auto known = ids_.find(each.content);
            if (each.content.empty() || each.id < 0 || at >= most ||
                (known == ids_.end() ? at < tables_.vocabulary.size() : known->second != each.id))
                throw argument_error("unigram: the added token " + io::quoted_text(each.content) + " has the id " +
                                     std::to_string(each.id) + (each.content.empty() ? "" : ", which is not its own"));
            if (at >= tokens_.size()) tokens_.resize(at + 1), special_.resize(at + 1);
            special_[at] = each.special;
            texts.push_back(each.normalized ? detail::changed_text(each.content, tables_.changes) : each.content);
            tokens_[at] = texts.back();
        }
        added_ = detail::added_token_finder(tables_.added, std::move(texts));
    }

    /// Calls f(length, id) for each token that the text has at a place, short ones first.
    template <class F>
    void for_each_token_at(std::string_view text, std::size_t at, const F& f) const {
        const auto first = static_cast<unsigned char>(text[at]);
        auto low = order_.begin() + begin_[first], high = order_.begin() + begin_[first + 1];
        for (std::size_t length = 1; low != high; ++length) {
            if (piece(*low).size() == length) f(length, *low++); // shorter tokens come first
            if (at + length >= text.size()) return;
            const auto byte = static_cast<unsigned char>(text[at + length]);
            const auto byte_of = [&](std::int32_t id) { return static_cast<unsigned char>(piece(id)[length]); };
            low = std::partition_point(low, high, [&](std::int32_t id) { return byte_of(id) < byte; });
            high = std::partition_point(low, high, [&](std::int32_t id) { return byte_of(id) == byte; });
        }
    }

    void encode_words(std::string_view text, bool first, bool trusted, std::vector<std::int32_t>& ids) const {
        if (!tables_.split_at_spaces) return encode_word(text, first, trusted, ids);
        for (std::size_t at = 0, begin = 0; begin < text.size(); begin = at) {
            std::size_t length = 0;
            const auto is_space = [&] {
                const utf8_character c = decode_utf8(text, at);
                length = c.length;
                return c.valid && unicode::is_space(c.code);
            };
            while (at < text.size() && is_space()) at += length;
            begin = at;
            while (at < text.size() && !is_space()) at += length;
            encode_word(text.substr(begin, at - begin), first && begin == 0, trusted, ids);
        }
    }
    void encode_word(std::string_view text, bool first, bool trusted, std::vector<std::int32_t>& ids) const {
        if (text.empty()) return;
        std::string marked;
        if (tables_.prefix != blank_prefix::none) {
            marked = normalized_text(text, text_normalizer::mark_blanks);
            const bool begins =
                tables_.prefix == blank_prefix::always || (tables_.prefix == blank_prefix::first && first);
            if (begins && !marked.starts_with(blank_sign)) marked.insert(0, blank_sign);
            text = marked;
        }
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end =
                tables_.split_at_blanks ? std::min(text.find(blank_sign, at + 1), text.size()) : text.size();
            encode_piece(text.substr(at, end - at), trusted, ids);
            at = end;
        }
    }
    /// The best way to each place, from the left (Viterbi). Neighbours that are unknown become one token. `trusted`:
    /// special tokens of the vocabulary are pieces, too.
    void encode_piece(std::string_view text, bool trusted, std::vector<std::int32_t>& ids) const {
        std::vector<best_end> best(text.size() + 1);
        best[0].reached = true;
        const auto reach = [&](std::size_t begin, std::size_t end, double score, std::int32_t id) {
            best_end& to = best[end];
            const double sum = best[begin].score + score;
            if (!to.reached || sum > to.score) to = {sum, id, begin, true};
        };
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t character = decode_utf8(text, at).length;
            bool known = false;
            for_each_token_at(text, at, [&](std::size_t length, std::int32_t id) {
                if (!trusted && is_special(id)) return;
                reach(at, at + length, tables_.vocabulary[static_cast<std::size_t>(id)].second, id);
                known = known || length == character;
            });
            if (!known) reach(at, at + character, unknown_score_, -1);
            at += character;
        }
        const auto is_unknown = [&](std::int32_t id) { return id < 0 || (tables_.unknown && id == *tables_.unknown); };
        std::vector<std::pair<std::size_t, std::size_t>> pieces; // the last one first
        bool was_unknown = false;
        for (std::size_t end = text.size(); end > 0; end = best[end].begin) {
            const bool unknown = is_unknown(best[end].id);
            if (unknown && was_unknown)
                pieces.back().first = best[end].begin;
            else
                pieces.emplace_back(best[end].begin, end);
            was_unknown = unknown;
        }
        for (auto each = pieces.rbegin(); each != pieces.rend(); ++each) {
            const std::string_view part = text.substr(each->first, each->second - each->first);
            const auto byte_of = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
            if (const auto found = ids_.find(part); found != ids_.end() && (trusted || !is_special(found->second)))
                ids.push_back(found->second);
            else if (tables_.byte_fallback &&
                     std::all_of(part.begin(), part.end(), [&](char c) { return byte_of(c) >= 0; }))
                for (const char c : part) ids.push_back(byte_of(c));
            else if (tables_.unknown)
                ids.push_back(*tables_.unknown);
            else
                throw argument_error("unigram: no token for " + io::quoted_text(part) + ", and no unknown one");
        }
    }

    unigram_tables tables_;
    std::vector<std::string> tokens_; // texts of each id
    std::vector<bool> special_;
    detail::text_map<std::int32_t> ids_; // of the vocabulary
    std::vector<std::int32_t> order_;    // ids by the bytes of their tokens
    std::ptrdiff_t begin_[257] = {};     // of the tokens with each first byte
    std::int32_t byte_ids_[256] = {};
    double unknown_score_ = 0;
    detail::added_token_finder added_;
};

} // namespace tapegraph::data
