#pragma once

#include <fuzz/operations.hpp>

#include <initializer_list>

/// What rows of the table are made with.

namespace tapegraph::fuzz {

/// Calls f with a braced list of a length known only at run time: one case per length.
template <class T, class F>
auto with_list(const std::vector<T>& v, const F& f) {
    using list = std::initializer_list<T>;
    switch (v.size()) {
    case 0: return f(list{});
    case 1: return f(list{v[0]});
    case 2: return f(list{v[0], v[1]});
    case 3: return f(list{v[0], v[1], v[2]});
    case 4: return f(list{v[0], v[1], v[2], v[3]});
    case 5: return f(list{v[0], v[1], v[2], v[3], v[4]});
    default: throw argument_error("random programs have ranks up to 5");
    }
}

/// Attributes that are extents.
inline shape shape_of_words(const std::vector<std::int64_t>& words) { return testing::shape_from(words); }

inline std::int64_t rank_of(const extents& x) { return static_cast<std::int64_t>(x.size()); }
inline std::string text_of(std::int64_t v) { return std::to_string(v); }

/// An operation of one operand. `source` has the operand's name put for $.
template <class T, class F>
operation one_operand(std::string name, F f, bool (*draw)(choices&, const extents&, attributes&),
                      std::string (*source)(const attributes&),
                      array (*reference)(const array&, const attributes&) = nullptr) {
    operation row = make_operation<T>(std::move(name), f);
    row.draw = [draw](choices& random, const std::vector<extents>& x, attributes& with) {
        return draw(random, x[0], with);
    };
    row.source = [source](const std::vector<std::string>& x, const attributes& with) {
        std::string text = source(with);
        text.replace(text.find('$'), 1, x[0]);
        return text;
    };
    if (reference != nullptr)
        row.reference = [reference](const std::vector<array>& x, const attributes& with) {
            return reference(x[0], with);
        };
    return row;
}

/// whole[0]: an axis of the operand.
inline bool draw_axis(choices& random, const extents& x, attributes& with) {
    if (x.empty()) return false;
    with.whole = {random.whole(0, rank_of(x) - 1)};
    return true;
}

} // namespace tapegraph::fuzz
