#pragma once

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/data/tables/encoding.hpp>
#include <tapegraph/data/tables/fingerprint.hpp>
#include <tapegraph/data/tables/state.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Maps categories to indices by a vocabulary, like Keras's StringLookup and IntegerLookup.

namespace tapegraph::data {

/// Options of `string_lookup` and `integer_lookup`.
template <class Token>
struct lookup_options {
    std::int64_t max_tokens = 0; ///< size of the vocabulary, including mask and unknown ones; 0: no limit
    std::int64_t num_oov_indices =
        1; ///< number of indices for unknown categories, which share them by hash; 0: they are an error
    std::optional<Token> mask_token{}; ///< gets the index 0, or in other modes none
    Token oov_token{};                 ///< the token for an index of unknown ones; empty or 0: "[UNK]" or -1
    output_mode mode = output_mode::index;
    bool pad_to_max_tokens = false; ///< use rows of max_tokens values, however few words there are
};

/// Counts categories, and the records that contain them, for a vocabulary.
template <class Token>
class lookup_counter {
public:
    /// How often a token occurs, and in how many records.
    struct counts {
        std::int64_t values = 0, records = 0;
        std::int64_t last = -1; ///< the last record that contained it
    };
    /// Counts the tokens of a record.
    void add(std::span<const Token> record) {
        for (const Token& each : record) {
            counts& place = counts_[each];
            ++place.values;
            if (std::exchange(place.last, records_) != records_) ++place.records;
        }
        ++records_;
    }
    void add(const std::vector<Token>& record) { add(std::span<const Token>(record)); }
    /// Records added so far.
    std::int64_t records() const { return records_; }
    /// The counts of all tokens, in the order of the tokens.
    const std::map<Token, counts>& words() const { return counts_; }

private:
    std::map<Token, counts> counts_;
    std::int64_t records_ = 0;
};

/// Indices are, in this order: the mask's (in mode index), num_oov_indices for unknown categories,
/// those of the vocabulary.
///
///     const data::string_lookup towns({}, {"oslo", "lima", "cairo"});
///     towns.indices_of(std::vector<std::string>{"lima", "quito"}) == std::vector<std::int64_t>{2, 0};
template <class Token>
class basic_lookup {
public:
    using options_type = lookup_options<Token>;
    using view = std::conditional_t<std::is_same_v<Token, std::string>, std::string_view, Token>;
    template <class Mistake = no_such_option_in<options_type>>
    explicit basic_lookup(...) = delete;

    /// Uses a given vocabulary; tf_idf needs a weight for each category. Throws argument_error if a
    /// category occurs twice or is the mask, for a vocabulary beyond max_tokens, and for invalid
    /// options.
    basic_lookup(options_type options, std::vector<Token> vocabulary, std::vector<double> idf_weights = {})
        : options_(std::move(options)), vocabulary_(std::move(vocabulary)), weights_(std::move(idf_weights)) {
        if (options_.oov_token == Token{}) options_.oov_token = default_oov();
        check();
        const std::int64_t first = first_word();
        for (std::size_t i = 0; i < vocabulary_.size(); ++i) {
            if (!indices_.emplace(vocabulary_[i], first + static_cast<std::int64_t>(i)).second)
                throw argument_error("lookup: " + text_of(vocabulary_[i]) + " appears twice in the vocabulary");
            if (options_.mask_token && vocabulary_[i] == *options_.mask_token)
                throw argument_error("lookup: the mask token " + text_of(vocabulary_[i]) + " is in the vocabulary");
        }
    }
    /// Uses the most frequent categories seen; of equally frequent ones the greater comes first, as
    /// in Keras. For tf_idf the weight of each is ln(1 + records / (1 + records that contain it)),
    /// and that of unknown ones the mean.
    basic_lookup(options_type options, const lookup_counter<Token>& seen)
        : basic_lookup(learned(std::move(options), seen)) {}

    /// The options it was made with.
    const options_type& options() const { return options_; }
    /// Excludes mask and unknown.
    const std::vector<Token>& vocabulary() const { return vocabulary_; }
    /// The number of indices: an embedding's input_dim.
    std::int64_t size() const { return first_word() + static_cast<std::int64_t>(vocabulary_.size()); }
    /// The number of columns of a row.
    std::int64_t depth() const { return options_.pad_to_max_tokens ? options_.max_tokens : size(); }
    /// The weight of each index, for tf_idf.
    std::vector<double> idf_weights() const {
        std::vector<double> all;
        double sum = 0;
        for (const double weight : weights_) sum += weight;
        if (!weights_.empty())
            all.assign(static_cast<std::size_t>(first_word()), sum / static_cast<double>(weights_.size()));
        all.insert(all.end(), weights_.begin(), weights_.end());
        return all;
    }

