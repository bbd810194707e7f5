#pragma once

#include <tapegraph/data/text/byte_pair.hpp>
#include <tapegraph/data/text/pre_tokenizer_json.hpp>
#include <tapegraph/data/text/tokenizer_file.hpp>
#include <tapegraph/data/text/tokenizer_json.hpp>
#include <tapegraph/formats/json_reader.hpp>
#include <tapegraph/formats/path.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Reads and writes byte-pair encodings in common published formats: GPT-2's vocab.json and
/// merges.txt, Hugging Face's tokenizer.json.

namespace tapegraph::data {

namespace detail {

inline constexpr std::string_view o200k_pattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// The supported content of a tokenizer.json.
class tokenizer_file {
public:
    tokenizer_file(std::string_view text, const std::string& origin) : json_(text, origin, 64), origin_(origin) {}

    byte_pair_tables tables() {
        bool byte_level = false;
        result_.added = read_tokenizer_file(json_, origin_, [&](const std::string& name) {
            if (name == "model") {
                read_model();
            } else if (name == "pre_tokenizer") {
                result_.split = byte_level_split::none;
                byte_level = read_pre_tokenizer();
            } else if (name == "normalizer") {
                result_.normalizers = read_normalizers(json_);
            } else {
                return false;
            }
            return true;
        });
        const auto& normal = result_.normalizers;
        const bool marks = result_.prefix != blank_prefix::none ||
                           std::find(normal.begin(), normal.end(), text_normalizer::mark_blanks) != normal.end();
        if (!byte_level && !marks)
            throw data_error(origin_ +
                             ": the pre_tokenizer is neither ByteLevel nor Metaspace, and no other is supported");
        if (byte_level && (marks || fallback_))
            throw data_error(origin_ + ": ByteLevel with U+2581 for blanks or with byte_fallback is not supported");
        result_.characters = marks;
        return std::move(result_);
    }

    void read_vocabulary() {
        json_.begin_object();
        for (std::string token; json_.next_name(token);) {
            const std::int64_t id = json_.integer();
            if (id < 0 || id > INT32_MAX)
                json_.refuse("the id of " + io::quoted_text(token) + " is " + std::to_string(id));
            result_.vocabulary.emplace_back(std::move(token), static_cast<std::int32_t>(id));
        }
    }
    byte_pair_tables vocabulary_alone() {
        read_vocabulary();
        json_.end();
        return std::move(result_);
    }

private:
    void expect_nothing(const char* name) {
        if (!json_.string().empty()) json_.refuse(std::string(name) + " is not supported");
    }
    void read_model() {
        json_.begin_object();
        for (std::string name; json_.next_name(name);) {
            if (json_.pass_null()) continue;
            if (name == "type") {
                expect_model(json_, "BPE");
            } else if (name == "vocab") {
                read_vocabulary();
            } else if (name == "merges") {
                json_.begin_array();
                while (json_.next_element()) read_merge();
            } else if (name == "unk_token") {
                result_.unknown = json_.string();
            } else if (name == "ignore_merges") {
                result_.ignore_merges = json_.boolean();
            } else if (name == "continuing_subword_prefix" || name == "end_of_word_suffix") {
                expect_nothing(name.c_str());
            } else if (name == "byte_fallback") {
                result_.byte_fallback = fallback_ = json_.boolean();
            } else if (name == "fuse_unk") {
                result_.fuse_unknown = json_.boolean();
            } else if (name == "dropout") {
                if (json_.number() != 0) json_.refuse("dropout is not supported");
            } else {
                json_.skip();
            }
        }
    }
    void read_merge() {
        if (json_.peek() == io::json_kind::string) {
            const std::string pair = json_.string();
            const std::size_t blank = pair.find(' ');
            if (blank == pair.npos || blank == 0 || blank + 1 == pair.size() || pair.find(' ', blank + 1) != pair.npos)
                json_.refuse("the merge " + io::quoted_text(pair) + " is not two tokens and a blank");
            result_.merges.emplace_back(pair.substr(0, blank), pair.substr(blank + 1));
            return;
        }
        std::vector<std::string> parts;
        json_.begin_array();
        while (json_.next_element()) parts.push_back(json_.string());
        if (parts.size() != 2) json_.refuse("a merge of " + std::to_string(parts.size()) + " tokens");
        result_.merges.emplace_back(std::move(parts[0]), std::move(parts[1]));
    }
    /// Returns true if bytes become characters, which this encoding requires.
    bool read_pre_tokenizer() {
        bool byte_level = false;
        const pre_tokenizer_settings own =
            read_pre_tokenizer_settings(json_, [&] { byte_level = read_pre_tokenizer() || byte_level; });
        if (own.type == "ByteLevel") {
            const bool cut = result_.split != byte_level_split::none;
            if (cut && (own.prefix || own.uses_pattern))
                json_.refuse("a Split before a ByteLevel that cuts again is not supported");
            if (own.uses_pattern) result_.split = byte_level_split::gpt2;
            result_.add_prefix_space = own.prefix;
            return true;
        }
        if (own.type == "Metaspace") {
            result_.prefix = metaspace_prefix(json_, own);
            result_.split_at_blanks = own.splits;
            return byte_level;
        }
        if (own.type == "Split")
            result_.split = split_of(own.pattern, own.behavior, own.inverted);
        else if (own.type != "Sequence")
            json_.refuse("the pre_tokenizer " + io::quoted_text(own.type) + " is not supported");
        return byte_level;
    }
    byte_level_split split_of(const std::string& pattern, const std::string& behavior, bool inverted) {
        constexpr std::string_view gpt2 =
            R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
        constexpr std::string_view begin = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
        constexpr std::string_view end = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
        if (behavior == "Isolated" && !inverted && result_.split == byte_level_split::none) {
            if (pattern == gpt2) return byte_level_split::gpt2;
            if (pattern == o200k_pattern) return byte_level_split::o200k;
            if (pattern.starts_with(begin) && pattern.ends_with(end)) {
                const std::size_t rest = pattern.size() - begin.size() - end.size();
                const std::string_view digits = std::string_view(pattern).substr(begin.size(), rest);
                if (pattern.size() >= begin.size() + end.size() && digits == R"(\p{N}{1,3})")
                    return byte_level_split::cl100k;
                if (pattern.size() >= begin.size() + end.size() && digits == R"(\p{N})") return byte_level_split::qwen2;
            }
        }
        json_.refuse("the Split by " + io::quoted_text(pattern, 200) + " is not supported");
    }

