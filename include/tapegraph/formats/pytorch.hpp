#pragma once

#include <tapegraph/core/element_types.hpp>
#include <tapegraph/core/half.hpp>
#include <tapegraph/formats/host_array.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/pickle.hpp>
#include <tapegraph/formats/pytorch_legacy.hpp>
#include <tapegraph/formats/pytorch_walk.hpp>
#include <tapegraph/formats/strided_copy.hpp>
#include <tapegraph/formats/zip.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Reads tensors of PyTorch's files, as torch.save writes a state_dict or a checkpoint with some: a
/// zip archive of a pickle, which describes tensors as views of storages, and the storages. It
/// needs no Python, and executes nothing. For loading into models see io/pytorch_weights.hpp.

namespace tapegraph::io {

/// The tensors of a file that torch.save wrote.
struct pytorch_file {
    std::vector<named_array> tensors; ///< in the file's order
    std::map<std::string, std::string>
        settings; ///< numbers, booleans, texts and None in addition, as text: "epoch", "args.lr"
    /// Other content by name, and why it is not read: sets, bytes, objects of classes, tensors of
    /// unknown types.
    std::vector<unread_value> unread;
};

namespace detail {

[[noreturn]] inline void refuse_pytorch(const zip_reader& archive, const std::string& stem) {
    if (archive.find(stem + "constants.pkl") != nullptr)
        throw data_error(archive.name() +
                         ": a program of torch.jit.save, not tensors; save model.state_dict() by torch.save");
    throw data_error(archive.name() + ": a zip archive, but not a file of torch.save: data.pkl is missing");
}

/// Whether a file is from before PyTorch 1.6. Throws data_error for files of other formats with the
/// same extension.
inline bool is_pytorch_legacy(const files::path& path) {
    const std::string what = quoted(path);
    const input_file in(path);
    if (in.size() < 4) throw data_error(what + ": not a file of torch.save");
    std::array<char, 16> begin{};
    const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(in.size(), begin.size()));
    in.read(begin.data(), known, 0);
    const std::string_view head(begin.data(), known);
    if (head.starts_with(pytorch_legacy_magic)) return true;
    if (!head.starts_with("PK"))
        throw data_error(
            what + ": not a file of torch.save" +
            (head.starts_with("\x80") ? ", a pickle of something else" : ", which begins as a zip archive"));
    return false;
}

/// Changes the sign of all elements; returns false for types without one.
inline bool negate_elements(host_array& array) {
    if (array.type == dtype::boolean) return false;
    const std::size_t width = size_of(array.type);
    visit_type(array.type, [&]<class T>(std::type_identity<T>) {
        for (std::size_t at = 0; at < array.bytes.size(); at += width) {
            std::byte* const from = array.bytes.data() + at;
            if constexpr (is_floating_type<T>) { // little endian: the sign is the last byte's highest bit
                from[std::endian::native == std::endian::little ? width - 1 : 0] ^= std::byte{0x80};
            } else if constexpr (!std::is_same_v<T, bool>) {
                std::make_unsigned_t<T> item;
                std::memcpy(&item, from, width);
                item = static_cast<std::make_unsigned_t<T>>(0 - item);
                std::memcpy(from, &item, width);
            }
        }
    });
    return true;
}

/// Copies the views of storages. `bytes_of(key)` returns all bytes of a storage; `most` bounds the
/// bytes of all tensors.
template <class Storage>
void read_pytorch_views(pytorch_file& file, const std::vector<pytorch_view>& views, const std::string& what,
                        std::uint64_t most, bool swap, const Storage& bytes_of) {
    std::map<std::string_view, std::vector<std::pair<std::size_t, std::size_t>>> by_storage; // views, tensors
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < views.size(); ++i) {
        const pytorch_view& view = views[i];
        std::int64_t size = 0;
        check_pytorch_view(view, size, what);
        const std::uint64_t needed = static_cast<std::uint64_t>(size) * size_of(view.type);
        if (needed > most - total) {
            file.unread.push_back({view.name,
                                   "shows the " + std::to_string(view.stored) + " elements of its storage " +
                                       std::to_string(size) +
                                       " times in all, more than the file gives room for; save x.contiguous()",
                                   true});
            continue;
        }
        total += needed;
        by_storage[view.key].emplace_back(i, file.tensors.size());
        file.tensors.push_back({view.name, {view.type, view.shape, {}}});
    }
    for (const auto& [key, which] : by_storage) {
        std::vector<std::byte> storage = bytes_of(std::string(key));
        const std::size_t stored = storage.size();
        for (const auto& [i, tensor] : which) {
            const pytorch_view& view = views[i];
            const std::size_t width = size_of(view.type);
            const std::string name = what + ", tensor " + shown_name(view.name);
            if (static_cast<std::uint64_t>(view.stored) > stored / width)
                throw data_error(name + ": storage '" + view.key + "' of " + std::to_string(view.stored) + " " +
                                 name_of(view.type) + " has " + std::to_string(stored) + " bytes");
            host_array& array = file.tensors[tensor].array;
            std::int64_t size = 0;
            check_pytorch_view(view, size, what);
            const std::size_t count = static_cast<std::size_t>(size) * width;
            if (view.offset == 0 && which.size() == 1 && count == stored &&
                view.strides == strides_of(std::span(view.shape)))
                array.bytes = std::move(storage); // NOLINT(bugprone-use-after-move): no other tensor follows
            else if (array.bytes.resize(count); count > 0)
                copy_strided(array.bytes.data(), storage.data() + static_cast<std::size_t>(view.offset) * width,
                             view.shape, view.strides, width);
            if (swap && width > 1)
                for (auto at = array.bytes.begin(); at != array.bytes.end(); at += static_cast<std::ptrdiff_t>(width))
                    std::reverse(at, at + static_cast<std::ptrdiff_t>(width));
            if (view.negated && !negate_elements(array))
                throw data_error(name + ": a negative view of " + name_of(view.type));
            if (view.type == dtype::boolean)
                for (const std::byte b : array.bytes)
                    if (b > std::byte{1})
                        throw data_error(name + ": a bool holds " + std::to_string(static_cast<int>(b)));
        }
    }
}

