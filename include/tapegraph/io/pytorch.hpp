#pragma once

#include <tapegraph/io/host_array.hpp>
#include <tapegraph/io/path.hpp>
#include <tapegraph/io/pickle.hpp>
#include <tapegraph/io/strided_copy.hpp>
#include <tapegraph/io/zip.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Tensors of PyTorch's files, as torch.save writes a state_dict or a checkpoint with some: a zip archive of a pickle, which says how
/// tensors look at storages, and the storages. Read without Python, and without running anything. Into models: io/pytorch_weights.hpp.

namespace tapegraph::io {

/// An array of a file, and what the file calls it: "encoder.0.weight".
struct named_array {
    std::string name;
    host_array array;
};

struct pytorch_file {
    std::vector<named_array> tensors; ///< in the file's order
    std::map<std::string, std::string>
        settings; ///< numbers, booleans and texts beside them, as text: "epoch", "args.lr"
};

namespace detail {

inline bool pytorch_type(std::string_view storage, dtype& type) {
    constexpr std::pair<std::string_view, dtype> known[] = {
        {"torch.FloatStorage", dtype::f32},     {"torch.DoubleStorage", dtype::f64}, {"torch.HalfStorage", dtype::f16},
        {"torch.BFloat16Storage", dtype::bf16}, {"torch.CharStorage", dtype::i8},    {"torch.ShortStorage", dtype::i16},
        {"torch.IntStorage", dtype::i32},       {"torch.LongStorage", dtype::i64},   {"torch.ByteStorage", dtype::u8},
        {"torch.BoolStorage", dtype::boolean}};
    for (const auto& [name, value] : known)
        if (name == storage) {
            type = value;
            return true;
        }
    return false;
}

inline bool pytorch_name(std::string_view name) {
    dtype ignored{};
    constexpr std::string_view known[] = {"collections.OrderedDict",
                                          "collections.defaultdict",
                                          "builtins.dict",
                                          "torch._utils._rebuild_tensor_v2",
                                          "torch._utils._rebuild_parameter",
                                          "torch._utils._rebuild_parameter_with_state",
                                          "torch.Size",
                                          "torch.device"};
    constexpr std::string_view types[] = {"float16", "float32", "float64", "bfloat16", "int8",   "int16", "int32",
                                          "int64",   "uint8",   "half",    "float",    "double", "bool"};
    if (std::find(std::begin(known), std::end(known), name) != std::end(known) || pytorch_type(name, ignored))
        return true;
    return name.starts_with("torch.") &&
           std::find(std::begin(types), std::end(types), name.substr(6)) != std::end(types);
}

/// How one tensor looks at a storage.
struct pytorch_view {
    std::string name, key;
    dtype type = dtype::f32;
    std::vector<std::int64_t> shape{}, strides{};
    std::int64_t offset = 0, stored = 0; ///< in elements
};

/// Walks the values of a pickle and finds tensors.
template <class = void>
class pytorch_walk {
public:
    pytorch_walk(const pickle_value& all, const std::string& what) : all_(all), what_(what) {}

    void visit(std::uint32_t which, const std::string& name, int depth = 0) {
        constexpr int deepest = 64;
        constexpr std::size_t longest = 1000; // of names and settings, which others may share
        if (name.size() > longest) throw data_error(what_ + ": a name of more than 1000 bytes, " + shown_name(name));
        // Shared values are visited once for each name that they have; some sharing is usual, a doubling at every level is an attack.
        if (depth > deepest || ++visits_ > 4 * all_.nodes.size() + 16)
            throw data_error(what_ + ": '" + name.substr(0, 80) + "' is nested too deeply, or in itself");
        const pickle_node& node = all_[which];
        const auto below = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
        switch (node.kind) {
        case pickle_kind::dict:
            for (std::size_t i = 0; i + 1 < node.items.size(); i += 2)
                visit(node.items[i + 1], below(text_of(node.items[i])), depth + 1);
            return;
        case pickle_kind::list:
        case pickle_kind::tuple:
            for (std::size_t i = 0; i < node.items.size(); ++i)
                visit(node.items[i], below(std::to_string(i)), depth + 1);
            return;
        case pickle_kind::call: visit_call(node, name, depth); return;
        case pickle_kind::boolean:
        case pickle_kind::integer:
        case pickle_kind::real:
        case pickle_kind::text:
            if (node.text.size() <= longest) settings.emplace(name, text_of(which));
            return;
        default: return;
        }
    }

