#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/formats/host_array.hpp>
#include <tapegraph/formats/pickle.hpp>
#include <tapegraph/formats/zip_directory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Searches a pickle of torch.save: locates its tensors, reads other plain values, and lists
/// everything that cannot be read.

namespace tapegraph::io::detail {

/// "torch.FloatStorage" or "torch.float32".
inline bool pytorch_type(std::string_view name, dtype& type) {
    struct known_type {
        std::string_view storage, number;
        dtype type;
    };
    constexpr known_type known[13] = {
        {"torch.FloatStorage", "torch.float32", dtype::f32}, {"torch.DoubleStorage", "torch.float64", dtype::f64},
        {"torch.HalfStorage", "torch.float16", dtype::f16},  {"torch.BFloat16Storage", "torch.bfloat16", dtype::bf16},
        {"torch.CharStorage", "torch.int8", dtype::i8},      {"torch.ShortStorage", "torch.int16", dtype::i16},
        {"torch.IntStorage", "torch.int32", dtype::i32},     {"torch.LongStorage", "torch.int64", dtype::i64},
        {"torch.ByteStorage", "torch.uint8", dtype::u8},     {"torch.UInt16Storage", "torch.uint16", dtype::u16},
        {"torch.UInt32Storage", "torch.uint32", dtype::u32}, {"torch.UInt64Storage", "torch.uint64", dtype::u64},
        {"torch.BoolStorage", "torch.bool", dtype::boolean}};
    for (const known_type& k : known)
        if (name == k.storage || name == k.number) {
            type = k.type;
            return true;
        }
    return false;
}

/// A tensor's view of a storage.
struct pytorch_view {
    std::string name, key;
    dtype type = dtype::f32;
    std::vector<std::int64_t> shape{}, strides{};
    std::int64_t offset = 0, stored = 0; ///< in elements
    bool negated = false;                ///< the elements are those of the storage with the opposite sign
};

/// Walks the values of a pickle and finds tensors. Nothing is called: objects of any class are
/// searched like dicts, and modules give what their state_dict would.
class pytorch_walk {
public:
    pytorch_walk(const pickle_value& all, const std::string& what)
        : all_(all), what_(what), inside_(all.nodes.size()), seen_(all.nodes.size()) {
        // Shared values are visited once for each of their names; some sharing is usual, but a
        // doubling at every level is an attack.
        for (const pickle_node& node : all.nodes) most_visits_ += 4 + 4 * node.items.size();
    }

    void visit(std::uint32_t which, const std::string& name, int depth = 0) {
        constexpr int deepest = 64;
        if (full_) return;
        if (name.size() > longest) return leave(name.substr(0, 80) + "...", "a name of more than 1000 bytes");
        if (++visits_ > most_visits_) {
            leave(name, "this and what follows: values that hold each other again and again");
            full_ = true;
            return;
        }
        if (inside_[which]) return leave(name, "a value that holds itself");
        if (depth > deepest) return leave(name, "nested in more than 64 others");
        inside_[which] = true;
        visit_node(all_[which], which, name, depth);
        inside_[which] = false;
    }

    std::vector<pytorch_view> views;
    std::map<std::string, std::string> settings;
    std::vector<unread_value> unread;

private:
    static constexpr std::size_t longest = 1000; // for names and settings, which other values may share

