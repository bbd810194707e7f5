#pragma once

#include <tapegraph/formats/gguf_blocks.hpp>
#include <tapegraph/formats/gguf_cursor.hpp>
#include <tapegraph/formats/host_array.hpp>
#include <tapegraph/formats/mapped_file.hpp>
#include <tapegraph/formats/path.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// Reads GGUF, versions 2 and 3: the files of llama.cpp, with metadata and tensors, most of them in
/// quantised blocks. For loading into models see io/gguf_weights.hpp.
///
///     "GGUF", version u32, tensors u64, entries u64
///     entries: key, type u32, value; a text is its length u64 and its bytes
///     tensors: name, axes u32, extents u64 (the innermost first), type u32, offset u64 in the data
///     zeros up to a multiple of "general.alignment" (32), then the data

namespace tapegraph::io {

/// A tensor of a GGUF file, as it is stored.
struct gguf_tensor {
    std::string name;
    std::string type;                ///< "F32", "Q4_K", ...; "type 99" for one that is not known
    std::vector<std::int64_t> shape; ///< row-major, the outermost axis first: [rows, columns]
    std::span<const std::byte> bytes;
    std::string reason{}; ///< why it is not read; empty where it is
};

namespace detail {

/// The element type of the array that a tensor is read as: f32 for blocks. False: it is not read.
inline bool gguf_array_type(const gguf_block& block, dtype& type) {
    constexpr std::pair<std::string_view, dtype> plain[] = {
        {"F32", dtype::f32}, {"F16", dtype::f16}, {"BF16", dtype::bf16}, {"F64", dtype::f64},
        {"I8", dtype::i8},   {"I16", dtype::i16}, {"I32", dtype::i32},   {"I64", dtype::i64}};
    type = dtype::f32;
    if (block.read != nullptr) return true;
    for (const auto& [name, as] : plain)
        if (name == block.name) {
            type = as;
            return true;
        }
    return false;
}

struct gguf_contents {
    std::map<std::string, gguf_value> metadata;
    std::vector<gguf_tensor> tensors; ///< in the file's order
};

/// Reads the header of a file and checks each tensor's place. Throws data_error, naming file and
/// entry or tensor.
inline gguf_contents view_gguf(std::span<const std::byte> file, const std::string& what) {
    gguf_cursor in(file, what);
    const std::uint32_t magic = in.number<std::uint32_t>("the magic number");
    if (magic != 0x46554747u) throw data_error(what + ": not a GGUF file, which begins with GGUF");
    const std::uint32_t version = in.number<std::uint32_t>("the version");
    if ((version & 0xFFFFu) == 0)
        throw data_error(what + ": a GGUF file of a big-endian machine, little-endian ones are read");
    if (version != 2 && version != 3)
        throw data_error(what + ": GGUF version " + std::to_string(version) + ", versions 2 and 3 are read");
    const std::uint64_t tensors = in.number<std::uint64_t>("the number of tensors");
    const std::uint64_t entries = in.number<std::uint64_t>("the number of entries");
    gguf_contents result;
    for (std::uint64_t i = 0; i < entries; ++i) {
        std::string key = in.text("the key of entry " + std::to_string(i));
        const std::string which = "entry " + quoted_text(key);
        const auto type = in.number<std::uint32_t>(which);
        if (!result.metadata.emplace(std::move(key), in.value(type, which, 0)).second)
            in.refuse(which + " appears twice");
    }
    std::uint64_t alignment = 32;
    if (const auto found = result.metadata.find("general.alignment"); found != result.metadata.end()) {
        const auto* const given = std::get_if<std::int64_t>(&found->second.value);
        alignment = given == nullptr ? 0 : static_cast<std::uint64_t>(*given);
        if (alignment == 0 || alignment > (1u << 20) || (alignment & (alignment - 1)) != 0)
            in.refuse("general.alignment is no power of two up to 2^20");
    }
    struct place {
        std::uint64_t offset, bytes;
    };
    std::vector<place> places;
    for (std::uint64_t i = 0; i < tensors; ++i) {
        gguf_tensor tensor{in.text("the name of tensor " + std::to_string(i)), {}, {}, {}};
        const std::string which = "tensor " + quoted_text(tensor.name);
        constexpr std::uint32_t most_axes = 8; // ggml has 4
        const auto axes = in.number<std::uint32_t>(which);
        if (axes > most_axes) in.refuse(which + " has " + std::to_string(axes) + " axes");
        for (std::uint32_t axis = 0; axis < axes; ++axis) {
            const auto extent = in.number<std::uint64_t>(which);
            tensor.shape.insert(tensor.shape.begin(), extent > INT64_MAX ? -1 : static_cast<std::int64_t>(extent));
        }
        const auto type = in.number<std::uint32_t>(which);
        const auto offset = in.number<std::uint64_t>(which);
        const gguf_block* const block = find_gguf_block(type);
        tensor.type = block == nullptr ? "type " + std::to_string(type) : std::string(block->name);
        std::int64_t size = 0;
        if (!checked_size(tensor.shape, sizeof(double), size))
            in.refuse(which + ": impossible shape " + shape_text(tensor.shape));
        if (offset % alignment != 0) in.refuse(which + " is not aligned");
        dtype as{};
        if (block == nullptr || !gguf_array_type(*block, as))
            tensor.reason = "elements of " + tensor.type + " are not read";
        std::uint64_t bytes = 0;
        if (block != nullptr) {
            const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
            if (row % static_cast<std::int64_t>(block->count) != 0)
                in.refuse(which + ": rows of " + std::to_string(row) + " elements, " + tensor.type + " has blocks of " +
                          std::to_string(block->count));
            bytes = static_cast<std::uint64_t>(size) / block->count * block->bytes;
        }
        places.push_back({offset, bytes});
        result.tensors.push_back(std::move(tensor));
    }
    const std::uint64_t padding = (alignment - in.at() % alignment) % alignment;
    const std::uint64_t data = in.at() + padding;
    std::map<std::string_view, std::size_t> names;
    std::map<std::uint64_t, std::size_t> by_offset;
    for (std::size_t i = 0; i < result.tensors.size(); ++i) {
        gguf_tensor& tensor = result.tensors[i];
        const std::string which = "tensor " + quoted_text(tensor.name);
        if (!names.emplace(tensor.name, i).second) in.refuse(which + " appears twice");
        const auto [offset, bytes] = places[i];
        if (bytes == 0) continue;
        if (data > file.size() || offset > file.size() - data || bytes > file.size() - data - offset)
            in.refuse(which + ": " + std::to_string(bytes) + " bytes from " + std::to_string(offset) +
                      " of the data on reach beyond the file");
        tensor.bytes = file.subspan(static_cast<std::size_t>(data + offset), static_cast<std::size_t>(bytes));
        if (!by_offset.emplace(offset, i).second) in.refuse(which + " overlaps another");
    }
    std::uint64_t end = 0; // many tensors over the same bytes would need more memory than the file
    for (const auto& [offset, i] : by_offset) {
        if (offset < end) in.refuse("tensor " + quoted_text(result.tensors[i].name) + " overlaps another");
        end = offset + places[i].bytes;
    }
    return result;
}

} // namespace detail

/// A GGUF file, mapped into memory: opening it reads the header, and a tensor is read when it is
/// asked for.
///
///     const tg::io::gguf_reader file("llama.gguf");
///     file.text("general.architecture");                        // "llama"
///     const tg::io::host_array query = file.array("blk.0.attn_q.weight"); // f32 [out, in]
class gguf_reader {
public:
    /// Throws data_error, naming file and entry or tensor, if the file is missing, damaged, of
    /// another format, version or byte order.
    explicit gguf_reader(const files::path& path)
        : name_(detail::quoted(path)), file_(path), contents_(detail::view_gguf(file_.bytes(), name_)) {}