    std::vector<pytorch_view> views;
    std::map<std::string, std::string> settings;

private:
    [[noreturn]] void fail(const std::string& name, const std::string& why) const {
        throw data_error(what_ + ", tensor " + shown_name(name) + ": " + why);
    }
    std::string text_of(std::uint32_t which) const {
        const pickle_node& node = all_[which];
        if (node.kind == pickle_kind::text) return node.text;
        if (node.kind == pickle_kind::boolean) return node.integer != 0 ? "True" : "False";
        if (node.kind == pickle_kind::integer) return std::to_string(node.integer);
        if (node.kind == pickle_kind::real) return std::to_string(node.real);
        return "?";
    }
    void visit_call(const pickle_node& node, const std::string& name, int depth) {
        const std::string& callee = all_[node.items[0]].text;
        const pickle_node& arguments = all_[node.items[1]];
        if (callee == "torch._utils._rebuild_tensor_v2") return tensor(arguments, name);
        if (callee.starts_with("torch._utils._rebuild_parameter") && !arguments.items.empty())
            return visit(arguments.items[0], name, depth + 1);
    }
    std::int64_t integer(std::uint32_t which, const std::string& name) const {
        if (all_[which].kind != pickle_kind::integer || all_[which].integer < 0) fail(name, "a size that is none");
        return all_[which].integer;
    }
    std::vector<std::int64_t> integers(std::uint32_t which, const std::string& name) const {
        const pickle_node* node = &all_[which];
        if (node->kind == pickle_kind::call && !all_[node->items[1]].items.empty()) // torch.Size((2, 3))
            node = &all_[all_[node->items[1]].items[0]];
        if (node->kind != pickle_kind::tuple) fail(name, "a shape that is none");
        std::vector<std::int64_t> result;
        for (const auto item : node->items) result.push_back(integer(item, name));
        return result;
    }
    void tensor(const pickle_node& arguments, const std::string& name) {
        if (arguments.items.size() < 4) fail(name, "without storage, offset, shape and strides");
        const pickle_node& id = all_[arguments.items[0]];
        const pickle_node* const parts = id.kind == pickle_kind::persistent ? &all_[id.items[0]] : nullptr;
        if (parts == nullptr || parts->kind != pickle_kind::tuple || parts->items.size() < 5 ||
            all_[parts->items[0]].text != "storage" || all_[parts->items[2]].kind != pickle_kind::text)
            fail(name, "its storage is not in the archive");
        pytorch_view view{.name = name, .key = all_[parts->items[2]].text};
        if (!pytorch_type(all_[parts->items[1]].text, view.type))
            fail(name, "elements of " + shown_name(all_[parts->items[1]].text) + " are not read");
        view.stored = integer(parts->items[4], name);
        view.offset = integer(arguments.items[1], name);
        view.shape = integers(arguments.items[2], name);
        view.strides = integers(arguments.items[3], name);
        if (view.shape.size() != view.strides.size()) fail(name, "a shape and strides of different lengths");
        views.push_back(std::move(view));
    }

