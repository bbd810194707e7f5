#pragma once

#include <operations/operation.hpp>

#include <initializer_list>

/// What operations of the table are made with.

namespace tapegraph::testing {

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
    default: throw argument_error("random programs and rows of lists have ranks up to 5");
    }
}

/// Attributes that are extents.
inline shape shape_of_words(const std::vector<std::int64_t>& words) { return shape_from(words); }

inline std::int64_t rank_of(const extents& x) { return static_cast<std::int64_t>(x.size()); }
inline std::string text_of(std::int64_t v) { return std::to_string(v); }
inline std::string flag_text(std::int64_t v) { return v != 0 ? "true" : "false"; }
/// "{1, 2}"
inline std::string braces(const std::vector<std::int64_t>& values) {
    std::string text;
    for (const std::int64_t v : values) text += (text.empty() ? "" : ", ") + std::to_string(v);
    return "{" + text + "}";
}

/// whole[word]: an axis, counted from the end where it is negative.
inline int axis_of(const attributes& with, std::size_t word = 0) { return static_cast<int>(with.whole[word]); }
inline std::size_t axis_in(const extents& dims, const attributes& with, std::size_t word = 0) {
    return static_cast<std::size_t>(with.whole[word] + (with.whole[word] < 0 ? rank_of(dims) : 0));
}
/// Draws whole[0], an axis of the operand.
inline bool draw_axis(choices& random, const extents& x, attributes& with) {
    if (x.empty()) return false;
    with.whole = {random.whole(0, rank_of(x) - 1)};
    return true;
}

/// Several axes; none: all of them.
template <class Int>
axes axes_of_words(const std::vector<Int>& words) {
    axes result;
    for (const Int axis : words) {
        result.all = false;
        if (result.count < max_rank) result.index[result.count++] = static_cast<std::int8_t>(axis);
    }
    return result;
}
inline std::string axes_text_of(const std::vector<std::int64_t>& words) {
    return words.size() == 1 ? text_of(words[0]) : "tg::axes" + braces(words);
}
/// Appends some of the axes of an operand of this rank, at least one if it has any.
inline void draw_some_axes(choices& random, std::int64_t rank, attributes& with) {
    const std::int64_t chosen = rank == 0 ? 0 : random.whole(1, (std::int64_t{1} << rank) - 1);
    for (std::int64_t axis = 0; axis < rank; ++axis)
        if ((chosen >> axis & 1) != 0) with.whole.push_back(random.chance(0.3) ? axis - rank : axis);
}

/// Options whose keepdims is set if `keep`; otherwise the library's defaults, so that these are tested, too.
struct keepdims_if {
    bool keep;
    template <class Options>
    operator Options() const {
        Options options;
        if (keep) options.keepdims = true;
        return options;
    }
};

/// What moves elements: an element of the result is that of x at the position into which `from` turns its own, or `fill`
/// where it says false.
template <class From>
array picked(const array& x, const extents& dims, const From& from, real fill = 0) {
    array y(dims);
    for (std::int64_t i = 0; i < y.size(); ++i) {
        extents at = unravel(i, dims);
        y[i] = from(at) ? x.at(at) : fill;
    }
    return y;
}

/// An operation of one operand. `source` has the operand's name put for $.
template <class T, class F>
operation one_operand(std::string name, F f, bool (*draw)(choices&, const extents&, attributes&),
                      std::string (*source)(const attributes&),
                      array (*reference)(const array&, const attributes&) = nullptr, std::vector<row> rows = {}) {
    operation made = make_operation<T>(std::move(name), f, std::move(rows));
    if (draw != nullptr)
        made.draw = [draw](choices& random, const std::vector<extents>& x, attributes& with) {
            return draw(random, x[0], with);
        };
    if (source != nullptr)
        made.source = [source](const std::vector<std::string>& x, const attributes& with) {
            std::string text = source(with);
            text.replace(text.find('$'), 1, x[0]);
            return text;
        };
    if (reference != nullptr)
        made.reference = [reference](const std::vector<array>& x, const attributes& with) {
            return reference(x[0], with);
        };
    return made;
}

/// Operations whose elements are moved: values are equal.
inline void exact(operation& each) {
    for (row& r : each.rows)
        if (r.why.empty()) r.ulps = 0;
}

/// A row of a recurrent operation: x, W, R, bias, and states of order one. Errors of some dozen sums pass through time; W, R
/// and bias go up to `most`, for functions far from straight spoil finite differences.
inline row recurrent_row(attributes with, shape_list shapes, double most = 0.3) {
    row r{.with = std::move(with), .shapes = std::move(shapes), .domains = {{-1, 1}, {-most, most}, {-most, most}}};
    r.ulps = 64;
    r.floor = 1;
    r.forward_twice = false;
    r.why = "sums of products, carried from step to step";
    return r;
}

} // namespace tapegraph::testing
