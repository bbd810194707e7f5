#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/formats/gguf.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/io/pytorch_dialect.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Loads weights of GGUF files, the format of llama.cpp, into a model.

namespace tapegraph::io {

namespace detail {

/// Layouts are PyTorch's, names are llama.cpp's: "blk.0.attn_q.weight".
struct gguf_dialect : pytorch_dialect {
    static bool same_name(const std::string& scope, const std::string& path) {
        return words_of(scope) == words_of(path);
    }

private:
    /// The words of a name without separators: "blk.0.attn_q", "blk_0/attention/query" and
    /// "/blk/0/attn/q" are the same.
    static std::vector<std::string> words_of(const std::string& name) {
        std::vector<std::string> words;
        for (std::size_t at = 0; at <= name.size();) {
            const std::size_t end = std::min(name.find_first_of("/._", at), name.size());
            std::string word = name.substr(at, end - at);
            if (word == "attn") word = "attention";
            if (word == "embd") word = "embedding";
            if (word == "q") word = "query";
            if (word == "k") word = "key";
            if (word == "v") word = "value";
            if (!word.empty() && (words.empty() || words.back() != word)) words.push_back(std::move(word));
            at = end + 1;
        }
        return words;
    }
};

/// Whether llama.cpp rotates neighbouring pairs of features in models of this kind (its
/// LLAMA_ROPE_TYPE_NORM). In the others, as in rotary_positions, pairs are half a head apart.
inline bool gguf_rotates_neighbours(std::string_view architecture) {
    constexpr std::string_view known[] = {"llama",     "llama4",    "deci",    "baichuan",   "starcoder",
                                          "internlm2", "minicpm",   "xverse",  "cohere2",    "olmo",
                                          "arctic",    "command-r", "granite", "granitemoe", "chatglm",
                                          "glm4",      "smollm3",   "arcee",   "ernie4_5"};
    return std::find(std::begin(known), std::end(known), architecture) != std::end(known);
}

/// Reorders the rows of each head's first `rotated` features from pairs of neighbours to two halves.
inline void rotate_halves(host_array& rows, std::int64_t heads, std::int64_t rotated, const std::string& what) {
    const std::int64_t count = rows.shape.empty() ? 0 : rows.shape[0];
    if (heads <= 0 || count % heads != 0 || rotated <= 0 || rotated % 2 != 0 || rotated > count / heads)
        throw data_error(what + ": " + std::to_string(heads) + " heads, " + std::to_string(rotated) +
                         " rotated features and " + std::to_string(count) + " rows do not fit");
    const std::size_t row = rows.bytes.size() / static_cast<std::size_t>(count);
    const std::vector<std::byte> from = rows.bytes;
    const std::int64_t features = count / heads;
    for (std::int64_t head = 0; head < heads; ++head)
        for (std::int64_t i = 0; i < rotated; ++i) {
            const std::int64_t half = rotated / 2, source = i < half ? 2 * i : 2 * (i - half) + 1;
            std::memcpy(rows.bytes.data() + static_cast<std::size_t>(head * features + i) * row,
                        from.data() + static_cast<std::size_t>(head * features + source) * row, row);
        }
}

/// The layers of a file. Blocks follow one another; in what order a block has its layers depends on
/// the program that wrote it.
inline std::vector<foreign_layer> layers_of_gguf(const gguf_reader& file, const std::string& prefix,
                                                 std::vector<unread_value>& unread) {
    const std::string architecture = file.find("general.architecture") ? file.text("general.architecture") : "";
    const auto of_block = [&](const char* name, const std::string& tensor) -> std::int64_t {
        const gguf_value* const entry = file.find(architecture + name);
        if (entry == nullptr) return 0;
        const auto* const list = std::get_if<std::vector<std::int64_t>>(&entry->value); // one number a block
        if (list == nullptr) return entry->integer();
        const std::size_t block = tensor.starts_with("blk.") ? std::strtoul(tensor.c_str() + 4, nullptr, 10) : 0;
        return block < list->size() ? (*list)[block] : 0;
    };
    std::vector<named_array> tensors;
    for (const gguf_tensor& tensor : file.tensors()) {
        if (!tensor.reason.empty()) {
            unread.push_back({tensor.name, tensor.reason, true});
            continue;
        }
        host_array array = file.array(tensor);
        const bool query = tensor.name.find(".attn_q.") != std::string::npos;
        const bool key = tensor.name.find(".attn_k.") != std::string::npos;
        if ((query || key) && gguf_rotates_neighbours(architecture)) {
            const std::int64_t all = of_block(".attention.head_count", tensor.name);
            const std::int64_t shared = of_block(".attention.head_count_kv", tensor.name);
            const std::int64_t heads = key && shared > 0 ? shared : all;
            const std::int64_t given = of_block(".rope.dimension_count", tensor.name);
            const std::int64_t features = heads > 0 && !array.shape.empty() ? array.shape[0] / heads : 0;
            rotate_halves(array, heads, given > 0 ? given : features,
                          file.name() + ", tensor " + quoted_text(tensor.name));
        }
        tensors.push_back({tensor.name, std::move(array)});
    }
    std::vector<foreign_layer> layers = layers_of_pytorch(std::move(tensors), prefix, file.name());
    for (foreign_layer& layer : layers) {
        for (std::size_t at = 0; at <= layer.path.size();) {
            const std::size_t end = std::min(layer.path.find('.', at), layer.path.size());
            std::string step = layer.path.substr(at, end - at);
            const bool number = !step.empty() && step.find_first_not_of("0123456789") == std::string::npos;
            layer.order.push_back({step, number ? std::string() : "/" + step});
            at = end + 1;
        }
    }
    std::stable_sort(layers.begin(), layers.end(), [](const foreign_layer& a, const foreign_layer& b) {
        const auto block = [](const foreign_layer& l) { // what is in no block keeps its place, as does -1
            return l.path.starts_with("blk.") ? std::strtol(l.path.c_str() + 4, nullptr, 10) : -1;
        };
        return block(a) < block(b);
    });
    return layers;
}

} // namespace detail

/// Loads the weights of a GGUF file into a model; its optimizer and step count are unchanged.
/// Quantised blocks become floats (gguf_reader::array). Layers are found by name, where "blk.0.attn_q"
/// is the scope "blk/0/attention/query" or "blk_0/attn_q", or as options.layers says; by kind and
/// shape only where one layer alone fits, or one of each block: a block's layers have no order.
/// Queries and keys of models that llama.cpp rotates by neighbouring pairs ("llama", ...) are
/// reordered for rotary_positions. Layouts, types and errors are otherwise those of load_pytorch;
/// `flattened` is not needed. Throws what gguf_reader throws for a file that cannot be read.
///
///     tg::io::load_gguf(model, "llama.Q4_K_M.gguf", {.layers = {{"blk", "decoder"}}});
template <class Model>
foreign_report load_gguf(Model& model, const files::path& path, const foreign_options& options = {}) {
    const gguf_reader file(path);
    std::vector<unread_value> unread;
    std::vector<detail::foreign_layer> layers = detail::layers_of_gguf(file, options.prefix, unread);
    return detail::load_foreign<detail::gguf_dialect>(model.variables(), std::move(layers), file.name(), options,
                                                      std::move(unread));
}

} // namespace tapegraph::io
