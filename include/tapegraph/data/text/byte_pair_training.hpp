#pragma once

#include <tapegraph/data/text/byte_pair.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tapegraph::data {

/// Options of `learn_byte_pair_encoding`.
struct byte_pair_training_options {
    std::int64_t vocab_size = 30000;            ///< including special tokens and the 256 bytes
    std::int64_t min_frequency = 0;             ///< rarer pairs are not merged
    std::vector<std::string> special_tokens{};  ///< they get the ids from 0 on
    std::vector<text_normalizer> normalizers{}; ///< applied to texts before they are split
    byte_level_split split = byte_level_split::gpt2;
    bool add_prefix_space = false;
};

namespace detail {

/// Learns merges. A pair knows the words that contain it, so that a merge only visits these.
class byte_pair_trainer {
public:
    explicit byte_pair_trainer(const byte_pair_training_options& options) : options_(options) {
        tables_.normalizers = options.normalizers;
        tables_.split = options.split;
        tables_.add_prefix_space = options.add_prefix_space;
        for (const auto& each : options.special_tokens) {
            tables_.added.push_back({each, next_id()});
            add_token(each);
        }
        std::vector<std::pair<std::uint32_t, int>> order; // bytes, in the order of their characters
        for (int b = 0; b < 256; ++b) order.emplace_back(byte_level_character(static_cast<std::uint8_t>(b)), b);
        std::sort(order.begin(), order.end());
        for (const auto& [character, byte] : order) {
            byte_ids_[byte] = next_id();
            std::string token;
            append_utf8(token, character);
            add_token(std::move(token));
        }
    }

    void count(std::string_view text) {
        std::string changed;
        if (!options_.normalizers.empty()) text = changed = normalized_text(text, options_.normalizers);
        if (text.empty()) return;
        std::string prefixed;
        if (options_.add_prefix_space && text[0] != ' ') text = prefixed.append(" ").append(text);
        for_each_piece(text, options_.split, [&](std::string_view piece) {
            if (const auto found = counts_.find(piece); found != counts_.end())
                ++found->second;
            else
                counts_.emplace(piece, 1);
        });
    }

