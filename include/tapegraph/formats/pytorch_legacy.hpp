#pragma once

#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/pickle.hpp>
#include <tapegraph/formats/pytorch_walk.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Files of torch.save before PyTorch 1.6: five consecutive pickles (a magic number, a version, the
/// machine that wrote it, the values, the names of the storages in order), then each storage,
/// preceded by its number of elements (8 bytes).

namespace tapegraph::io::detail {

inline constexpr std::string_view pytorch_legacy_magic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14);

/// Bytes per element of a storage, also for types that are not read. 0: unknown.
inline std::size_t pytorch_width(std::string_view storage) {
    dtype type{};
    if (pytorch_type(storage, type)) return size_of(type);
    if (storage == "torch.storage.UntypedStorage") return 1; // counted in bytes
    if (storage == "torch.ComplexFloatStorage") return 8;
    if (storage == "torch.ComplexDoubleStorage") return 16;
    if (storage == "torch.QInt32Storage") return 4;
    return storage == "torch.QInt8Storage" || storage == "torch.QUInt8Storage" ? 1 : 0;
}

/// The values of such a file, and the positions of its storages.
struct pytorch_legacy {
    pickle_value values;
    std::map<std::string, std::span<const std::byte>> storages;
    bool big_endian = false;
};

/// Throws data_error naming the byte if the file is damaged.
inline pytorch_legacy read_pytorch_legacy(std::span<const std::byte> file, const std::string& what) {
    std::size_t at = 0;
    const auto pickle = [&] {
        std::size_t end = 0;
        pickle_value value = read_pickle(
            file.subspan(at), [](std::string_view) { return true; }, what + ", at byte " + std::to_string(at), &end);
        at += end;
        return value;
    };
    pickle(); // the magic number
    pickle(); // 1001
    pytorch_legacy result;
    const pickle_value machine = pickle();
    const auto& fields = machine[machine.root].items;
    for (std::size_t i = 0; i + 1 < fields.size(); i += 2)
        if (machine[fields[i]].text == "little_endian") result.big_endian = machine[fields[i + 1]].integer == 0;
    result.values = pickle();
    std::map<std::string, std::size_t> widths;
    for (const pickle_node& node : result.values.nodes) { // ("storage", type, key, location, elements, view of another)
        if (node.kind != pickle_kind::persistent) continue;
        const pickle_node& parts = result.values[node.items[0]];
        if (parts.kind == pickle_kind::tuple && parts.items.size() > 4)
            widths[result.values[parts.items[2]].text] = pytorch_width(result.values[parts.items[1]].text);
    }
    const pickle_value keys = pickle();
    for (const std::uint32_t item : keys[keys.root].items) {
        const std::string& key = keys[item].text;
        std::uint64_t elements = 0;
        if (file.size() - at < sizeof elements) throw data_error(what + ": ends before storage " + shown_name(key));
        std::memcpy(&elements, file.data() + at, sizeof elements);
        at += sizeof elements;
        const auto known = widths.find(key);
        // Storages after one of unknown width cannot be found; their tensors are listed as ones
        // without a storage.
        if (known == widths.end() || known->second == 0) break;
        if (elements > (file.size() - at) / known->second)
            throw data_error(what + ": ends within storage " + shown_name(key) + " of " + std::to_string(elements) +
                             " elements");
        const std::size_t bytes = static_cast<std::size_t>(elements) * known->second;
        result.storages[key] = file.subspan(at, bytes);
        at += bytes;
    }
    return result;
}

} // namespace tapegraph::io::detail