    io::json_reader json_;
    std::string origin_;
    byte_pair_tables result_;
    bool fallback_ = false;
};

/// The merges of a merges.txt: two tokens a line in the order of the merges; the first line may be a comment, "#version: 0.2".
inline std::vector<std::pair<std::string, std::string>> read_merge_lines(std::string_view text,
                                                                         const std::string& origin) {
    check_utf8(text, origin);
    std::vector<std::pair<std::string, std::string>> merges;
    for (std::int64_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty() || line.starts_with("#version")) continue;
        const std::size_t blank = line.find(' ');
        if (blank == line.npos || blank == 0 || blank + 1 == line.size() || line.find(' ', blank + 1) != line.npos)
            throw data_error(origin + ", line " + std::to_string(number) + ": " + io::quoted_text(line) +
                             " is not two tokens and a blank");
        merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
    }
    return merges;
}

} // namespace detail

/// Parses the texts of GPT-2's two files; "<|endoftext|>", if the vocabulary has it, is special.
/// Throws data_error for invalid JSON, an invalid table of merges, or if the two do not match.
inline byte_pair_encoding byte_pair_encoding_from_gpt2(std::string_view vocabulary, std::string_view merges,
                                                       const std::string& vocabulary_origin = "vocab.json",
                                                       const std::string& merges_origin = "merges.txt") {
    byte_pair_tables tables = detail::tokenizer_file(vocabulary, vocabulary_origin).vocabulary_alone();
    tables.merges = detail::read_merge_lines(merges, merges_origin);
    for (const auto& [token, id] : tables.vocabulary)
        if (token == "<|endoftext|>") tables.added.push_back({token, id});
    return detail::made_of_file(vocabulary_origin + " and " + merges_origin,
                                [&] { return byte_pair_encoding(std::move(tables)); });
}

/// Parses the text of a tokenizer.json whose model is BPE after a ByteLevel pre-tokenizer (GPT-2,
/// RoBERTa, Llama 3 and many more) or over SentencePiece's characters (Llama 2, Mistral, Gemma),
/// with its added tokens. Post-processors are not applied: the
/// tokens are those of `encode(text, add_special_tokens=False)`. Unsupported features that would
/// change tokens (other normalizers, other patterns, dropout, ...) throw data_error.
inline byte_pair_encoding byte_pair_encoding_from_json(std::string_view tokenizer_json,
                                                       const std::string& origin = "tokenizer.json") {
    return detail::made_of_file(
        origin, [&] { return byte_pair_encoding(detail::tokenizer_file(tokenizer_json, origin).tables()); });
}

/// Reads vocab.json and merges.txt. Throws data_error naming the file and the problem.
inline byte_pair_encoding load_byte_pair_encoding(const files::path& vocabulary, const files::path& merges) {
    return byte_pair_encoding_from_gpt2(detail::text_of_file(vocabulary), detail::text_of_file(merges),
                                        io::detail::quoted(vocabulary), io::detail::quoted(merges));
}
/// Reads a tokenizer.json.
inline byte_pair_encoding load_byte_pair_encoding(const files::path& tokenizer_json) {
    return byte_pair_encoding_from_json(detail::text_of_file(tokenizer_json), io::detail::quoted(tokenizer_json));
}

