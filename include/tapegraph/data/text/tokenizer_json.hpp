#pragma once

#include <tapegraph/data/text/tokenizer.hpp>
#include <tapegraph/formats/json_reader.hpp>
#include <tapegraph/formats/path.hpp>

#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Reads and writes tokenizers in the format of Keras's to_json and tokenizer_from_json.

namespace tapegraph::data {

namespace detail {

/// Builds a JSON object in Python's format, member by member.
class json_object_text {
public:
    void add(std::string_view name, std::string_view value) {
        text_.append(text_.size() > 1 ? ", " : "").append(io::json_string(name)).append(": ").append(value);
    }
    void add(std::string_view name, std::int64_t value) { add(name, std::string_view(std::to_string(value))); }
    std::string text() const { return text_ + "}"; }

private:
    std::string text_ = "{";
};

/// Calls `visit(name, value)` for each member of an object of integers.
template <class Visit>
void for_each_count(std::string_view text, const std::string& origin, const Visit& visit) {
    io::json_reader json(text, origin);
    json.begin_object();
    for (std::string name; json.next_name(name);) visit(name, json.integer());
    json.end();
}

} // namespace detail

/// The text that keras.preprocessing.text.tokenizer_from_json reads. Throws argument_error if a
/// word is not valid UTF-8.
inline std::string to_json(const tokenizer& from) {
    detail::json_object_text counts, docs, index_docs, index_word, word_index, config, whole;
    const auto& options = from.options();
    const auto add_index = [&](const std::string& word, std::int64_t index) {
        word_index.add(word, index);
        index_word.add(std::to_string(index), io::json_string(word));
    };
    std::vector<const word_statistics*> order;
    for (const auto& each : from.words()) {
        order.push_back(&each);
        if (each.count > 0) counts.add(each.word, each.count);
        if (each.docs > 0) docs.add(each.word, each.docs);
    }
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->index < b->index; });
    if (options.oov_token && from.word_of(1) != nullptr && *from.word_of(1) == *options.oov_token) {
        const bool is_word = !order.empty() && order.front()->index == 1;
        if (!is_word) add_index(*options.oov_token, 1);
    }
    for (const auto* each : order) add_index(each->word, each->index);
    for (const auto& [index, count] : from.index_docs()) index_docs.add(std::to_string(index), count);

    const auto truth = [](bool value) { return std::string_view(value ? "true" : "false"); };
    if (options.num_words > 0)
        config.add("num_words", options.num_words);
    else
        config.add("num_words", "null");
    config.add("filters", io::json_string(options.filters));
    config.add("lower", truth(options.lower));
    config.add("split", io::json_string(options.split));
    config.add("char_level", truth(options.char_level));
    config.add("oov_token", options.oov_token ? io::json_string(*options.oov_token) : "null");
    config.add("document_count", from.document_count());
    config.add("word_counts", io::json_string(counts.text()));
    config.add("word_docs", io::json_string(docs.text()));
    config.add("index_docs", io::json_string(index_docs.text()));
    config.add("index_word", io::json_string(index_word.text()));
    config.add("word_index", io::json_string(word_index.text()));
    whole.add("class_name", "\"Tokenizer\"");
    whole.add("config", config.text());
    return whole.text();
}

/// Parses the result of Keras's to_json or of this library's. `origin` is its name in errors.
/// Throws data_error for invalid JSON, a missing "word_index", or contradictions: an index of two
/// words, counts of unknown words. "index_word" is redundant and ignored.
inline tokenizer tokenizer_from_json(std::string_view text, const std::string& origin = "tokenizer") {
    tokenizer_options options;
    std::int64_t document_count = 0;
    std::map<std::int64_t, std::int64_t> index_docs;
    std::string counts = "{}", docs = "{}", documents = "{}", indices;
    io::json_reader json(text, origin);
    bool configured = false;
    json.begin_object();
    for (std::string name; json.next_name(name);) {
        if (name != "config") {
            json.skip();
            continue;
        }
        configured = true;
        json.begin_object();
        for (std::string key; json.next_name(key);) {
            if (key == "num_words" && json.peek() != io::json_kind::null)
                options.num_words = json.integer();
            else if (key == "filters")
                options.filters = json.string();
            else if (key == "lower")
                options.lower = json.boolean();
            else if (key == "split")
                options.split = json.string();
            else if (key == "char_level")
                options.char_level = json.boolean();
            else if (key == "oov_token" && json.peek() != io::json_kind::null)
                options.oov_token = json.string();
            else if (key == "document_count")
                document_count = json.integer();
            else if (key == "word_counts")
                counts = json.string();
            else if (key == "word_docs")
                docs = json.string();
            else if (key == "index_docs")
                documents = json.string();
            else if (key == "word_index")
                indices = json.string();
            else
                json.skip();
        }
    }
    json.end();
    if (!configured || indices.empty()) throw data_error(origin + ": no " + (configured ? "word_index" : "config"));

    std::vector<word_statistics> words;
    detail::text_map<std::size_t> places;
    detail::for_each_count(counts, origin + ", word_counts", [&](const std::string& word, std::int64_t count) {
        places.emplace(word, words.size());
        words.push_back({word, count, 0, 0});
    });
    detail::for_each_count(indices, origin + ", word_index", [&](const std::string& word, std::int64_t index) {
        if (const auto place = places.find(word); place != places.end())
            words[place->second].index = index;
        else if (!(options.oov_token == word && index == 1))
            words.push_back({word, 0, 0, index});
    });
    detail::for_each_count(docs, origin + ", word_docs", [&](const std::string& word, std::int64_t count) {
        if (const auto place = places.find(word); place != places.end()) words[place->second].docs = count;
    });
    detail::for_each_count(documents, origin + ", index_docs", [&](const std::string& index, std::int64_t count) {
        std::int64_t number = 0;
        const char* const end = index.data() + index.size();
        if (std::from_chars(index.data(), end, number).ptr != end || index.empty())
            throw data_error(origin + ", index_docs: " + io::quoted_text(index) + " is not an index");
        index_docs[number] = count;
    });
    try {
        return tokenizer::restored(std::move(options), std::move(words), document_count, std::move(index_docs));
    } catch (const argument_error& wrong) {
        throw data_error(origin + ": " + wrong.what());
    }
}

/// Writes to_json into a file; an older one is only replaced by a complete new one. Throws
/// data_error.
inline void save_tokenizer(const files::path& path, const tokenizer& words) {
    io::atomic_file out(path);
    out.write(to_json(words));
    out.commit();
}
/// Reads a file written from to_json. Throws data_error naming it.
inline tokenizer load_tokenizer(const files::path& path) {
    const auto bytes = io::read_file(path);
    return tokenizer_from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, io::detail::quoted(path));
}

} // namespace tapegraph::data
