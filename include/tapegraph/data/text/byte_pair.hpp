#pragma once

#include <tapegraph/data/text/byte_level.hpp>
#include <tapegraph/data/text/normalizers.hpp>
#include <tapegraph/data/text/tokens.hpp>
#include <tapegraph/data/text/vocabulary.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// Byte-pair encoding (Sennrich et al., arXiv 1508.07909) over bytes, like GPT-2's: every text can
/// be encoded, and decoding restores it.

namespace tapegraph::data {

/// A token outside the merges: "<|endoftext|>". It is found in texts literally.
struct added_token {
    std::string content;
    std::int32_t id = 0;
    bool special = true;      ///< decode can leave it out
    bool single_word = false; ///< found only where no unicode::is_word_character touches it
    bool lstrip = false;      ///< includes the blanks before it
    bool rstrip = false;      ///< includes the blanks after it
    bool normalized = false;  ///< looked for after the normalizers, which change its content, too; otherwise before
};

/// The content of a tokenizer's files. Tokens and merges are in byte_level_text's characters.
struct byte_pair_tables {
    std::vector<std::pair<std::string, std::int32_t>> vocabulary{};
    std::vector<std::pair<std::string, std::string>> merges{}; ///< in order of priority, the first one first
    std::vector<added_token> added{};
    std::vector<text_normalizer> normalizers{}; ///< what happens to a text before it is split, in this order
    byte_level_split split = byte_level_split::gpt2;
    bool add_prefix_space = false; ///< adds a space to a text that does not start with one
    /// A piece that is a token becomes that token, regardless of the merges (Llama 3)
    bool ignore_merges = false;
    std::optional<std::string> unknown{}; ///< token for bytes that have none; without it, they are an error
};

/// Converts texts to tokens and back. Const functions may be called by many threads at once.
///
///     const auto words = data::load_byte_pair_encoding("gpt2/vocab.json", "gpt2/merges.txt"); // data/text/byte_pair_files.hpp
///     const std::vector<std::int32_t> ids = words.encode("Hello world");                       // 15496, 995
///     words.decode(ids) == "Hello world"; // or what normalizers made of the text, if there are any
class byte_pair_encoding {
public:
    /// Throws argument_error for a duplicate token or id, an id beyond twice the number of tokens
    /// (and 1000), and a merge whose parts or result are not tokens.
    explicit byte_pair_encoding(byte_pair_tables tables) : tables_(std::move(tables)) { build(); }

    const byte_pair_tables& tables() const { return tables_; }
    /// The number of ids, which are in [0, size()): an embedding's input_dim.
    std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
    /// The id of some bytes, or of an added token; nullopt if that is not a token.
    std::optional<std::int32_t> id_of(std::string_view bytes) const {
        for (const auto& each : tables_.added)
            if (each.content == bytes) return each.id;
        if (const auto found = ids_.find(bytes); found != ids_.end()) return found->second;
        return {};
    }
    /// The bytes of a token, which need not be whole characters. Throws range_error for an unused
    /// id.
    const std::string& bytes_of(std::int64_t id) const {
        if (id < 0 || id >= size() || kinds_[static_cast<std::size_t>(id)] == token_kind::none)
            throw range_error("byte_pair_encoding: no token has the id " + std::to_string(id));
        return tokens_[static_cast<std::size_t>(id)];
    }
    bool is_special(std::int64_t id) const {
        return id >= 0 && id < size() && kinds_[static_cast<std::size_t>(id)] == token_kind::special;
    }

    /// The tokens of a text. Invalid UTF-8 is encoded as bytes. `find_added`: whether to look for
    /// added tokens; set it to false for untrusted text, which could otherwise contain them. Throws
    /// argument_error for a byte without a token.
    std::vector<std::int32_t> encode(std::string_view text, bool find_added = true) const {
        std::vector<std::int32_t> ids;
        const auto encode_rest = [&](std::string_view rest) { encode_plain(rest, ids); };
        const auto encode_changed = [&](std::string_view rest) {
            if (tables_.normalizers.empty()) return encode_between(rest, find_added, true, ids, encode_rest);
            encode_between(normalized_text(rest, tables_.normalizers), find_added, true, ids, encode_rest);
        };
        encode_between(text, find_added, false, ids, encode_changed);
        return ids;
    }
    std::vector<std::int32_t> operator()(std::string_view text) const { return encode(text); }