    void visit_node(const pickle_node& node, std::uint32_t which, const std::string& name, int depth) {
        switch (node.kind) {
        case pickle_kind::dict:
            for (std::size_t i = 0; i + 1 < node.items.size(); i += 2)
                visit(node.items[i + 1], below(name, text_of(node.items[i])), depth + 1);
            return;
        case pickle_kind::list:
        case pickle_kind::tuple: return visit_items(node, name, depth);
        case pickle_kind::call: return visit_call(node, which, name, depth);
        case pickle_kind::global: {
            dtype type{};
            if (!pytorch_type(node.text, type)) return leave(name, "the class or function " + shown_name(node.text));
            break;
        }
        case pickle_kind::large_integer:
            if (node.text.empty()) return leave(name, "an integer of " + std::to_string(node.integer) + " bits");
            break;
        case pickle_kind::text:
            if (node.text.size() > longest)
                return leave(name, "a text of " + std::to_string(node.text.size()) + " bytes");
            break;
        case pickle_kind::bytes: return leave(name, std::to_string(node.text.size()) + " bytes");
        case pickle_kind::set: return leave(name, "a set of " + std::to_string(node.items.size()));
        case pickle_kind::persistent: return leave(name, "a storage without a tensor");
        case pickle_kind::none:
        case pickle_kind::boolean:
        case pickle_kind::integer:
        case pickle_kind::real: break;
        }
        if (!settings.emplace(name, text_of(which)).second) leave(name, "another value has this name");
    }
    static std::string below(const std::string& name, const std::string& key) {
        return name.empty() ? key : name + "." + key;
    }
    void visit_items(const pickle_node& node, const std::string& name, int depth) {
        for (std::size_t i = 0; i < node.items.size(); ++i)
            visit(node.items[i], below(name, std::to_string(i)), depth + 1);
    }
    void leave(const std::string& name, std::string reason, bool tensor = false) {
        constexpr std::size_t most = 100000; // a limit for damaged or malicious files
        if (unread.size() < most)
            unread.push_back({name, std::move(reason), tensor});
        else if (unread.size() == most)
            unread.push_back({name, "this and what follows", tensor});
    }
    [[noreturn]] void fail(const std::string& name, const std::string& why) const {
        throw data_error(what_ + ", tensor " + shown_name(name) + ": " + why);
    }
    std::string text_of(std::uint32_t which) const {
        const pickle_node& node = all_[which];
        switch (node.kind) {
        case pickle_kind::text:
        case pickle_kind::global:
        case pickle_kind::large_integer: return node.text;
        case pickle_kind::none: return "None";
        case pickle_kind::boolean: return node.integer != 0 ? "True" : "False";
        case pickle_kind::integer: return std::to_string(node.integer);
        case pickle_kind::real: return number_text(node.real);
        default: return "?";
        }
    }
    /// The items of a node if it is of that kind, else none.
    const std::vector<std::uint32_t>& items_of(std::uint32_t which, pickle_kind kind) const {
        static const std::vector<std::uint32_t> none;
        return all_[which].kind == kind ? all_[which].items : none;
    }
    const std::uint32_t* find(std::uint32_t dict, std::string_view key) const {
        const auto& items = items_of(dict, pickle_kind::dict);
        for (std::size_t i = 0; i + 1 < items.size(); i += 2)
            if (all_[items[i]].kind == pickle_kind::text && all_[items[i]].text == key) return &items[i + 1];
        return nullptr;
    }

    void visit_call(const pickle_node& node, std::uint32_t which, const std::string& name, int depth) {
        const pickle_node& called = all_[node.items[0]];
        const std::string_view callee = called.kind == pickle_kind::global ? std::string_view(called.text) : "";
        const pickle_node& arguments = all_[node.items[1]];
        if (callee == "torch._utils._rebuild_tensor" || callee.starts_with("torch._utils._rebuild_tensor_v"))
            return tensor(arguments, name);
        if (callee.starts_with("torch._utils._rebuild_parameter") && !arguments.items.empty())
            return visit(arguments.items[0], name, depth + 1);
        // A tensor with attributes, such as nn.Buffer, or of a class derived from Tensor:
        // (function, class, arguments, attributes).
        if (callee == "torch._tensor._rebuild_from_type_v2" && arguments.items.size() > 2 &&
            all_[arguments.items[0]].kind == pickle_kind::global &&
            all_[arguments.items[2]].kind == pickle_kind::tuple) {
            if (all_[arguments.items[0]].text.starts_with("torch._utils._rebuild_tensor_v"))
                return tensor(all_[arguments.items[2]], name);
            return leave(name, "a tensor of " + shown_name(all_[arguments.items[1]].text), true);
        }
        if (callee.starts_with("torch._utils._rebuild_")) return leave(name, "a tensor of " + shown_name(callee), true);
        if (callee == "torch.Size" && !arguments.items.empty()) return visit(arguments.items[0], name, depth + 1);
        if (callee == "torch.device") return visit_items(arguments, name, depth);
        if (const auto* const pairs = pairs_of(callee, arguments)) { // its attributes, such as _metadata, are no values
            for (const std::uint32_t pair : *pairs) {
                const pickle_node& both = all_[pair];
                if ((both.kind == pickle_kind::list || both.kind == pickle_kind::tuple) && both.items.size() == 2)
                    visit(both.items[1], below(name, text_of(both.items[0])), depth + 1);
            }
            return;
        }
        if (node.items.size() == 2 &&
            (callee == "collections.OrderedDict" || callee == "collections.defaultdict" || callee == "builtins.dict"))
            return; // it is empty
        // Objects of classes. One that several values contain is read where it occurs first.
        if (seen_[which]) return leave(name, "an object that appears elsewhere, too");
        seen_[which] = true;
        if (node.items.size() > 2) {
            const std::uint32_t state = node.items[2];
            const auto kind = all_[state].kind;
            if (find(state, "_parameters") != nullptr && find(state, "_modules") != nullptr)
                return visit_module(state, name, depth);
            if (kind == pickle_kind::dict || kind == pickle_kind::tuple || kind == pickle_kind::list)
                if (!callee.starts_with("numpy.")) return visit(state, name, depth + 1);
        }
        leave(name, callee.empty() ? "an object" : "an object of " + shown_name(callee));
        for (std::size_t i = 0; i < arguments.items.size() && !callee.starts_with("numpy."); ++i) {
            const auto kind = all_[arguments.items[i]].kind;
            if (kind == pickle_kind::dict || kind == pickle_kind::list || kind == pickle_kind::tuple ||
                kind == pickle_kind::call)
                visit(arguments.items[i], below(name, std::to_string(i)), depth + 1);
        }
    }
    /// The keys and values of a dictionary that is made of a list of them, as Python 2 writes an OrderedDict; else null.
    const std::vector<std::uint32_t>* pairs_of(std::string_view callee, const pickle_node& arguments) const {
        if (callee != "collections.OrderedDict" && callee != "builtins.dict" && callee != "__builtin__.dict")
            return nullptr;
        if (arguments.kind != pickle_kind::tuple || arguments.items.size() != 1) return nullptr;
        const pickle_node& list = all_[arguments.items[0]];
        return list.kind == pickle_kind::list ? &list.items : nullptr;
    }
    /// An nn.Module stored as an object: reads what state_dict() would return.
    void visit_module(std::uint32_t state, const std::string& name, int depth) {
        std::vector<std::string_view> passing;
        if (const auto* const names = find(state, "_non_persistent_buffers_set"); names != nullptr)
            for (const std::uint32_t item : set_items(*names)) passing.push_back(all_[item].text);
        for (const std::string_view part : {"_parameters", "_buffers", "_modules"}) {
            const auto* const dict = find(state, part);
            if (dict == nullptr) continue;
            const auto& items = items_of(*dict, pickle_kind::dict);
            for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
                const std::string key = text_of(items[i]);
                if (all_[items[i + 1]].kind == pickle_kind::none ||
                    (part == "_buffers" && std::find(passing.begin(), passing.end(), key) != passing.end()))
                    continue;
                visit(items[i + 1], below(name, key), depth + 1);
            }
        }
    }
    /// The items of a set, which protocol 2 writes as a call of the class with a list.
    const std::vector<std::uint32_t>& set_items(std::uint32_t which) const {
        if (all_[which].kind == pickle_kind::call) {
            const auto& arguments = all_[all_[which].items[1]].items;
            if (!arguments.empty()) return items_of(arguments[0], pickle_kind::list);
        }
        return items_of(which, pickle_kind::set);
    }

