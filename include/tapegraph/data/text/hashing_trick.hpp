#pragma once

#include <tapegraph/data/tables/fingerprint.hpp>
#include <tapegraph/data/text/word_sequence.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tapegraph::data {

/// The words of a text as hashes in [1, n), without a vocabulary, like
/// keras.preprocessing.text.hashing_trick: hash(word) % (n - 1) + 1. Two words may share a hash.
/// `hash` is called with a std::string_view and returns an unsigned integer. Throws argument_error
/// for n below 2.
template <std::invocable<std::string_view> Hash>
std::vector<std::int32_t> hashing_trick(std::string_view text, std::int32_t n, const Hash& hash,
                                        const word_sequence_options& options = {}) {
    if (n < 2) throw argument_error("hashing_trick: n is " + std::to_string(n) + ": hashes are in [1, n)");
    const auto bins = static_cast<std::uint32_t>(n - 1);
    std::vector<std::int32_t> hashes;
    for (const auto& word : text_to_word_sequence(text, options))
        hashes.push_back(static_cast<std::int32_t>(hash(std::string_view(word)) % bins) + 1);
    return hashes;
}
/// The same by fingerprint64, which is stable across machines and versions. Keras's default is
/// Python's hash(), which changes with each process; examples/keras_hashing.cpp has its "md5".
inline std::vector<std::int32_t> hashing_trick(std::string_view text, std::int32_t n,
                                               const word_sequence_options& options = {}) {
    return hashing_trick(
        text, n, [](std::string_view word) { return fingerprint64(word); }, options);
}

/// keras.preprocessing.text.one_hot, which is the hashing trick under a misleading name: it returns
/// indices, not one-hot rows. For those see category_encoding.
inline std::vector<std::int32_t> one_hot(std::string_view text, std::int32_t n,
                                         const word_sequence_options& options = {}) {
    return hashing_trick(text, n, options);
}

} // namespace tapegraph::data
