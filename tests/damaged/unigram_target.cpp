// needs: unicode
#include <damaged/target.hpp>

#include <tapegraph/data/text/unigram_files.hpp>

#include <string>
#include <vector>

/// A tokenizer.json of a unigram model, with rules of SentencePiece: "A" becomes "a".

std::vector<std::string> sound_files() {
    const std::string model =
        R"("model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": [["<unk>", 0], ["\u2581", -2.5],)"
        R"( ["\u2581low", -3], ["e", -4], ["est", -3.5], ["<0x41>", -9]]})";
    return {
        R"({"version": "1.0", "added_tokens": [{"id": 9, "content": "<m>", "special": true}], "normalizer": {"type":)"
        R"( "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},)"
        R"( "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true}, )" +
            model + "}",
        R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "CAAAAAAEAAABAAAAYQA="}, )" + model +
            R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace",)"
            R"( "add_prefix_space": true}]}})"};
}

bool read_damaged(const std::string& bytes) {
    try {
        const auto words = tapegraph::data::unigram_from_json(bytes);
        static_cast<void>(words.decode(words.encode("lowest <m> A  low\xC3\xB6")));
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 128; // tokens and maps of them