    const pickle_value& all_;
    const std::string& what_;
    std::size_t visits_ = 0;
};

/// Whether a view lies inside its storage and shows no more than it holds.
template <class = void>
void check_pytorch_view(const pytorch_view& view, std::int64_t& size, const std::string& what) {
    const std::string which = what + ", tensor " + shown_name(view.name);
    if (!checked_size(view.shape, size_of(view.type), size))
        throw data_error(which + ": impossible shape " + shape_text(view.shape));
    std::int64_t last = view.offset;
    for (std::size_t axis = 0; axis < view.shape.size() && size > 0; ++axis) {
        std::int64_t reach = 0;
        if (__builtin_mul_overflow(view.shape[axis] - 1, view.strides[axis], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            last = INT64_MAX;
    }
    if (size > 0 && last >= view.stored)
        throw data_error(which + ": shape " + shape_text(view.shape) + " and strides " + shape_text(view.strides) +
                         " from " + std::to_string(view.offset) + " on reach beyond the " +
                         std::to_string(view.stored) + " elements of storage '" + view.key + "'");
    if (size > view.stored)
        throw data_error(which + ": shows the " + std::to_string(view.stored) + " elements of its storage " +
                         std::to_string(size) + " times in all; save x.contiguous()");
}

[[noreturn]] inline void refuse_pytorch(const zip_reader& archive, const std::string& stem) {
    if (archive.find(stem + "constants.pkl") != nullptr)
        throw data_error(archive.name() +
                         ": a program of torch.jit.save, not tensors; save model.state_dict() by torch.save");
    throw data_error(archive.name() + ": a zip archive, but no file of torch.save: there is no data.pkl");
}

/// Files of other formats that bear the same name.
template <class = void>
void check_pytorch_kind(const files::path& path) {
    const std::string what = quoted(path);
    const input_file in(path);
    if (in.size() < 4) throw data_error(what + ": no file of torch.save");
    std::array<char, 16> begin{};
    const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(in.size(), begin.size()));
    in.read(begin.data(), known, 0);
    const std::string_view head(begin.data(), known);
    using namespace std::string_view_literals;
    if (head.starts_with("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv))
        throw data_error(what + ": the format that torch.save had before 1.6; in Python: torch.save(torch.load(path, "
                                "weights_only=True), path)");
    if (!head.starts_with("PK"))
        throw data_error(
            what + ": no file of torch.save" +
            (head.starts_with("\x80") ? ", a pickle of something else" : ", which begins as a zip archive"));
}

} // namespace detail

/// Reads the tensors of a file of torch.save (1.6 or later): a state_dict, a tensor, or dicts and lists of such in each other, whose keys
/// become names by points: "model.conv1.weight". Views are copied into rows, views of one storage each for itself. Throws data_error,
/// naming file and tensor, where the file is missing, damaged, of another format (with what to do in Python about it), or names
/// anything but tensors and plain data: no object can be made, so none can do harm. Complex, quantised and float8 tensors are refused.
template <class = void>
pytorch_file read_pytorch_file(const files::path& path) {
    detail::check_pytorch_kind(path);
    const zip_reader archive(path);
    std::string stem;
    const zip_member* pickle = nullptr;
    for (const zip_member& member : archive.members()) // "<stem>/data.pkl"
        if (pickle == nullptr && (member.name == "data.pkl" || member.name.ends_with("/data.pkl"))) {
            pickle = &member;
            stem = member.name.substr(0, member.name.size() - 8);
        }
    if (pickle == nullptr || archive.find(stem + "constants.pkl") != nullptr) detail::refuse_pytorch(archive, stem);
    const std::string what = archive.name();
    const auto bytes = archive.read(*pickle);
    const pickle_value value = read_pickle(bytes, detail::pytorch_name, what);
    detail::pytorch_walk<> walk(value, what);
    walk.visit(value.root, "");

    bool swap = false;
    if (const zip_member* const order = archive.find(stem + "byteorder"); order != nullptr) {
        const auto text = archive.read(*order, 64);
        swap = std::string_view(reinterpret_cast<const char*>(text.data()), text.size()) == "big";
    }
    pytorch_file file;
    file.settings = std::move(walk.settings);
    std::map<std::string_view, std::vector<std::size_t>> by_storage;
    std::uint64_t total = 0;
    const std::uint64_t most = 8 * detail::file_size_of(path) + 1024;
    for (std::size_t i = 0; i < walk.views.size(); ++i) {
        const detail::pytorch_view& view = walk.views[i];
        std::int64_t size = 0;
        detail::check_pytorch_view(view, size, what);
        total += static_cast<std::uint64_t>(size) * size_of(view.type);
        if (total > most)
            throw data_error(what +
                             ": its tensors show the same storages again and again, written out they are more than " +
                             std::to_string(most) + " bytes");
        file.tensors.push_back({view.name, {view.type, view.shape, {}}});
        by_storage[view.key].push_back(i);
    }
    for (const auto& [key, which] : by_storage) {
        const zip_member& member = archive.at(stem + "data/" + std::string(key));
        std::vector<std::byte> storage;
        for (const std::size_t i : which) {
            const detail::pytorch_view& view = walk.views[i];
            const std::size_t width = size_of(view.type);
            const std::string name = what + ", tensor " + detail::shown_name(view.name);
            if (static_cast<std::uint64_t>(view.stored) > member.size / width || view.type != walk.views[which[0]].type)
                throw data_error(name + ": storage '" + view.key + "' of " + std::to_string(view.stored) + " " +
                                 name_of(view.type) + " has " + std::to_string(member.size) +
                                 " bytes, or another type elsewhere");
            if (storage.empty()) {
                storage = archive.read(member);
                if (swap && width > 1)
                    for (std::size_t at = 0; at + width <= storage.size(); at += width)
                        std::reverse(storage.begin() + static_cast<std::ptrdiff_t>(at),
                                     storage.begin() + static_cast<std::ptrdiff_t>(at + width));
            }
            host_array& array = file.tensors[i].array;
            const bool whole = array.shape == view.shape && view.offset == 0 && which.size() == 1;
            std::int64_t size = 0;
            detail::check_pytorch_view(view, size, what);
            const std::size_t count = static_cast<std::size_t>(size) * width;
            if (whole && count == storage.size() && view.strides == detail::strides_of(std::span(view.shape)))
                array.bytes = std::move(storage);
            else if (array.bytes.resize(count); count > 0)
                detail::copy_strided(array.bytes.data(), storage.data() + static_cast<std::size_t>(view.offset) * width,
                                     view.shape, view.strides, width);
            if (view.type == dtype::boolean)
                for (const std::byte b : array.bytes)
                    if (b > std::byte{1})
                        throw data_error(name + ": a bool holds " + std::to_string(static_cast<int>(b)));
        }
    }
    return file;
}

/// The tensors alone, in the file's order.
template <class = void>
std::vector<named_array> read_pytorch(const files::path& path) {
    return read_pytorch_file(path).tensors;
}

} // namespace tapegraph::io