namespace detail {

inline std::string vocabulary_text(const byte_pair_tables& tables) {
    json_object_text text;
    for (const auto& [token, id] : tables.vocabulary) text.add(token, id);
    return text.text();
}

} // namespace detail

/// A tokenizer.json that Hugging Face's tokenizers reads.
inline std::string to_tokenizer_json(const byte_pair_encoding& from) {
    const byte_pair_tables& tables = from.tables();
    const auto byte_level = [&](bool cuts) {
        return std::string(R"({"type": "ByteLevel", "add_prefix_space": )")
            .append(detail::json_truth(tables.add_prefix_space))
            .append(R"(, "trim_offsets": true, "use_regex": )")
            .append(detail::json_truth(cuts))
            .append("}");
    };
    std::string merges;
    for (const auto& [left, right] : tables.merges)
        merges.append(merges.empty() ? "[" : ", [")
            .append(io::json_string(left))
            .append(", ")
            .append(io::json_string(right))
            .append("]");
    std::string cutting = byte_level(tables.split == byte_level_split::gpt2);
    const auto split_by = [&](std::string_view pattern) {
        return R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": )" +
               io::json_string(pattern) + R"(}, "behavior": "Isolated", "invert": false}, )" + cutting + "]}";
    };
    if (tables.split == byte_level_split::o200k) cutting = split_by(detail::o200k_pattern);
    if (tables.split == byte_level_split::cl100k || tables.split == byte_level_split::qwen2) {
        const std::string digits = tables.split == byte_level_split::cl100k ? R"(\p{N}{1,3})" : R"(\p{N})";
        const std::string pattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" + digits +
                                    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
        cutting = split_by(pattern);
    }
    std::string decoder = R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true})";
    if (tables.characters) {
        const bool begins = from.begins_with_blank();
        decoder =
            R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, )"
            R"({"type": "ByteFallback"}, {"type": "Fuse"})" +
            std::string(begins ? R"(, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})" : "]}");
        const std::string_view scheme = tables.prefix == blank_prefix::never   ? "never"
                                        : tables.prefix == blank_prefix::first ? "first"
                                                                               : "always";
        cutting = tables.prefix == blank_prefix::none
                      ? std::string("null")
                      : std::string(R"({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": ")")
                            .append(scheme)
                            .append(R"(", "split": )")
                            .append(detail::json_truth(tables.split_at_blanks))
                            .append("}");
    }
    detail::json_object_text model, whole;
    model.add("type", "\"BPE\"");
    model.add("dropout", "null");
    model.add("unk_token", tables.unknown ? io::json_string(*tables.unknown) : "null");
    model.add("continuing_subword_prefix", "null");
    model.add("end_of_word_suffix", "null");
    model.add("fuse_unk", detail::json_truth(tables.fuse_unknown));
    model.add("byte_fallback", detail::json_truth(tables.byte_fallback));
    model.add("ignore_merges", detail::json_truth(tables.ignore_merges));
    model.add("vocab", detail::vocabulary_text(tables));
    model.add("merges", "[" + merges + "]");
    whole.add("version", "\"1.0\"");
    whole.add("truncation", "null");
    whole.add("padding", "null");
    whole.add("added_tokens", detail::added_tokens_text(tables.added));
    whole.add("normalizer", detail::normalizers_text(tables.normalizers));
    whole.add("pre_tokenizer", cutting);
    whole.add("post_processor", "null");
    whole.add("decoder", decoder);
    whole.add("model", model.text());
    return whole.text();
}

/// Writes a tokenizer.json; an older file is only replaced by a complete new one. Throws
/// data_error.
inline void save_byte_pair_encoding(const files::path& tokenizer_json, const byte_pair_encoding& from) {
    io::atomic_file out(tokenizer_json);
    out.write(to_tokenizer_json(from));
    out.commit();
}
/// Writes vocab.json and merges.txt, which contain neither added tokens outside the vocabulary nor
/// the way texts are split. Both replace older files only once both are written. Throws data_error.
inline void save_byte_pair_encoding(const files::path& vocabulary, const files::path& merges,
                                    const byte_pair_encoding& from) {
    io::atomic_file first(vocabulary), second(merges);
    first.write(detail::vocabulary_text(from.tables()));
    std::string lines = "#version: 0.2\n";
    for (const auto& [left, right] : from.tables().merges) lines.append(left).append(" ").append(right).append("\n");
    second.write(lines);
    first.commit();
    second.commit();
}

} // namespace tapegraph::data
