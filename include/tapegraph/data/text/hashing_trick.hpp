#pragma once

#include <tapegraph/data/tables/fingerprint.hpp>
#include <tapegraph/data/text/md5.hpp>
#include <tapegraph/data/text/word_sequence.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tapegraph::data {

enum class word_hash {
    fingerprint, ///< fingerprint64, which is stable across machines and versions
    md5          ///< Keras's result for hash_function="md5"
};

/// The words of a text as hashes in [1, n), without a vocabulary, like
/// keras.preprocessing.text.hashing_trick: hash % (n - 1) + 1. Two words may share a hash. Keras's
/// default is Python's hash(), which changes with each process; this one does not. Throws
/// argument_error for n below 2.
template <class = void>
std::vector<std::int32_t> hashing_trick(std::string_view text, std::int32_t n, word_hash hash = word_hash::fingerprint,
                                        const word_sequence_options& options = {}) {
    if (n < 2) throw argument_error("hashing_trick: n is " + std::to_string(n) + ": hashes are in [1, n)");
    const auto bins = static_cast<std::uint64_t>(n - 1);
    std::vector<std::int32_t> hashes;
    for (const auto& word : text_to_word_sequence(text, options)) {
        std::uint64_t rest = 0;
        if (hash == word_hash::fingerprint)
            rest = fingerprint64(word) % bins;
        else // a number of 128 bits, most significant byte first
            for (const std::uint8_t byte : md5(word)) rest = (rest << 8 | byte) % bins;
        hashes.push_back(static_cast<std::int32_t>(rest) + 1);
    }
    return hashes;
}

/// keras.preprocessing.text.one_hot, which is the hashing trick under a misleading name: it returns
/// indices, not one-hot rows. For those see category_encoding.
template <class = void>
std::vector<std::int32_t> one_hot(std::string_view text, std::int32_t n, const word_sequence_options& options = {}) {
    return hashing_trick(text, n, word_hash::fingerprint, options);
}

} // namespace tapegraph::data