    /// The index of a category; -1 for the mask in modes other than index. Throws range_error for
    /// an unknown one if num_oov_indices is 0.
    std::int64_t index_of(view token) const {
        if (options_.mask_token && token == *options_.mask_token) return options_.mode == output_mode::index ? 0 : -1;
        if (const auto found = indices_.find(token); found != indices_.end()) return found->second;
        if (options_.num_oov_indices == 0)
            throw range_error("lookup: " + text_of(Token(token)) + " is not in the vocabulary");
        return mask_places() + share_of(token);
    }
    /// The index of each token, as `index_of` gives it.
    std::vector<std::int64_t> indices_of(const std::vector<Token>& tokens) const {
        std::vector<std::int64_t> result;
        for (const Token& each : tokens) result.push_back(index_of(each));
        return result;
    }
    /// The category of an index: Keras's invert. Throws range_error for an index outside [0, size()).
    const Token& token_of(std::int64_t index) const {
        if (index < 0 || index >= size()) throw range_error(index_outside("lookup", index, "0", size()));
        if (index >= first_word()) return vocabulary_[static_cast<std::size_t>(index - first_word())];
        return index < mask_places() ? *options_.mask_token : options_.oov_token;
    }

    /// Numbers of an encoded record of `count` tokens.
    std::int64_t output_size(std::int64_t count) const { return encoded_size(options_.mode, count, depth()); }
    /// Encodes a record by the mode.
    template <class T, class Out>
    void apply(std::span<const T> record, std::span<Out> out) const {
        std::vector<std::int64_t> indices;
        for (const T& each : record)
            if (const std::int64_t index = index_of(static_cast<view>(each));
                index >= 0 || options_.mode == output_mode::one_hot)
                indices.push_back(index);
        if (options_.mode == output_mode::one_hot) return one_hot_rows(indices, out);
        encode_indices(std::span<const std::int64_t>(indices), options_.mode, depth(), out);
        if (options_.mode != output_mode::tf_idf) return;
        const auto weights = idf_weights();
        for (std::size_t i = 0; i < weights.size(); ++i)
            out[i] = static_cast<Out>(static_cast<double>(out[i]) * weights[i]);
    }
    /// The encoded record.
    std::vector<float> operator()(const std::vector<Token>& record) const {
        std::vector<float> out(static_cast<std::size_t>(output_size(static_cast<std::int64_t>(record.size()))));
        apply(std::span<const Token>(record), std::span<float>(out));
        return out;
    }

    /// Options and vocabulary as JSON, which `from_json` reads.
    std::string to_json() const {
        detail::state_writer state(kind());
        state.integer("max_tokens", options_.max_tokens);
        state.integer("num_oov_indices", options_.num_oov_indices);
        state.word("mode", name_of(options_.mode));
        state.integer("pad_to_max_tokens", options_.pad_to_max_tokens);
        if (options_.mask_token) write(state, "mask_token", {*options_.mask_token});
        write(state, "oov_token", {options_.oov_token});
        write(state, "vocabulary", vocabulary_);
        if (!weights_.empty()) state.numbers("idf_weights", weights_);
        return state.text();
    }
    /// The lookup of a state. Throws data_error, which names `origin`, for text that is none.
    static basic_lookup from_json(std::string_view text, const std::string& origin = "lookup") {
        options_type options;
        std::vector<Token> vocabulary, mask, oov;
        std::vector<double> weights;
        detail::read_state(text, origin, kind(), [&](const std::string& name, io::json_reader& json) {
            if (name == "vocabulary") return read(json, vocabulary);
            if (name == "mask_token") return read(json, mask);
            if (name == "oov_token") return read(json, oov);
            if (name == "idf_weights") return detail::read_numbers(json, weights);
            if (name == "mode") return detail::read_mode(json, options.mode);
            if (name == "max_tokens")
                options.max_tokens = json.integer();
            else if (name == "num_oov_indices")
                options.num_oov_indices = json.integer();
            else if (name == "pad_to_max_tokens")
                options.pad_to_max_tokens = json.integer() != 0;
            else
                return false;
            return true;
        });
        if (mask.size() > 1 || oov.size() != 1)
            throw data_error(origin + ": one oov_token is needed, and at most one mask_token");
        if (!mask.empty()) options.mask_token = mask[0];
        options.oov_token = oov[0];
        return detail::restored(
            origin, [&] { return basic_lookup(std::move(options), std::move(vocabulary), std::move(weights)); });
    }

private:
    static constexpr bool of_words = std::is_same_v<Token, std::string>;
    static const char* kind() { return of_words ? "string_lookup" : "integer_lookup"; }
    static Token default_oov() {
        if constexpr (of_words)
            return "[UNK]";
        else
            return -1;
    }
    static std::string text_of(const Token& token) {
        if constexpr (of_words)
            return io::quoted_text(token);
        else
            return std::to_string(token);
    }
    static void write(detail::state_writer& state, std::string_view name, const std::vector<Token>& tokens) {
        if constexpr (of_words)
            state.words(name, tokens);
        else
            state.integers(name, tokens);
    }
    static bool read(io::json_reader& json, std::vector<Token>& tokens) {
        if constexpr (of_words)
            return detail::read_words(json, tokens);
        else
            return detail::read_integers(json, tokens);
    }

