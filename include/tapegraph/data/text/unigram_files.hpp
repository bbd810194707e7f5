#pragma once

#include <tapegraph/data/text/pre_tokenizer_json.hpp>
#include <tapegraph/data/text/tokenizer_file.hpp>
#include <tapegraph/data/text/unigram.hpp>
#include <tapegraph/formats/json_reader.hpp>
#include <tapegraph/formats/path.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// Reads unigram models from Hugging Face's tokenizer.json.

namespace tapegraph::data {

namespace detail {

/// The supported content of a tokenizer.json whose model is Unigram.
class unigram_file {
public:
    unigram_file(std::string_view text, const std::string& origin) : json_(text, origin, 64), origin_(origin) {}

    unigram_tables tables() {
        result_.prefix = blank_prefix::none;
        result_.added = read_tokenizer_file(json_, origin_, [&](const std::string& name) {
            if (name == "model")
                read_model();
            else if (name == "normalizer")
                read_change();
            else if (name == "pre_tokenizer")
                read_pre_tokenizer();
            else
                return false;
            return true;
        });
        if (result_.prefix == blank_prefix::none) result_.split_at_blanks = false;
        return std::move(result_);
    }

private:
    void read_model() {
        json_.begin_object();
        for (std::string name; json_.next_name(name);) {
            if (json_.pass_null()) continue;
            if (name == "type") {
                expect_model(json_, "Unigram");
            } else if (name == "unk_id") {
                result_.unknown = static_cast<std::int32_t>(std::clamp<std::int64_t>(json_.integer(), -1, INT32_MAX));
            } else if (name == "byte_fallback") {
                result_.byte_fallback = json_.boolean();
            } else if (name == "vocab") {
                json_.begin_array();
                while (json_.next_element()) {
                    std::string token;
                    double score = 0;
                    int count = 0;
                    json_.begin_array();
                    for (; json_.next_element(); ++count) {
                        if (count == 0)
                            token = json_.string();
                        else
                            score = json_.number();
                    }
                    if (count != 2) json_.refuse("an entry of vocab with " + std::to_string(count) + " elements");
                    result_.vocabulary.emplace_back(std::move(token), score);
                }
            } else {
                json_.skip();
            }
        }
    }
    void read_change() {
        std::string type, text, regex, content;
        text_strip strip;
        bool sequence = false;
        json_.begin_object();
        for (std::string name; json_.next_name(name);) {
            if (name == "type") {
                type = json_.string();
            } else if (name == "precompiled_charsmap") {
                if (!json_.pass_null()) content = json_.string();
            } else if (name == "prepend" || name == "content") {
                content = json_.string();
            } else if (name == "strip_left") {
                strip.left = json_.boolean();
            } else if (name == "strip_right") {
                strip.right = json_.boolean();
            } else if (name == "pattern") {
                json_.begin_object();
                for (std::string kind; json_.next_name(kind);) (kind == "String" ? text : regex) = json_.string();
            } else if (name == "normalizers") {
                sequence = true;
                json_.begin_array();
                while (json_.next_element()) read_change();
            } else {
                json_.skip();
            }
        }
        auto& changes = result_.changes;
        if (type == "Sequence" && sequence) return;
        if (type == "Precompiled") {
            const auto bytes = from_base64(content);
            if (!bytes) json_.refuse("the precompiled_charsmap is not base64");
            if (bytes->empty()) return; // no rules
            try {
                changes.emplace_back(precompiled_normalizer(*bytes));
            } catch (const argument_error& wrong) {
                json_.refuse(wrong.what());
            }
            return;
        }
        if (type == "Prepend" && content == blank_sign) return changes.push_back(text_normalizer::prepend_blank);
        if (type == "Replace" && !text.empty()) return changes.push_back(text_replacement{text, content});
        if (type == "Replace" && regex == " {2,}") return changes.push_back(text_replacement{" ", content, true});
        if (type == "Strip") return changes.push_back(strip);
        for (const auto& [normalizer, name] : normalizer_names)
            if (type == name) return changes.push_back(normalizer);
        json_.refuse("the normalizer " + io::quoted_text(type) +
                     (regex.empty() ? "" : " by the pattern " + io::quoted_text(regex)) + " is not supported");
    }
    void read_pre_tokenizer() {
        const pre_tokenizer_settings own = read_pre_tokenizer_settings(json_, [&] { read_pre_tokenizer(); });
        if (own.type == "Sequence") return;
        if (result_.prefix != blank_prefix::none)
            json_.refuse("the pre_tokenizer " + io::quoted_text(own.type) + " after Metaspace is not supported");
        if (own.type == "WhitespaceSplit") {
            result_.split_at_spaces = true;
            return;
        }
        if (own.type != "Metaspace")
            json_.refuse("the pre_tokenizer " + io::quoted_text(own.type) + " is not supported");
        result_.prefix = metaspace_prefix(json_, own);
        result_.split_at_blanks = own.splits;
    }

    io::json_reader json_;
    std::string origin_;
    unigram_tables result_;
};

} // namespace detail

/// Parses the text of a tokenizer.json whose model is Unigram. Post-processors are not applied: tokens
/// are those of `encode(text, add_special_tokens=False)`. Throws data_error for what would change
/// tokens and is not supported.
inline unigram unigram_from_json(std::string_view tokenizer_json, const std::string& origin = "tokenizer.json") {
    return detail::made_of_file(origin, [&] { return unigram(detail::unigram_file(tokenizer_json, origin).tables()); });
}
/// Reads a tokenizer.json. Throws data_error naming the file.
inline unigram load_unigram(const files::path& tokenizer_json) {
    return unigram_from_json(detail::text_of_file(tokenizer_json), io::detail::quoted(tokenizer_json));
}

} // namespace tapegraph::data