    std::int64_t integer(std::uint32_t which, const std::string& name) const {
        if (all_[which].kind != pickle_kind::integer || all_[which].integer < 0) fail(name, "an invalid size");
        return all_[which].integer;
    }
    std::vector<std::int64_t> integers(std::uint32_t which, const std::string& name) const {
        const pickle_node* node = &all_[which];
        if (node->kind == pickle_kind::call && !all_[node->items[1]].items.empty()) // torch.Size((2, 3))
            node = &all_[all_[node->items[1]].items[0]];
        if (node->kind != pickle_kind::tuple) fail(name, "an invalid shape");
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
            return leave(name, "its storage is not in the archive", true);
        pytorch_view view{.name = name, .key = all_[parts->items[2]].text};
        // Newer types have untyped storages, and name the type after strides, a boolean and hooks;
        // the storage is counted in bytes.
        const std::string& storage = all_[parts->items[1]].text;
        const bool untyped = storage == "torch.storage.UntypedStorage" && arguments.items.size() > 6;
        const std::string& type = untyped ? all_[arguments.items[6]].text : storage;
        if (!pytorch_type(type, view.type))
            return leave(name, "elements of " + shown_name(type) + " are not read", true);
        view.stored = integer(parts->items[4], name);
        if (untyped) view.stored /= static_cast<std::int64_t>(size_of(view.type));
        view.offset = integer(arguments.items[1], name);
        // Before PyTorch 0.4 a storage could be a part of another: (key, first element, number of elements).
        if (parts->items.size() > 5)
            if (const auto& of = items_of(parts->items[5], pickle_kind::tuple); of.size() > 1) {
                const std::int64_t first = integer(of[1], name);
                if (first > std::numeric_limits<std::int64_t>::max() - view.offset) fail(name, "an invalid size");
                view.offset += first;
            }
        view.shape = integers(arguments.items[2], name);
        view.strides = integers(arguments.items[3], name);
        const std::size_t bits = untyped ? 7 : 6; // {"neg": True} of the imaginary part of a conjugate, say
        if (arguments.items.size() > bits)
            if (const std::uint32_t* const neg = find(arguments.items[bits], "neg"))
                view.negated = all_[*neg].kind == pickle_kind::boolean && all_[*neg].integer != 0;
        if (view.shape.size() != view.strides.size()) fail(name, "a shape and strides of different lengths");
        if (!names_.insert(name).second) return leave(name, "another tensor has this name", true);
        views.push_back(std::move(view));
    }

    const pickle_value& all_;
    const std::string& what_;
    std::set<std::string> names_; // of views: {"a.b": x, "a": {"b": y}} has one twice
    std::vector<bool> inside_, seen_;
    std::size_t visits_ = 0, most_visits_ = 16;
    bool full_ = false;
};

/// Whether a view lies inside its storage.
inline void check_pytorch_view(const pytorch_view& view, std::int64_t& size, const std::string& what) {
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
}

} // namespace tapegraph::io::detail