    byte_pair_tables learn() {
        for (const auto& [piece, count] : counts_) {
            word next{{}, count};
            for (const char c : piece) next.ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
            words_.push_back(std::move(next));
        }
        counts_.clear();
        for (std::size_t w = 0; w < words_.size(); ++w)
            for (std::size_t i = 0; i + 1 < words_[w].ids.size(); ++i)
                change(key(words_[w].ids[i], words_[w].ids[i + 1]), words_[w].count, w);
        for (const auto& [pair, state] : pairs_) heap_.push_back({state.count, pair});
        std::make_heap(heap_.begin(), heap_.end());
        const std::int64_t least = std::max<std::int64_t>(options_.min_frequency, 1);
        while (static_cast<std::int64_t>(tables_.vocabulary.size()) < options_.vocab_size && !heap_.empty()) {
            std::pop_heap(heap_.begin(), heap_.end());
            const entry top = heap_.back();
            heap_.pop_back();
            const std::int64_t now = pairs_[top.pair].count;
            if (now != top.count) { // it has changed, so it is reinserted
                if (now > 0) push({now, top.pair});
                continue;
            }
            if (now < least) break;
            merge(top.pair);
        }
        return std::move(tables_);
    }

private:
    struct word {
        std::vector<std::int32_t> ids;
        std::int64_t count;
    };
    struct pair_state {
        std::int64_t count = 0;
        std::vector<std::size_t> words{}; ///< indices of words that contain it, or did
    };
    struct entry {
        std::int64_t count;
        std::uint64_t pair;
        /// Orders by frequency, the most frequent first, and equal ones by the smaller ids.
        bool operator<(const entry& other) const {
            return count != other.count ? count < other.count : pair > other.pair;
        }
    };
    static std::uint64_t key(std::int32_t left, std::int32_t right) {
        return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
    }
    std::int32_t next_id() const { return static_cast<std::int32_t>(tables_.vocabulary.size()); }
    void add_token(std::string token) {
        const std::int32_t id = next_id();
        tables_.vocabulary.emplace_back(std::move(token), id);
    }
    void push(entry next) {
        heap_.push_back(next);
        std::push_heap(heap_.begin(), heap_.end());
    }
    void change(std::uint64_t pair, std::int64_t by, std::size_t word_place) {
        pair_state& state = pairs_[pair];
        state.count += by;
        if (by > 0 && (state.words.empty() || state.words.back() != word_place)) state.words.push_back(word_place);
    }
    void merge(std::uint64_t pair) {
        const auto left = static_cast<std::int32_t>(pair >> 32), right = static_cast<std::int32_t>(pair & 0xFFFFFFFF);
        const std::string left_text = tables_.vocabulary[static_cast<std::size_t>(left)].first;
        const std::string right_text = tables_.vocabulary[static_cast<std::size_t>(right)].first;
        tables_.merges.emplace_back(left_text, right_text);
        // Two pairs may give one token: "a"+"bc" and "ab"+"c".
        const auto [known, is_new] = made_.emplace(left_text + right_text, next_id());
        const std::int32_t id = known->second;
        if (is_new) add_token(left_text + right_text);
        const std::vector<std::size_t> places = std::move(pairs_[pair].words);
        std::vector<std::uint64_t> touched;
        for (const std::size_t w : places) {
            auto& ids = words_[w].ids;
            const std::int64_t count = words_[w].count;
            std::vector<std::int32_t> merged;
            for (std::size_t i = 0; i < ids.size(); ++i) {
                if (i + 1 == ids.size() || ids[i] != left || ids[i + 1] != right) {
                    merged.push_back(ids[i]);
                    continue;
                }
                merged.push_back(id);
                ++i;
            }
            if (merged.size() == ids.size()) continue; // merged in the meantime
            for (std::size_t i = 0; i + 1 < ids.size(); ++i) change(key(ids[i], ids[i + 1]), -count, w);
            ids = std::move(merged);
            for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
                change(key(ids[i], ids[i + 1]), count, w);
                if (ids[i] == id || ids[i + 1] == id) touched.push_back(key(ids[i], ids[i + 1]));
            }
        }
        std::sort(touched.begin(), touched.end());
        touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
        for (const std::uint64_t each : touched) push({pairs_[each].count, each});
    }

    byte_pair_training_options options_;
    byte_pair_tables tables_;
    text_map<std::int64_t> counts_;
    text_map<std::int32_t> made_;
    std::vector<word> words_;
    std::unordered_map<std::uint64_t, pair_state> pairs_;
    std::vector<entry> heap_;
    std::int32_t byte_ids_[256] = {};
};

} // namespace detail

/// Learns a byte-pair encoding of these texts: the most frequent pair of neighbouring tokens is
/// merged (of equally frequent ones that of the smaller ids), until there are `vocab_size` tokens
/// or no pair is left. The special tokens come first, then the 256 bytes. Equals Hugging Face's
/// BpeTrainer with the initial alphabet of ByteLevel. Throws argument_error for a vocab_size
/// without room for these.
inline byte_pair_encoding learn_byte_pair_encoding(std::span<const std::string> texts,
                                                   const byte_pair_training_options& options = {}) {
    if (options.vocab_size < 256 + static_cast<std::int64_t>(options.special_tokens.size()))
        throw argument_error("learn_byte_pair_encoding: vocab_size is " + std::to_string(options.vocab_size) +
                             ": it counts 256 bytes and " + std::to_string(options.special_tokens.size()) +
                             " special tokens");
    detail::byte_pair_trainer trainer(options);
    for (const auto& text : texts) trainer.count(text);
    return byte_pair_encoding(trainer.learn());
}

} // namespace tapegraph::data
