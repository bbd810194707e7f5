#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/quoted_text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// Words and their indices.

namespace tapegraph::data {

namespace detail {

/// Lets maps of strings be searched by string_views.
struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <class Value>
using text_map = std::unordered_map<std::string, Value, text_hash, std::equal_to<>>;

// A word may be a line break, like any character, but a file has one word per line.
inline std::string escaped_word(std::string_view word) {
    std::string line;
    for (const char c : word) {
        if (c == '\n')
            line += "\\n";
        else if (c == '\r')
            line += "\\r";
        else if (c == '\\')
            line += "\\\\";
        else
            line += c;
    }
    return line;
}
/// False for a backslash before anything but n, r or a backslash.
bool unescape_word(std::string_view line, std::string& word);

} // namespace detail

/// Index 0 is padding, 1 every unknown word; words have the indices from 2 on, as in Keras's
/// TextVectorization.
class vocabulary {
public:
    static constexpr std::int32_t padding = 0, unknown = 1, first_word = 2;

    vocabulary() = default;
    /// words[i] gets the index i + 2. Throws argument_error for an empty word and for one that occurs twice.
    explicit vocabulary(std::vector<std::string> words);

    /// The number of indices, which are all in [0, size()): an embedding's input_dim.
    std::int64_t size() const { return static_cast<std::int64_t>(words_.size()) + first_word; }
    /// All words in the order of their indices.
    const std::vector<std::string>& words() const { return words_; }

    /// The index of the word, or `unknown`.
    std::int32_t index_of(std::string_view word) const {
        const auto found = indices_.find(word);
        return found == indices_.end() ? unknown : found->second;
    }
    /// The word of an index; padding is empty, the unknown one is "[UNK]", as in Keras. Throws
    /// range_error.
    const std::string& word(std::int64_t index) const;

    /// Writes one word per line in the order of the indices, from 2 on, with line feeds, carriage
    /// returns and backslashes in words as \n, \r and \\. An older file is only replaced by a
    /// complete new one. Throws data_error.
    void save(const files::path& path) const {
        std::string text;
        for (const auto& each : words_) text.append(detail::escaped_word(each)).append("\n");
        io::atomic_file out(path);
        out.write(text);
        out.commit();
    }
    /// Reads the result of `save`, or any file of one word per line, with LF or CRLF. Throws
    /// data_error naming file and line for an empty line, a duplicate word and an invalid escape.
    static vocabulary load(const files::path& path);

private:
    std::vector<std::string> words_;
    detail::text_map<std::int32_t> indices_;
};

/// Counts words, for the vocabulary of the most frequent ones.
class word_counter {
public:
    /// Counts an occurrence of the word.
    void add(std::string_view word) {
        if (const auto found = counts_.find(word); found != counts_.end())
            ++found->second;
        else
            counts_.emplace(word, 1);
    }
    /// The number of distinct words seen.
    std::int64_t size() const { return static_cast<std::int64_t>(counts_.size()); }

    /// The more frequent word has the smaller index; equally frequent ones are sorted by bytes.
    /// `max_tokens` limits the size, including padding and unknown words; 0: no limit. Throws
    /// argument_error for 1, 2 or less than 0.
    vocabulary most_frequent(std::int64_t max_tokens = 0) const;

private:
    detail::text_map<std::int64_t> counts_;
};

#if TG_DEFINES(data)

namespace detail {

TG_DEFINITION bool unescape_word(std::string_view line, std::string& word) {
    word.clear();
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] != '\\') {
            word += line[i];
            continue;
        }
        if (++i == line.size()) return false;
        if (line[i] == 'n')
            word += '\n';
        else if (line[i] == 'r')
            word += '\r';
        else if (line[i] == '\\')
            word += '\\';
        else
            return false;
    }
    return true;
}

} // namespace detail

TG_DEFINITION vocabulary::vocabulary(std::vector<std::string> words) : words_(std::move(words)) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
        if (words_[i].empty()) throw argument_error("vocabulary: word " + std::to_string(i) + " is empty");
        const auto [place, added] = indices_.emplace(words_[i], static_cast<std::int32_t>(i) + first_word);
        if (!added)
            throw argument_error("vocabulary: words " + std::to_string(place->second - first_word) + " and " +
                                 std::to_string(i) + " are both " + io::quoted_text(words_[i]));
    }
}

TG_DEFINITION const std::string& vocabulary::word(std::int64_t index) const {
    static const std::string empty, not_known = "[UNK]";
    if (index < 0 || index >= size())
        throw range_error("vocabulary: index " + std::to_string(index) + " is outside [0, " + std::to_string(size()) +
                          ")");
    if (index < first_word) return index == padding ? empty : not_known;
    return words_[static_cast<std::size_t>(index) - first_word];
}

TG_DEFINITION vocabulary vocabulary::load(const files::path& path) {
    const auto bytes = io::read_file(path);
    const std::string file = io::detail::quoted(path);
    std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
    if (rest.empty()) throw data_error(file + ": no words");
    vocabulary result;
    for (std::int64_t number = 1; !rest.empty(); ++number) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        const std::string place = file + ", line " + std::to_string(number) + ": ";
        if (line.empty()) throw data_error(place + "no word");
        std::string word;
        if (!detail::unescape_word(line, word))
            throw data_error(place + io::quoted_text(line) + ": a backslash may only precede n, r or a backslash");
        const auto [known, added] = result.indices_.emplace(word, static_cast<std::int32_t>(number - 1) + first_word);
        if (!added)
            throw data_error(place + io::quoted_text(word) + " is in line " +
                             std::to_string(known->second - first_word + 1) + " already");
        result.words_.push_back(std::move(word));
    }
    return result;
}

TG_DEFINITION vocabulary word_counter::most_frequent(std::int64_t max_tokens) const {
    if (max_tokens < 0 || (max_tokens > 0 && max_tokens <= vocabulary::first_word))
        throw argument_error("vocabulary: max_tokens is " + std::to_string(max_tokens) +
                             ": it counts padding and the unknown word, so 3 is the least");
    std::vector<std::pair<std::int64_t, std::string_view>> order;
    order.reserve(counts_.size());
    for (const auto& [word, count] : counts_) order.emplace_back(count, word);
    std::sort(order.begin(), order.end(), [](const auto& left, const auto& right) {
        return left.first != right.first ? left.first > right.first : left.second < right.second;
    });
    if (max_tokens > 0)
        order.resize(std::min(order.size(), static_cast<std::size_t>(max_tokens - vocabulary::first_word)));
    std::vector<std::string> words;
    words.reserve(order.size());
    for (const auto& each : order) words.emplace_back(each.second);
    return vocabulary(std::move(words));
}

#endif

} // namespace tapegraph::data
