#pragma once

#include <tapegraph/ops/movement/layout.hpp>
#include <tapegraph/ops/refusal.hpp>

#include <string_view>

/// Axes labelled by letters, and the notation of einsum: "bij,bjk->bik".

namespace tapegraph::detail {

/// The labels of one tensor's axes, outermost first: letters. The label of an axis that "..."
/// stands for is its distance from the last of them, counted from 1.
struct axis_labels {
    char label[2 * max_rank]{};
    int count = 0;

    constexpr int find(char c) const {
        for (int i = 0; i < count; ++i)
            if (label[i] == c) return i;
        return -1;
    }
    constexpr bool has(char c) const { return find(c) >= 0; }
    /// An excess label is dropped, because `full` has reported it.
    constexpr void push_back(char c) {
        if (count < 2 * max_rank) label[count++] = c;
    }
    constexpr void append(const axis_labels& more) {
        for (int i = 0; i < more.count; ++i) push_back(more.label[i]);
    }
    constexpr void remove(int at) {
        --count;
        for (int i = at; i < count; ++i) label[i] = label[i + 1];
    }
    friend constexpr bool operator==(const axis_labels& a, const axis_labels& b) {
        if (a.count != b.count) return false;
        for (int i = 0; i < a.count; ++i)
            if (a.label[i] != b.label[i]) return false;
        return true;
    }
};

constexpr bool of_ellipsis(char label) { return label <= max_rank; }

enum class misfit : std::int64_t {
    notation,
    operands,
    axes,
    rank,
    tensordot_axes,
    tensordot_extents,
    // the following name a label
    extents,
    unknown_label,
    label_twice,
    diagonal,
};

struct label_text {
    char text[52][72]{};

    constexpr explicit label_text(const char* pattern) {
        for (int i = 0; i < 52; ++i)
            for (int k = 0; pattern[k] != 0; ++k)
                text[i][k] = pattern[k] == '?' ? static_cast<char>(i < 26 ? 'a' + i : 'A' + i - 26) : pattern[k];
    }
    constexpr const char* of(char label) const { return text[label >= 'a' ? label - 'a' : label - 'A' + 26]; }
};
inline constexpr label_text extents_differ("einsum: extents of label ? differ");
inline constexpr label_text label_unknown("einsum: label ? of the result is in no operand");
inline constexpr label_text label_repeated("einsum: the result names label ? twice");
inline constexpr label_text diagonal_unknown("einsum: label ? is repeated and its extent is not a number");

/// Error texts as literals; those that name a label exist once per letter.
struct misfit_texts {
    static constexpr std::int64_t reason(misfit what, char label = 'a') {
        return static_cast<std::int64_t>(what) * 128 + label;
    }
    static constexpr const char* text(std::int64_t reason) {
        const auto label = static_cast<char>(reason % 128);
        switch (static_cast<misfit>(reason / 128)) {
        case misfit::notation: return "einsum: subscripts are letters, ',', '->' and at most one '...' per operand";
        case misfit::operands: return "einsum: the subscripts name another number of operands";
        case misfit::axes: return "einsum: the subscripts name another number of axes than an operand has";
        case misfit::rank: return "einsum: rank above 8";
        case misfit::tensordot_axes: return "tensordot: axes are not pairs of different axes of the operands";
        case misfit::tensordot_extents: return "tensordot: extents of summed axes differ";
        case misfit::extents:
            return of_ellipsis(label) ? "einsum: extents of ... do not broadcast" : extents_differ.of(label);
        case misfit::unknown_label: return label_unknown.of(label);
        case misfit::label_twice: return label_repeated.of(label);
        case misfit::diagonal: return diagonal_unknown.of(label);
        }
        return "";
    }
};

/// The parsed text of einsum: the labels of each operand and of the result.
struct einsum_notation {
    axis_labels in[2], out;
    int ellipsis[3]{-1, -1, -1}; ///< the position of "..." among the labels of an operand or, last, of the result
    int operands = 1;
    bool explicit_result = false, well_formed = true;

    constexpr explicit einsum_notation(std::string_view text) {
        axis_labels* to = &in[0];
        int which = 0;
        for (std::size_t i = 0; i < text.size() && well_formed; ++i) {
            const char c = text[i];
            if (c == ' ') continue;
            if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
                well_formed = to->count < 2 * max_rank;
                to->push_back(c);
            } else if (c == '.') {
                well_formed = i + 2 < text.size() && text[i + 1] == '.' && text[i + 2] == '.' && ellipsis[which] < 0;
                ellipsis[which] = to->count;
                i += 2;
            } else if (c == ',') {
                well_formed = operands == 1 && !explicit_result;
                operands = 2;
                to = &in[which = 1];
            } else if (c == '-') {
                well_formed = i + 1 < text.size() && text[i + 1] == '>' && !explicit_result;
                explicit_result = true;
                to = &out;
                which = 2;
                ++i;
            } else {
                well_formed = false;
            }
        }
    }

    /// Replaces operand k's "..." by the axes it stands for; returns false when the operand has too
    /// few or too many.
    constexpr bool expand(int k, int rank) {
        const int more = rank - in[k].count;
        if (more < 0 || (more > 0 && ellipsis[k] < 0)) return false;
        if (ellipsis[k] >= 0) in[k] = with_ellipsis(in[k], ellipsis[k], more);
        return true;
    }
    /// Determines the result's axes, once the operands' are known: as named, or every label that
    /// occurs once, in alphabetical order.
    constexpr void complete() {
        int widest = 0;
        for (int k = 0; k < operands; ++k)
            for (int i = 0; i < in[k].count; ++i)
                if (of_ellipsis(in[k].label[i]) && in[k].label[i] > widest) widest = in[k].label[i];
        if (explicit_result) {
            if (ellipsis[2] >= 0) out = with_ellipsis(out, ellipsis[2], widest);
            return;
        }
        out = with_ellipsis(axis_labels{}, 0, widest);
        for (char c = 'A'; c <= 'z'; ++c) {
            int seen = 0;
            for (int k = 0; k < operands; ++k)
                for (int i = 0; i < in[k].count; ++i) seen += in[k].label[i] == c;
            if (seen == 1) out.push_back(c);
        }
    }

private:
    static constexpr axis_labels with_ellipsis(const axis_labels& named, int at, int axes) {
        axis_labels all;
        for (int i = 0; i < at; ++i) all.push_back(named.label[i]);
        for (int i = axes; i > 0; --i) all.push_back(static_cast<char>(i));
        for (int i = at; i < named.count; ++i) all.push_back(named.label[i]);
        return all;
    }
};

} // namespace tapegraph::detail
