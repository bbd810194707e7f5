#include <tapegraph/io/gguf_weights.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/grouped_attention.hpp>
#include <tapegraph/tapegraph.hpp>

#include <formats/gguf_files.hpp>
#include <support/messages.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gguf_weights_test {

namespace tg = tapegraph;
using support::contains;
using support::message_of;

namespace {

/// A block of a llama: 2 query heads of 4 features that share one head of keys and values.
template <class Scope, class H>
constexpr auto block(const Scope& s, const H& x) {
    const auto normal = tg::rms_normalization(s / "attn_norm", x);
    const auto seen = tg::grouped_query_attention(
        s / "attention", normal, normal,
        {.head_dim = 4, .num_query_heads = 2, .num_key_value_heads = 1, .use_bias = false, .rotary_wavelength = 10000});
    const auto h = tg::eval(x + seen);
    const auto n = tg::rms_normalization(s / "ffn_norm", h);
    const auto gated = tg::eval(tg::silu(tg::dense(s / "ffn_gate", n, {.units = 5, .use_bias = false})) *
                                tg::dense(s / "ffn_up", n, {.units = 5, .use_bias = false}));
    return tg::eval(h + tg::dense(s / "ffn_down", gated, {.units = 6, .use_bias = false}));
}
constexpr auto llama = [](auto scope, auto words) {
    auto h = tg::embedding(scope / "token_embd", words, {.input_dim = 7, .output_dim = 6});
    h = block(scope / "blk_0", h);
    h = block(scope / "blk_1", h);
    return tg::dense(scope / "output", tg::rms_normalization(scope / "output_norm", h),
                     {.units = 7, .use_bias = false});
};

/// 0, 1, 2, ... from a number of its own for every tensor.
std::vector<float> numbers(std::int64_t count, int from) {
    std::vector<float> x;
    for (std::int64_t i = 0; i < count; ++i) x.push_back(static_cast<float>(100 * from) + static_cast<float>(i));
    return x;
}
/// In alphabetical order, as converters write the tensors of safetensors.
support::gguf_file file_of(const std::string& architecture) {
    support::gguf_file file;
    file.entry("general.architecture", 8, support::gguf_text(architecture));
    file.entry(architecture + ".attention.head_count", 2).entry(architecture + ".attention.head_count_kv", 1);
    int next = 1;
    const auto add = [&](const std::string& name, std::int64_t columns, std::int64_t rows) {
        std::vector<std::int64_t> extents{columns};
        if (rows > 0) extents.push_back(rows);
        file.tensor(name + ".weight", extents, numbers(columns * (rows > 0 ? rows : 1), next++));
    };
    add("output", 6, 7), add("output_norm", 6, 0), add("token_embd", 6, 7);
    for (const std::string block : {"blk.0.", "blk.1."}) {
        add(block + "attn_k", 6, 4), add(block + "attn_norm", 6, 0), add(block + "attn_output", 8, 6);
        add(block + "attn_q", 6, 8), add(block + "attn_v", 6, 4), add(block + "ffn_down", 5, 6);
        add(block + "ffn_gate", 6, 5), add(block + "ffn_norm", 6, 0), add(block + "ffn_up", 6, 5);
    }
    return file;
}

} // namespace

TEST_CASE("a llama's weights: names, layouts, and the pairs that positions rotate") {
    const support::temporary_folder folder;
    auto model = tg::compile<tg::eager>(llama, tg::spec<std::int32_t, tg::dyn, 3>{});
    const auto report = tg::io::load_gguf(model, folder.write("x.gguf", file_of("llama").bytes()));
    CHECK(report.sources.size() == model.variables().size());
    const auto value = [&](const char* name) { return tg::tensor<float>(model.variables()[name].value<float>()); };
    const auto up = value("blk_1/ffn_up/kernel"); // [6, 5] of [5, 6], the 21st tensor
    CHECK(up(0, 0) == 2100);
    CHECK(up(2, 1) == 2108);
    CHECK(value("token_embd/embeddings")(1, 0) == 306);
    CHECK(value("output/kernel")(0, 1) == 106);
    CHECK(value("blk_0/attention/value/kernel")(1, 0, 3) == 819);                        // [6, 1, 4] of [4, 6]
    CHECK(value("blk_0/attention/attention_output/kernel")(1, 2, 3) == 600 + 3 * 8 + 6); // [2, 4, 6] of [6, 8]
    CHECK(value("blk_0/ffn_norm/scale")(4) == 1104);
    // Features 0, 1, 2, 3 of a head are rows 0, 2, 1, 3 of the file.
    const auto query = value("blk_0/attention/query/kernel"); // [6, 2, 4] of [8, 6], the 7th
    for (int head = 0; head < 2; ++head)
        for (int feature = 0; feature < 4; ++feature) {
            constexpr int rows[] = {0, 2, 1, 3};
            CHECK(query(5, head, feature) == static_cast<float>(700 + (4 * head + rows[feature]) * 6 + 5));
        }
    CHECK(value("blk_0/attention/key/kernel")(0, 0, 1) == 412);

    // Others have halves as rotary_positions does.
    tg::io::load_gguf(model, folder.write("y.gguf", file_of("qwen2").bytes()));
    CHECK(value("blk_0/attention/key/kernel")(0, 0, 1) == 406);
}

TEST_CASE("what is not clear, missing, left over or no type of ours is refused by name") {
    const support::temporary_folder folder;
    constexpr auto others = [](auto scope, auto words) {
        auto h = tg::embedding(scope / "words", words, {.input_dim = 7, .output_dim = 6});
        h = block(scope / "first", h);
        h = block(scope / "second", h);
        return tg::dense(scope / "score", tg::rms_normalization(scope / "last", h), {.units = 7, .use_bias = false});
    };
    auto model = tg::compile<tg::eager>(others, tg::spec<std::int32_t, tg::dyn, 3>{});
    const auto path = folder.write("x.gguf", file_of("llama").bytes());
    const std::string unclear = message_of<tg::data_error>([&] { tg::io::load_gguf(model, path); });
    CHECK(contains(unclear, "the file does not say which layer is which, name them in .layers"));
    CHECK(contains(unclear, "first/ffn_gate: blk.0.ffn_gate and blk.0.ffn_up fit"));
    const tg::io::foreign_options named{.layers = {{"blk.0", "first"},
                                                   {"blk.1", "second"},
                                                   {"token_embd", "words"},
                                                   {"output", "score"},
                                                   {"output_norm", "last"}}};
    CHECK(tg::io::load_gguf(model, path, named).sources.size() == model.variables().size());
    CHECK(model.variables()["second/ffn_up/kernel"].value<float>()(0, 0) == 2100);

    auto more = file_of("llama");
    more.tensor("rope_freqs.weight", {2}, {1, 1}).tensor("extra.weight", {256}, 16, std::string(66, '\0'));
    const std::string left =
        message_of<tg::data_error>([&] { tg::io::load_gguf(model, folder.write("y.gguf", more.bytes()), named); });
    CHECK(
        contains(left, "nothing in the model for rope_freqs.weight, extra.weight (elements of IQ2_XXS are not read)"));

    auto wrong = file_of("llama");
    wrong.entry("llama.rope.dimension_count", 5);
    CHECK(contains(
        message_of<tg::data_error>([&] { tg::io::load_gguf(model, folder.write("z.gguf", wrong.bytes()), named); }),
        "tensor 'blk.0.attn_k.weight': 1 heads, 5 rotated features and 4 rows do not fit"));
}

} // namespace gguf_weights_test