    const std::string& name() const { return name_; } ///< of the file, for messages
    /// In the file's order.
    const std::vector<gguf_tensor>& tensors() const { return contents_.tensors; }
    /// All values that the file has beside its tensors, by key.
    const std::map<std::string, gguf_value>& metadata() const { return contents_.metadata; }
    /// An entry of the metadata. Null if there is none.
    const gguf_value* find(const std::string& key) const {
        const auto found = contents_.metadata.find(key);
        return found == contents_.metadata.end() ? nullptr : &found->second;
    }
    /// An entry that must exist. Throws data_error for one that does not.
    const gguf_value& at(const std::string& key) const {
        if (const gguf_value* const found = find(key)) return *found;
        throw data_error(name_ + ": no entry " + quoted_text(key) + " among " + std::to_string(metadata().size()));
    }
    /// The text of a key. Throws data_error if there is none.
    const std::string& text(const std::string& key) const { return at(key).text(); }
    /// The whole number of a key. Throws data_error if there is none.
    std::int64_t integer(const std::string& key) const { return at(key).integer(); }

    /// The tensor of a name. Throws data_error for an unknown one.
    const gguf_tensor& tensor(std::string_view name) const {
        for (const gguf_tensor& each : contents_.tensors)
            if (each.name == name) return each;
        throw data_error(name_ + ": no tensor " + quoted_text(name) + " among " + std::to_string(tensors().size()));
    }
    /// The values of a tensor: those of F32, F16, BF16, F64 and integers as they are, those of
    /// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, Q8_K, IQ4_NL, IQ4_XS and MXFP4 in f32. Throws
    /// dtype_error for other types.
    host_array array(const gguf_tensor& tensor) const {
        if (!tensor.reason.empty())
            throw dtype_error(name_ + ", tensor " + quoted_text(tensor.name) + ": " + tensor.reason);
        const auto block = std::find_if(detail::gguf_blocks.begin(), detail::gguf_blocks.end(),
                                        [&](const detail::gguf_block& b) { return tensor.type == b.name; });
        dtype type{};
        detail::gguf_array_type(*block, type);
        host_array result{type, tensor.shape, {}};
        if (block->read == nullptr) {
            result.bytes.assign(tensor.bytes.begin(), tensor.bytes.end());
            return result;
        }
        const std::size_t blocks = tensor.bytes.size() / block->bytes;
        result.bytes.resize(blocks * block->count * sizeof(float));
        float* to = result.values<float>().data();
        const auto* from = reinterpret_cast<const std::uint8_t*>(tensor.bytes.data());
        for (std::size_t i = 0; i < blocks; ++i, to += block->count, from += block->bytes) block->read(from, to);
        return result;
    }
    host_array array(std::string_view name) const { return array(tensor(name)); }

private:
    std::string name_;
    mapped_file file_;
    detail::gguf_contents contents_;
};

/// All tensors by name, in the file's order. `unread` receives those of other types; without it they
/// are a dtype_error. Otherwise throws as gguf_reader does.
inline std::vector<named_array> read_gguf(const files::path& path, std::vector<unread_value>* unread = nullptr) {
    const gguf_reader file(path);
    std::vector<named_array> result;
    for (const gguf_tensor& tensor : file.tensors())
        if (unread != nullptr && !tensor.reason.empty())
            unread->push_back({tensor.name, tensor.reason, true});
        else
            result.push_back({tensor.name, file.array(tensor)});
    return result;
}

} // namespace tapegraph::io
