#pragma once

#include <tapegraph/data/text/byte_pair.hpp>
#include <tapegraph/formats/json_reader.hpp>

#include <string>

/// Pre-tokenizers in a tokenizer.json of Hugging Face: their settings, and those of Metaspace.

namespace tapegraph::data::detail {

struct pre_tokenizer_settings {
    std::string type, pattern, behavior = "Isolated", replacement{blank_sign}, scheme = "always";
    bool prefix = true, uses_pattern = true, inverted = false, splits = true;
};

/// Reads the settings of one; `each()` reads one of a sequence.
template <class Each>
pre_tokenizer_settings read_pre_tokenizer_settings(io::json_reader& json, const Each& each) {
    pre_tokenizer_settings s;
    json.begin_object();
    for (std::string name; json.next_name(name);) {
        if (name == "type") {
            s.type = json.string();
        } else if (name == "add_prefix_space") {
            s.prefix = json.boolean();
        } else if (name == "use_regex") {
            s.uses_pattern = json.boolean();
        } else if (name == "behavior") {
            s.behavior = json.string();
        } else if (name == "replacement") {
            s.replacement = json.string();
        } else if (name == "prepend_scheme") {
            s.scheme = json.string();
        } else if (name == "split") {
            s.splits = json.boolean();
        } else if (name == "invert") {
            s.inverted = json.boolean();
        } else if (name == "pretokenizers") {
            json.begin_array();
            while (json.next_element()) each();
        } else if (name == "pattern") {
            json.begin_object();
            for (std::string kind; json.next_name(kind);)
                if (kind == "Regex")
                    s.pattern = json.string();
                else
                    json.skip();
        } else {
            json.skip();
        }
    }
    return s;
}

/// Which texts a Metaspace begins with a blank. Refuses other signs and schemes.
inline blank_prefix metaspace_prefix(const io::json_reader& json, const pre_tokenizer_settings& s) {
    if (s.replacement != blank_sign)
        json.refuse("Metaspace with " + io::quoted_text(s.replacement) + " is not supported");
    if (s.scheme == "never" || !s.prefix) return blank_prefix::never;
    if (s.scheme == "first") return blank_prefix::first;
    if (s.scheme == "always") return blank_prefix::always;
    json.refuse("the prepend_scheme " + io::quoted_text(s.scheme) + " is not supported");
}

} // namespace tapegraph::data::detail