/// Builds the result of a walk.
inline pytorch_file file_of_walk(pytorch_walk& walk, std::uint32_t root) {
    walk.visit(root, "");
    return {.tensors = {}, .settings = std::move(walk.settings), .unread = std::move(walk.unread)};
}

inline pytorch_file read_pytorch_legacy_file(const files::path& path) {
    const std::string what = quoted(path);
    const std::vector<std::uint8_t> bytes = read_file(path);
    const pytorch_legacy legacy = read_pytorch_legacy(std::as_bytes(std::span(bytes)), what);
    pytorch_walk walk(legacy.values, what);
    pytorch_file file = file_of_walk(walk, legacy.values.root);
    std::vector<pytorch_view> views;
    for (pytorch_view& view : walk.views)
        if (legacy.storages.count(view.key) > 0)
            views.push_back(std::move(view));
        else
            file.unread.push_back({view.name, "its storage is not in the file", true});
    read_pytorch_views(file, views, what, 8 * std::uint64_t{bytes.size()} + 1024, legacy.big_endian,
                       [&](const std::string& key) {
                           const auto storage = legacy.storages.at(key);
                           return std::vector<std::byte>(storage.begin(), storage.end());
                       });
    return file;
}

} // namespace detail

/// Reads the tensors of a file of torch.save: a state_dict, a tensor, a module, or nested dicts and
/// lists of these, whose keys become names with points: "model.conv1.weight". Views are copied to
/// row-major arrays, each separately. Values that are neither tensors nor plain, tensors of other
/// types (complex, quantised, float8), and further values of the same name do not affect the rest:
/// they are listed in `unread`.
/// No object is created, so none can do harm. Throws data_error, naming file and tensor, if the
/// file is missing, damaged or of another format (with advice on how to convert it in Python).
inline pytorch_file read_pytorch_file(const files::path& path) {
    if (detail::is_pytorch_legacy(path)) return detail::read_pytorch_legacy_file(path);
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
    const pickle_value value = read_pickle(
        bytes, [](std::string_view) { return true; }, what);
    detail::pytorch_walk walk(value, what);
    pytorch_file file = detail::file_of_walk(walk, value.root);
    bool swap = false;
    if (const zip_member* const order = archive.find(stem + "byteorder"); order != nullptr) {
        const auto text = archive.read(*order, 64);
        swap = std::string_view(reinterpret_cast<const char*>(text.data()), text.size()) == "big";
    }
    detail::read_pytorch_views(file, walk.views, what, 8 * detail::file_size_of(path) + 1024, swap,
                               [&](const std::string& key) { return archive.read(archive.at(stem + "data/" + key)); });
    return file;
}

/// Only the tensors, in the file's order.
inline std::vector<named_array> read_pytorch(const files::path& path) { return read_pytorch_file(path).tensors; }

} // namespace tapegraph::io
