#pragma once

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/graph/freeze.hpp>
#include <tapegraph/ir/text.hpp>

#include <utility>

/// Compile-time errors as types that carry the facts.

namespace tapegraph {

namespace ir {

namespace detail {

template <class Frozen>
constexpr text_builder error_fact(const Frozen& f, int fact) {
    const failure& e = f.error;
    text_builder b;
    if (fact == 0) {
        if (!e.operation.empty()) b.put(e.operation), b.put(": ");
        b.put(e.what);
    }
    if (fact == 1) return line_text(f.lines[e.line]);
    if (fact == 2 && e.operands > 0) return operand_text(e.first);
    if (fact == 3 && e.operands > 1) return operand_text(e.second);
    if (fact == 4) scope_path(b, f.scopes, e.scope);
    return b;
}

// The texts of an error, each cut into pieces where the compiler would abbreviate it: clang after
// 36 characters. A piece that is continued ends with a space.
template <int Texts>
struct cut_texts {
    struct piece {
        int text = 0, begin = 0, end = 0;
    };
    text_builder texts[Texts];
    piece pieces[32];
    int count = 0;

    constexpr void cut() {
#ifdef __clang__
        constexpr int longest = 35;
#else
        constexpr int longest = 4096;
#endif
        for (int t = 0; t < Texts; ++t) {
            const std::string_view all = texts[t].view();
            const int size = static_cast<int>(all.size());
            int begin = 0;
            while (size - begin > longest && count < 30) {
                int end = begin + longest;
                while (end > begin && all[static_cast<std::size_t>(end - 1)] != ' ') --end;
                if (end == begin) end = begin + longest;
                pieces[count++] = {t, begin, end};
                begin = end;
            }
            pieces[count++] = {t, begin, size};
        }
    }
};

template <class Facts, int Piece>
constexpr auto piece_string() {
    constexpr auto all = Facts::get();
    constexpr auto piece = all.pieces[Piece];
    fixed_string<static_cast<std::size_t>(piece.end - piece.begin) + 1> s;
    for (int i = piece.begin; i < piece.end; ++i) s.text[i - piece.begin] = all.texts[piece.text].text[i];
    // Written explicitly, because clang prints an array as text only when the last written element
    // is zero.
    s.text[piece.end - piece.begin] = 0;
    return s;
}

template <class Stage>
struct facts_of_stage {
    static constexpr auto get() {
        cut_texts<5> c;
        for (int i = 0; i < 5; ++i) c.texts[i] = error_fact(Stage::value, i);
        c.cut();
        return c;
    }
};
template <fixed_string Text>
struct facts_of_advice {
    static constexpr auto get() {
        cut_texts<1> c;
        c.texts[0].put(Text.view());
        c.cut();
        return c;
    }
};

template <class Facts, int... Piece>
ill_formed_model<piece_string<Facts, Piece>()...> ill_formed(std::integer_sequence<int, Piece...>);
template <class Facts, int... Piece>
cannot_be_compiled<piece_string<Facts, Piece>()...> advised(std::integer_sequence<int, Piece...>);

} // namespace detail

/// Whether a stage's trace is free of errors.
template <class Stage>
inline constexpr bool well_formed = Stage::value.error.what == nullptr;

/// The error type of a stage with errors.
template <class Stage>
using facts_of = decltype(detail::ill_formed<detail::facts_of_stage<Stage>>(
    std::make_integer_sequence<int, detail::facts_of_stage<Stage>::get().count>{}));

/// An error type with advice.
template <fixed_string Text>
using advice = decltype(detail::advised<detail::facts_of_advice<Text>>(
    std::make_integer_sequence<int, detail::facts_of_advice<Text>::get().count>{}));

/// Stops compilation and shows the error. If the caller omits all code that depends on the stage,
/// this is all that the compiler prints: `if constexpr (!well_formed<S>) refuse<S>(); else ...`
template <class Stage>
constexpr void refuse() {
    if constexpr (!Stage::value.message_printed) static_cast<void>(sizeof(facts_of<Stage>));
}

} // namespace ir
} // namespace tapegraph
