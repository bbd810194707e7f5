#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/data/text/added_tokens_json.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/json_reader.hpp>
#include <tapegraph/formats/path.hpp>

#include <string>
#include <vector>

/// What the readers of tokenizer.json of Hugging Face have in common, whatever its model.

namespace tapegraph::data::detail {

/// Reads the whole: `section(name)` reads a section and returns true, or returns false for one to skip. Returns the added tokens.
/// Throws data_error if there is no model.
template <class Section>
std::vector<added_token> read_tokenizer_file(io::json_reader& json, const std::string& origin, const Section& section) {
    std::vector<added_token> added;
    bool has_model = false;
    json.begin_object();
    for (std::string name; json.next_name(name);) {
        if (json.pass_null()) continue;
        if (name == "model") has_model = true;
        if (name == "added_tokens") {
            json.begin_array();
            while (json.next_element()) added.push_back(read_added_token(json));
        } else if (!section(name)) {
            json.skip();
        }
    }
    json.end();
    if (!has_model) throw data_error(origin + ": no model");
    return added;
}

/// Reads the type of a model, and refuses any other.
inline void expect_model(io::json_reader& json, const std::string& supported) {
    if (const std::string type = json.string(); type != supported)
        json.refuse("the model is " + io::quoted_text(type) + ", only '" + supported + "' is supported");
}

/// What `make` returns; its argument_error becomes a data_error that names the file.
template <class Make>
auto made_of_file(const std::string& origin, const Make& make) {
    try {
        return make();
    } catch (const argument_error& wrong) {
        throw data_error(origin + ": " + wrong.what());
    }
}

inline std::string text_of_file(const files::path& path) {
    const auto bytes = io::read_file(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace tapegraph::data::detail
