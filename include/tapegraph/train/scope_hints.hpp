#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/train/output_hints.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>

/// Hints that `compile` prints about scopes with similar names. A misspelt name where weights were to be
/// shared gives two sets of weights, and the model trains all the same. A hint is one line on stderr,
/// printed once per process.

namespace tapegraph {
namespace detail {

/// Whether one name looks like a misspelling of the other: inside a word, a letter is different, missing
/// or doubled, or two letters are swapped. Numbers, words of one letter ("q_proj", "k_proj") and endings
/// ("encode", "encoder") are taken to be intended.
bool look_misspelt(std::string_view a, std::string_view b);

/// The same of paths, which differ in one name.
bool paths_look_misspelt(std::string_view a, std::string_view b);

/// Whether two layers are of one type and have variables of the same shapes.
bool same_weights(const ir::model_view& v, const ir::layer_entry& a, const ir::layer_entry& b);

void hint_of_scopes(const ir::model_view& v);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION bool look_misspelt(std::string_view a, std::string_view b) {
    if (a.size() > b.size()) std::swap(a, b);
    if (a.size() < 5 || b.size() > a.size() + 1 || a == b) return false;
    const auto letter = [](std::string_view s, std::size_t i) {
        return i < s.size() && std::isalpha(static_cast<unsigned char>(s[i])) != 0;
    };
    const auto at = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
    if (!letter(b, at)) return false;
    if (a.size() < b.size()) {
        const bool doubled = at > 0 && b[at] == b[at - 1];
        return a.substr(at) == b.substr(at + 1) && (doubled || (at > 0 && letter(b, at - 1) && letter(b, at + 1)));
    }
    if (!letter(a, at)) return false;
    if (a.substr(at + 1) == b.substr(at + 1)) return at > 0 && letter(a, at - 1) && letter(a, at + 1);
    return letter(a, at + 1) && a[at] == b[at + 1] && a[at + 1] == b[at] && a.substr(at + 2) == b.substr(at + 2);
}

TG_DEFINITION bool paths_look_misspelt(std::string_view a, std::string_view b) {
    const auto first =
        std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin())
            .first;
    const auto different = static_cast<std::size_t>(first - a.begin());
    const std::size_t begin = different == 0 ? std::string_view::npos : a.rfind('/', different - 1);
    const std::size_t from = begin == std::string_view::npos ? 0 : begin + 1;
    const std::string_view x = a.substr(from), y = b.substr(from);
    const std::size_t ends[]{std::min(x.find('/'), x.size()), std::min(y.find('/'), y.size())};
    return x.substr(ends[0]) == y.substr(ends[1]) && look_misspelt(x.substr(0, ends[0]), y.substr(0, ends[1]));
}

TG_DEFINITION bool same_weights(const ir::model_view& v, const ir::layer_entry& a, const ir::layer_entry& b) {
    const int count = a.last_variable - a.first_variable;
    if (a.type != b.type || count == 0 || b.last_variable - b.first_variable != count) return false;
    for (int i = 0; i < count; ++i) {
        const ir::entry& x = v.nodes[v.variables[a.first_variable + i].node];
        const ir::entry& y = v.nodes[v.variables[b.first_variable + i].node];
        if (x.rank != y.rank) return false;
        for (int k = 0; k < x.rank; ++k)
            if (v.pool[x.dims + k] != v.pool[y.dims + k]) return false;
    }
    return true;
}

TG_DEFINITION void hint_of_scopes(const ir::model_view& v) {
    if (!hints_setting().load(std::memory_order_relaxed)) return;
    for (int i = 0; i < v.layers.size(); ++i)
        for (int k = i + 1; k < v.layers.size(); ++k) {
            if (!same_weights(v, v.layers[i], v.layers[k])) continue;
            const std::string a = path_of(v.scopes, v.layers[i].scope), b = path_of(v.scopes, v.layers[k].scope);
            if (paths_look_misspelt(a, b))
                print_hint_once("layers '" + a + "' and '" + b +
                                "' have weights of the same shapes, and each its own: to share "
                                "them, make the scope once and give it to both");
        }
}

#endif

} // namespace detail

} // namespace tapegraph
