#pragma once

#include <tapegraph/data/text/added_tokens.hpp>
#include <tapegraph/data/text/tokenizer_json.hpp>
#include <tapegraph/formats/json_reader.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

/// Added tokens in a tokenizer.json of Hugging Face.

namespace tapegraph::data::detail {

inline added_token read_added_token(io::json_reader& json) {
    added_token token;
    token.special = false;
    token.id = -1;
    json.begin_object();
    for (std::string name; json.next_name(name);) {
        if (name == "content")
            token.content = json.string();
        else if (name == "id")
            token.id = static_cast<std::int32_t>(std::clamp<std::int64_t>(json.integer(), -1, INT32_MAX));
        else if (name == "special")
            token.special = json.boolean();
        else if (name == "single_word")
            token.single_word = json.boolean();
        else if (name == "lstrip")
            token.lstrip = json.boolean();
        else if (name == "rstrip")
            token.rstrip = json.boolean();
        else if (name == "normalized")
            token.normalized = json.boolean();
        else
            json.skip();
    }
    return token;
}

inline std::string_view json_truth(bool value) { return value ? "true" : "false"; }

inline std::string added_tokens_text(std::span<const added_token> all) {
    std::string text;
    for (const added_token& each : all) {
        json_object_text one;
        one.add("id", each.id);
        one.add("content", io::json_string(each.content));
        one.add("single_word", json_truth(each.single_word));
        one.add("lstrip", json_truth(each.lstrip));
        one.add("rstrip", json_truth(each.rstrip));
        one.add("normalized", json_truth(each.normalized));
        one.add("special", json_truth(each.special));
        text.append(text.empty() ? "" : ", ").append(one.text());
    }
    return "[" + text + "]";
}

} // namespace tapegraph::data::detail