    void check() const {
        const std::string what = "lookup: ";
        if (options_.max_tokens < 0 || options_.num_oov_indices < 0 ||
            (std::int64_t{1} << 24) < options_.num_oov_indices)
            throw argument_error(what + "max_tokens " + std::to_string(options_.max_tokens) + ", num_oov_indices " +
                                 std::to_string(options_.num_oov_indices));
        if (options_.max_tokens > 0 && size() > options_.max_tokens)
            throw argument_error(what + "mask, unknown and vocabulary are " + std::to_string(size()) +
                                 ", max_tokens is " + std::to_string(options_.max_tokens));
        if (options_.pad_to_max_tokens && options_.max_tokens == 0)
            throw argument_error(what + "pad_to_max_tokens needs max_tokens");
        if (weights_.size() != (options_.mode == output_mode::tf_idf ? vocabulary_.size() : 0))
            throw argument_error(what + std::to_string(weights_.size()) + " idf_weights for " +
                                 std::to_string(vocabulary_.size()) + " categories and the mode " +
                                 name_of(options_.mode));
    }
    std::int64_t mask_places() const { return options_.mask_token && options_.mode == output_mode::index ? 1 : 0; }
    std::int64_t first_word() const { return mask_places() + options_.num_oov_indices; }
    /// Selects one of several indices for an unknown category: words by FarmHash, numbers by their
    /// remainder.
    std::int64_t share_of(view token) const {
        const std::int64_t count = options_.num_oov_indices;
        if constexpr (of_words)
            return count == 1 ? 0 : static_cast<std::int64_t>(fingerprint64(token) % static_cast<std::uint64_t>(count));
        else
            return (token % count + count) % count;
    }
    template <class Out>
    void one_hot_rows(const std::vector<std::int64_t>& indices, std::span<Out> out) const {
        const auto columns = static_cast<std::size_t>(depth());
        if (out.size() != indices.size() * columns)
            throw argument_error("lookup: " + std::to_string(indices.size()) + " rows of " + std::to_string(columns) +
                                 " values, there is place for " + std::to_string(out.size()));
        std::fill(out.begin(), out.end(), Out(0));
        for (std::size_t i = 0; i < indices.size(); ++i)
            if (indices[i] >= 0) out[i * columns + static_cast<std::size_t>(indices[i])] = Out(1);
    }
    static basic_lookup learned(options_type options, const lookup_counter<Token>& seen) {
        const Token oov = options.oov_token == Token{} ? default_oov() : options.oov_token;
        std::vector<const typename std::map<Token, typename lookup_counter<Token>::counts>::value_type*> order;
        for (const auto& each : seen.words())
            if (each.first != oov && !(options.mask_token == each.first)) order.push_back(&each);
        std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
            return a->second.values != b->second.values ? a->second.values > b->second.values : b->first < a->first;
        });
        const std::int64_t special =
            options.num_oov_indices + (options.mask_token && options.mode == output_mode::index ? 1 : 0);
        if (options.max_tokens > 0)
            order.resize(std::min(order.size(),
                                  static_cast<std::size_t>(std::max<std::int64_t>(options.max_tokens - special, 0))));
        std::vector<Token> words;
        std::vector<double> weights;
        for (const auto* each : order) {
            words.push_back(each->first);
            if (options.mode == output_mode::tf_idf)
                weights.push_back(std::log(1 + static_cast<double>(seen.records()) /
                                                   (1 + static_cast<double>(each->second.records))));
        }
        return basic_lookup(std::move(options), std::move(words), std::move(weights));
    }

    options_type options_;
    std::vector<Token> vocabulary_;
    std::vector<double> weights_;
    std::map<Token, std::int64_t, std::less<>> indices_;
};
using string_lookup = basic_lookup<std::string>;
using integer_lookup = basic_lookup<std::int64_t>;

} // namespace tapegraph::data
