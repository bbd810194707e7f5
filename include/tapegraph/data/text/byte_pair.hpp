#pragma once

#include <tapegraph/data/text/added_tokens.hpp>
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
/// be encoded, and decoding restores it; or over characters, like SentencePiece's.

namespace tapegraph::data {

/// Which texts between added tokens a pre-tokenizer of U+2581 (Metaspace) begins with one, unless they do already.
enum class blank_prefix {
    none,  ///< no text, and spaces stay: there is no such pre-tokenizer
    never, ///< no text
    first, ///< that at the beginning
    always ///< each
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
    /// SentencePiece's tokens (Llama 2, Mistral, Gemma): merges are of characters, blanks are U+2581,
    /// and tokens and merges above are plain texts. `split` becomes none.
    bool characters = false;
    blank_prefix prefix = blank_prefix::none;
    bool split_at_blanks = false; ///< pieces begin at each U+2581
    bool byte_fallback = false; ///< a character without a token becomes its bytes, <0x00> to <0xFF>, if they are tokens
    bool fuse_unknown = false;  ///< neighbouring unknown characters are one unknown token
};

namespace detail {

/// SentencePiece's token for a byte: "<0x0A>".
inline std::string byte_piece(unsigned char byte) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}
/// What a token of SentencePiece stands for: a byte, or a text with blanks for U+2581.
inline std::string text_of_piece(const std::string& token) {
    if (token.size() == 6 && token.starts_with("<0x"))
        for (int b = 0; b < 256; ++b)
            if (byte_piece(static_cast<unsigned char>(b)) == token)
                return {static_cast<char>(static_cast<unsigned char>(b))};
    std::string text;
    for (std::size_t at = 0; at < token.size();) {
        const bool blank = std::string_view(token).substr(at).starts_with(blank_sign);
        text += blank ? ' ' : token[at];
        at += blank ? blank_sign.size() : 1;
    }
    return text;
}

} // namespace detail

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

    /// Vocabulary and merges.
    const byte_pair_tables& tables() const { return tables_; }
    /// The number of ids, which are in [0, size()): an embedding's input_dim.
    std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
    /// The id of some bytes (with `characters`: of a token as the file has it), or of an added token; nullopt if that
    /// is not a token.
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
    /// Whether texts get a blank in front, which decode removes.
    bool begins_with_blank() const { return begins_with_blank_; }
    /// Whether the id is a special token's, which no text encodes to by its letters.
    bool is_special(std::int64_t id) const {
        return id >= 0 && id < size() && kinds_[static_cast<std::size_t>(id)] == token_kind::special;
    }

    /// The tokens of a text. Invalid UTF-8 is encoded as bytes. `find_added`: whether to look for
    /// added tokens; set it to false for untrusted text, which could otherwise contain them. Throws
    /// argument_error for a byte without a token.
    std::vector<std::int32_t> encode(std::string_view text, bool find_added = true) const {
        std::vector<std::int32_t> ids;
        const auto encode_changed = [&](std::string_view rest) {
            const bool first = rest.data() == text.data();
            const std::string changed =
                tables_.normalizers.empty() ? std::string() : normalized_text(rest, tables_.normalizers);
            if (!tables_.normalizers.empty()) rest = changed;
            added_.split(rest, find_added, true, ids,
                         [&](std::string_view part) { encode_plain(part, first && part.data() == rest.data(), ids); });
        };
        added_.split(text, find_added, false, ids, encode_changed);
        return ids;
    }
    /// The ids of the text, as `encode` gives them.
    std::vector<std::int32_t> operator()(std::string_view text) const { return encode(text); }

    /// The text of some tokens, byte for byte (repaired_utf8 restores UTF-8 if characters were
    /// cut). Throws range_error.
    std::string decode(std::span<const std::int32_t> ids, bool skip_special = false) const {
        std::string text;
        for (const auto id : ids)
            if (const std::string& bytes = bytes_of(id); !skip_special || !is_special(id)) text += bytes;
        if (begins_with_blank_ && text.starts_with(' ')) text.erase(0, 1);
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
        if (tables_.characters) tables_.split = byte_level_split::none;
        const auto& normal = tables_.normalizers;
        begins_with_blank_ = tables_.prefix == blank_prefix::first || tables_.prefix == blank_prefix::always ||
                             std::find(normal.begin(), normal.end(), text_normalizer::prepend_blank) != normal.end();
        detail::text_map<std::int32_t> written;
        std::string bytes;
        for (const auto& [token, id] : tables_.vocabulary) {
            const std::size_t at = place(token, id);
            if (kinds_[at] != token_kind::none)
                throw argument_error("byte_pair_encoding: two tokens have the id " + std::to_string(id) + ", one is " +
                                     io::quoted_text(token));
            if (!written.emplace(token, id).second)
                throw argument_error("byte_pair_encoding: the token " + io::quoted_text(token) + " appears twice");
            if (tables_.characters) {
                ids_.emplace(token, id);
                tokens_[at] = detail::text_of_piece(token);
            } else {
                const bool plain = byte_level_bytes(
                    token, bytes); // otherwise it cannot be a piece of a text, and is decoded literally
                if (plain) ids_.emplace(bytes, id);
                tokens_[at] = plain ? bytes : token;
            }
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
        std::vector<std::string> texts;
        for (const auto& each : tables_.added)
            texts.push_back(each.normalized ? normalized_text(each.content, tables_.normalizers) : each.content);
        added_ = detail::added_token_finder(tables_.added, std::move(texts));
        for (int b = 0; b < 256; ++b) {
            const auto byte = static_cast<unsigned char>(b);
            const auto found =
                ids_.find(tables_.characters ? detail::byte_piece(byte) : std::string(1, static_cast<char>(byte)));
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

    void encode_plain(std::string_view text, bool first, std::vector<std::int32_t>& ids) const {
        if (text.empty()) return;
        std::string changed;
        if (tables_.prefix != blank_prefix::none) {
            changed = normalized_text(text, text_normalizer::mark_blanks);
            const bool begins =
                tables_.prefix == blank_prefix::always || (tables_.prefix == blank_prefix::first && first);
            if (begins && !changed.starts_with(blank_sign)) changed.insert(0, blank_sign);
            text = changed;
        }
        if (tables_.add_prefix_space && text[0] != ' ') {
            changed.append(" ").append(text);
            text = changed;
        }
        std::vector<symbol> symbols;
        std::vector<candidate> heap;
        const auto encode_each = [&](std::string_view piece) { encode_piece(piece, symbols, heap, ids); };
        if (!tables_.split_at_blanks) return for_each_piece(text, tables_.split, encode_each);
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find(blank_sign, at + 1), text.size());
            encode_each(text.substr(at, end - at));
            at = end;
        }
    }
    /// The symbols of a piece before any merge: its bytes, or its characters.
    void make_symbols(std::string_view piece, std::vector<symbol>& symbols) const {
        symbols.clear();
        const auto add = [&](std::int32_t id) {
            const auto place = static_cast<std::int32_t>(symbols.size());
            if (place > 0) symbols.back().after = place;
            symbols.push_back({id, place - 1, -1});
        };
        bool was_unknown = false;
        for (std::size_t at = 0, length = 1; at < piece.size(); at += length) {
            if (tables_.characters) length = decode_utf8(piece, at).length;
            const std::string_view part = piece.substr(at, length);
            const auto byte_of = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
            const auto known = tables_.characters ? ids_.find(part) : ids_.end();
            const bool bytes = known == ids_.end() && (!tables_.characters || tables_.byte_fallback) &&
                               std::all_of(part.begin(), part.end(), [&](char c) { return byte_of(c) >= 0; });
            if (known != ids_.end())
                add(known->second);
            else if (bytes)
                for (const char c : part) add(byte_of(c));
            else if (unknown_ && !(was_unknown && tables_.fuse_unknown))
                add(*unknown_);
            else if (!unknown_)
                throw argument_error("byte_pair_encoding: no token for byte " +
                                     std::to_string(static_cast<unsigned char>(part[0])) + " of " +
                                     io::quoted_text(piece));
            was_unknown = known == ids_.end() && !bytes;
        }
    }
    /// Merges pairs by priority until none is left, in n log n, so that no text is slow.
    void encode_piece(std::string_view piece, std::vector<symbol>& symbols, std::vector<candidate>& heap,
                      std::vector<std::int32_t>& ids) const {
        if (tables_.ignore_merges)
            if (const auto whole = ids_.find(piece); whole != ids_.end()) return ids.push_back(whole->second);
        make_symbols(piece, symbols);
        heap.clear();
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
    detail::added_token_finder added_;
    std::int32_t byte_ids_[256] = {};
    std::optional<std::int32_t> unknown_;
    bool begins_with_blank_ = false; // texts get a blank that decode removes
};

} // namespace tapegraph::data