    /// The text of some tokens, byte for byte (repaired_utf8 restores UTF-8 if characters were
    /// cut). Throws range_error.
    std::string decode(std::span<const std::int32_t> ids, bool skip_special = false) const {
        std::string text;
        for (const auto id : ids)
            if (const std::string& bytes = bytes_of(id); !skip_special || !is_special(id)) text += bytes;
        return text;
    }

private:
    enum class token_kind : std::uint8_t { none, plain, special };
    struct merge {
        std::int32_t rank, id;
    };
    struct symbol {
        std::int32_t id;
        std::int32_t before, after; ///< indices of its neighbours, -1 at the ends
    };
    struct candidate {
        std::int32_t rank, place, left, right;
        /// The heap's top is the merge of highest priority, the leftmost of equal ones.
        bool operator<(const candidate& other) const {
            return rank != other.rank ? rank > other.rank : place > other.place;
        }
    };
    static std::uint64_t key(std::int32_t left, std::int32_t right) {
        return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
    }

    void build() {
        const std::size_t count = tables_.vocabulary.size() + tables_.added.size();
        const auto limit = static_cast<std::int64_t>(2 * count + 1000);
        const auto place = [&](const std::string& token, std::int32_t id) -> std::size_t {
            if (id < 0 || id >= limit)
                throw argument_error("byte_pair_encoding: the token " + io::quoted_text(token) + " has the id " +
                                     std::to_string(id) + ", there are " + std::to_string(count) + " tokens");
            const auto at = static_cast<std::size_t>(id);
            if (at >= tokens_.size()) {
                tokens_.resize(at + 1);
                kinds_.resize(at + 1, token_kind::none);
            }
            return at;
        };
        detail::text_map<std::int32_t> written;
        std::string bytes;
        for (const auto& [token, id] : tables_.vocabulary) {
            const std::size_t at = place(token, id);
            if (kinds_[at] != token_kind::none)
                throw argument_error("byte_pair_encoding: two tokens have the id " + std::to_string(id) + ", one is " +
                                     io::quoted_text(token));
            if (!written.emplace(token, id).second)
                throw argument_error("byte_pair_encoding: the token " + io::quoted_text(token) + " appears twice");
            const bool plain =
                byte_level_bytes(token, bytes); // otherwise it cannot be a piece of a text, and is decoded literally
            if (plain) ids_.emplace(bytes, id);
            tokens_[at] = plain ? bytes : token;
            kinds_[at] = token_kind::plain;
        }
        for (const auto& each : tables_.added) {
            if (each.content.empty()) throw argument_error("byte_pair_encoding: an added token is empty");
            const std::size_t at = place(each.content, each.id);
            const auto known = written.find(each.content);
            if (known == written.end() ? kinds_[at] != token_kind::none : known->second != each.id)
                throw argument_error("byte_pair_encoding: the added token " + io::quoted_text(each.content) +
                                     " has the id " + std::to_string(each.id) + ", which is that of another token");
            tokens_[at] = each.content;
            kinds_[at] = each.special ? token_kind::special : token_kind::plain;
        }
        for (const auto& each : tables_.added) {
            added_texts_.push_back(each.normalized ? normalized_text(each.content, tables_.normalizers) : each.content);
            (each.normalized ? some_normalized_ : some_literal_) = true;
        }
        order_added();
        for (int b = 0; b < 256; ++b) {
            const auto found = ids_.find(std::string(1, static_cast<char>(static_cast<unsigned char>(b))));
            byte_ids_[b] = found == ids_.end() ? -1 : found->second;
        }
        if (tables_.unknown) {
            const auto found = written.find(*tables_.unknown);
            if (found == written.end())
                throw argument_error("byte_pair_encoding: the unknown token " + io::quoted_text(*tables_.unknown) +
                                     " is not a token");
            unknown_ = found->second;
        }
        merges_.reserve(tables_.merges.size());
        for (std::size_t i = 0; i < tables_.merges.size(); ++i) {
            const std::string &left = tables_.merges[i].first, &right = tables_.merges[i].second;
            const auto id = [&](const std::string& token) {
                if (const auto found = written.find(token); found != written.end()) return found->second;
                throw argument_error("byte_pair_encoding: merge " + std::to_string(i + 1) + " (" +
                                     io::quoted_text(left) + ", " + io::quoted_text(right) +
                                     "): " + io::quoted_text(token) + " is not a token");
            };
            // If a pair occurs twice, the first merge counts.
            const std::int32_t first = id(left), second = id(right);
            merges_.emplace(key(first, second), merge{static_cast<std::int32_t>(i), id(left + right)});
        }
    }

