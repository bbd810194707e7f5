#include <damaged/target.hpp>

#include <tapegraph/formats/json_reader.hpp>
#include <tapegraph/formats/safetensors_reader.hpp>
#include <tapegraph/io/checkpoint_state.hpp>

// JSON by itself, as the index of a sharded model, whose files are not opened here, and as the state of a checkpoint.

std::vector<std::string> sound_files() {
    return {
        R"({"name":"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00","list":[0,-1,1.5e-3,[[],{}]],"on":true,"off":false,"none":null})",
        R"({"metadata":{"total_size":24,"format":"pt"},"weight_map":{"a/kernel":"m-00001-of-00002.safetensors","a/bias":"m-00002-of-00002.safetensors"}})",
        R"([18446744073709551615,-9223372036854775808,1E+300,1e-99999,"zwei",[[[[[[[[[[1]]]]]]]]]]])",
        R"({"step":600,"epoch":2,"position":7,"seed":18446744073709551615,"metrics":{"loss":0.25,"val_loss":null}})",
        "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"",
    };
}

bool read_damaged(const std::string& bytes) {
    using namespace tapegraph;
    bool read = false;
    try {
        io::json_reader json(bytes, "'damaged'");
        json.skip();
        json.end();
        read = true;
    } catch (const error&) {}
    try {
        for (const auto& [tensor, file] : io::detail::parse_shard_index(bytes, "'damaged'").files)
            if (file.find('/') != file.npos || file.empty()) throw "a file outside the folder";
        read = true;
    } catch (const error&) {}
    try {
        const checkpoint_state state = io::detail::state_of(bytes, "'damaged'");
        static_cast<void>(io::detail::state_of(io::detail::text_of(state), "'again'"));
        read = true;
    } catch (const error&) {}
    return read;
}

const std::size_t memory_factor = 64; // names, each with its node of a tree
