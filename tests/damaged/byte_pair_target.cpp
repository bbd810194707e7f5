// needs: unicode
#include <damaged/target.hpp>

#include <tapegraph/data/text/byte_pair_files.hpp>
#include <tapegraph/data/text/byte_pair_training.hpp>

#include <vector>

/// A tokenizer.json; or vocab.json and merges.txt with a 0 between them.

std::vector<std::string> sound_files() {
    using namespace tapegraph;
    const std::vector<std::string> texts{"low low lower newest newest newest widest", "12 345 it's"};
    std::vector<std::string> files;
    for (const auto split : {data::byte_level_split::gpt2, data::byte_level_split::cl100k}) {
        const auto learned = data::learn_byte_pair_encoding(
            std::span<const std::string>(texts), {.vocab_size = 270, .special_tokens = {"<|end|>"}, .split = split});
        files.push_back(data::to_tokenizer_json(learned));
        std::string merges = "#version: 0.2\n";
        for (const auto& [left, right] : learned.tables().merges)
            merges.append(left).append(" ").append(right).append("\n");
        files.push_back(data::detail::vocabulary_text(learned.tables()) + '\0' + merges);
    }
    files.push_back(
        R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]}, "added_tokens": [{"id": 3, "content": "É", "normalized": true}], "pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
    files.push_back(
        R"({"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
    files.push_back(
        R"({"added_tokens": [{"id": 5, "content": "<|end|>"}], "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}, "model": {"type": "BPE", "unk_token": "?", "fuse_unk": true, "byte_fallback": true, "vocab": {"?": 0, "\u2581": 1, "w": 2, "\u2581w": 3, "<0x65>": 4}, "merges": ["\u2581 w"]}})");
    files.push_back(
        R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true}, "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "e": 1, "s": 2, "es": 3}, "merges": ["e s"]}})");
    return files;
}

bool read_damaged(const std::string& bytes) {
    using namespace tapegraph;
    try {
        const std::size_t end = bytes.find('\0');
        const auto words = end == bytes.npos
                               ? data::byte_pair_encoding_from_json(bytes)
                               : data::byte_pair_encoding_from_gpt2(std::string_view(bytes).substr(0, end),
                                                                    std::string_view(bytes).substr(end + 1));
        try {
            static_cast<void>(words.decode(words.encode("lowest <|end|> newest 1234")));
        } catch (const argument_error&) { // a byte that no token has
        }
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 128; // tokens, merges and maps of both