    void order_added() {
        for (std::size_t i = 0; i < added_texts_.size(); ++i)
            if (!added_texts_[i].empty()) added_order_.push_back(i);
        const auto content = [&](std::size_t i) -> const std::string& { return added_texts_[i]; };
        std::sort(added_order_.begin(), added_order_.end(), [&](std::size_t a, std::size_t b) {
            const auto first_a = static_cast<unsigned char>(content(a)[0]),
                       first_b = static_cast<unsigned char>(content(b)[0]);
            return first_a != first_b ? first_a < first_b : content(a).size() > content(b).size();
        });
        for (const std::size_t i : added_order_) ++added_begin_[static_cast<unsigned char>(content(i)[0]) + 1];
        for (std::size_t b = 0; b < 256; ++b) added_begin_[b + 1] += added_begin_[b];
    }
    /// The longest added token that starts there, of those that are looked for in normalized texts or of the
    /// others, and the end of its content; null if there is none.
    const added_token* added_at(std::string_view text, std::size_t at, bool normalized, std::size_t& end) const {
        const auto first = static_cast<unsigned char>(text[at]);
        for (std::size_t i = added_begin_[first]; i < added_begin_[first + 1]; ++i) {
            const added_token& each = tables_.added[added_order_[i]];
            const std::string& content = added_texts_[added_order_[i]];
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

    /// Appends the added tokens of a text, and gives what is between them to `rest`.
    template <class Rest>
    void encode_between(std::string_view text, bool find_added, bool normalized, std::vector<std::int32_t>& ids,
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
    void encode_plain(std::string_view text, std::vector<std::int32_t>& ids) const {
        if (text.empty()) return;
        std::string prefixed;
        if (tables_.add_prefix_space && text[0] != ' ') {
            prefixed.append(" ").append(text);
            text = prefixed;
        }
        std::vector<symbol> symbols;
        std::vector<candidate> heap;
        for_each_piece(text, tables_.split, [&](std::string_view piece) { encode_piece(piece, symbols, heap, ids); });
    }
    /// Merges pairs by priority until none is left, in n log n, so that no text is slow.
    void encode_piece(std::string_view piece, std::vector<symbol>& symbols, std::vector<candidate>& heap,
                      std::vector<std::int32_t>& ids) const {
        if (tables_.ignore_merges)
            if (const auto whole = ids_.find(piece); whole != ids_.end()) return ids.push_back(whole->second);
        symbols.clear();
        heap.clear();
        for (std::size_t i = 0; i < piece.size(); ++i) {
            const std::int32_t id = byte_ids_[static_cast<unsigned char>(piece[i])];
            if (id < 0 && !unknown_)
                throw argument_error("byte_pair_encoding: no token for byte " +
                                     std::to_string(static_cast<unsigned char>(piece[i])) + " of " +
                                     io::quoted_text(piece));
            const auto place = static_cast<std::int32_t>(i);
            symbols.push_back({id < 0 ? *unknown_ : id, place - 1, i + 1 < piece.size() ? place + 1 : -1});
        }
        const auto propose = [&](std::int32_t place) {
            const symbol& left = symbols[static_cast<std::size_t>(place)];
            if (left.after < 0) return;
            const std::int32_t right = symbols[static_cast<std::size_t>(left.after)].id;
            const auto found = merges_.find(key(left.id, right));
            if (found == merges_.end()) return;
            heap.push_back({found->second.rank, place, left.id, right});
            std::push_heap(heap.begin(), heap.end());
        };
        for (std::int32_t place = 0; static_cast<std::size_t>(place) + 1 < symbols.size(); ++place) propose(place);
        while (!heap.empty()) {
            std::pop_heap(heap.begin(), heap.end());
            const candidate next = heap.back();
            heap.pop_back();
            symbol& left = symbols[static_cast<std::size_t>(next.place)];
            if (left.id != next.left || left.after < 0) continue; // merged in the meantime
            symbol& right = symbols[static_cast<std::size_t>(left.after)];
            if (right.id != next.right) continue;
            left.id = merges_.find(key(next.left, next.right))->second.id;
            right.id = -1; // removed
            left.after = right.after;
            if (left.after >= 0) symbols[static_cast<std::size_t>(left.after)].before = next.place;
            propose(next.place);
            if (left.before >= 0) propose(left.before);
        }
        for (std::int32_t place = 0; place >= 0; place = symbols[static_cast<std::size_t>(place)].after)
            ids.push_back(symbols[static_cast<std::size_t>(place)].id);
    }

    byte_pair_tables tables_;
    std::vector<std::string> tokens_; // bytes of each id
    std::vector<token_kind> kinds_;
    detail::text_map<std::int32_t> ids_; // of bytes
    std::unordered_map<std::uint64_t, merge> merges_;
    std::vector<std::string> added_texts_; // what is looked for
    std::vector<std::size_t> added_order_; // by first byte, long ones first
    bool some_normalized_ = false, some_literal_ = false;
    std::size_t added_begin_[257] = {};
    std::int32_t byte_ids_[256] = {};
    std::optional<std::int32_t> unknown_;
};

} // namespace tapegraph::data
