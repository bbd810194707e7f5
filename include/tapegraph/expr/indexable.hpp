#pragma once

#include <tapegraph/expr/apply.hpp>

#include <concepts>
#include <initializer_list>
#include <limits>

/// Array-like access to handles of every mode: x[i], x(tg::all, {0, 4}), range-for, x += y.

namespace tapegraph {

/// A slice of one axis, like Python's begin:end:step.
struct range {
    std::int64_t begin = 0;
    std::int64_t end = std::numeric_limits<std::int64_t>::max();
    std::int64_t step = 1;
};

/// An argument of x(...) that inserts an axis of extent 1.
struct newaxis_part {};
inline constexpr newaxis_part newaxis{};
/// An argument of x(...) that keeps all axes whole that no other argument names.
struct ellipsis_part {};
inline constexpr ellipsis_part ellipsis{};

/// The selection along one axis: an index, which drops the axis, a range or its bounds in braces,
/// tg::all, or one of the above. It records the line that wrote it.
struct part {
    /// What a part of an index selects.
    enum class kind : std::uint8_t { all, index, range, new_axis, other_axes, malformed };
    using location = std::source_location;

    constexpr part() = default;
    // NOLINTBEGIN: x[2], x(tg::all, {0, 4})
    template <std::integral I>
    constexpr part(I index, location line = location::current())
        : bounds{static_cast<std::int64_t>(index)}, what(kind::index), where(line) {}
    constexpr part(const range& r, location line = location::current()) : bounds(r), what(kind::range), where(line) {}
    constexpr part(std::initializer_list<std::int64_t> r, location line = location::current())
        : what(r.size() > 3 ? kind::malformed : kind::range), where(line) {
        if (r.size() > 0) bounds.begin = r.begin()[0];
        if (r.size() > 1) bounds.end = r.begin()[1];
        if (r.size() > 2) bounds.step = r.begin()[2];
    }
    constexpr part(newaxis_part, location line = location::current()) : what(kind::new_axis), where(line) {}
    constexpr part(ellipsis_part, location line = location::current()) : what(kind::other_axes), where(line) {}
    // NOLINTEND

    tapegraph::range bounds{};
    kind what = kind::all;
    location where{};
};

namespace detail {

/// Iterates over the slices of a handle along axis 0.
template <class Self>
class part_iterator {
public:
    using value_type = Self;
    using difference_type = std::ptrdiff_t;

    constexpr part_iterator() = default;
    constexpr part_iterator(const Self* whole, std::int64_t at) : whole_(whole), at_(at) {}
    constexpr Self operator*() const { return (*whole_)[at_]; }
    constexpr part_iterator& operator++() {
        ++at_;
        return *this;
    }
    constexpr part_iterator operator++(int) {
        const part_iterator before = *this;
        ++at_;
        return before;
    }
    constexpr bool operator==(const part_iterator& other) const { return at_ == other.at_; }

private:
    const Self* whole_ = nullptr;
    std::int64_t at_ = 0;
};

} // namespace detail

/// Throws for an index outside its axis, in modes that know both; in other modes the shape rule of
/// slice reports it.
template <handle H>
constexpr void refuse_index(const H&, std::int64_t, int) {}

/// Base of handles. `take_parts` (ops/movement/parts.hpp) does the work, and each mode provides
/// `refuse(const Self&, const char* what)` to report unsupported access.
template <class Self>
class indexable {
public:
    /// The slice along axis 0: x[i] drops the axis, negative indices count from the end; x[{0, 4}]
    /// keeps it.
    constexpr Self operator[](part p) const { return take_parts(self(), &p, 1, p.where); }
    /// NumPy's x[a, b, ...]: x(tg::all, {0, 4}), x(tg::ellipsis, -1), x(tg::newaxis, 2). Axes not
    /// named are kept whole. Indices alone, x(i, j), read a number, which only tensors can do;
    /// other handles refuse it.
    constexpr Self operator()(part a, part b = {}, part c = {}, part d = {}, part e = {}, part f = {}, part g = {},
                              part h = {}) const {
        const part parts[]{a, b, c, d, e, f, g, h};
        const Self result = take_parts(self(), parts, 8, a.where);
        for (const part& p : parts)
            if (p.what != part::kind::index && p.what != part::kind::all) return result;
        refuse(result, "x(i, j) reads a number from a tensor; of a node take x[i][j]");
        return result;
    }

    /// x[0], x[1], ... for range-for. A scalar refuses it, and so does graph mode where the extent
    /// is known only at run time.
    constexpr detail::part_iterator<Self> begin() const { return {&self(), 0}; }
    constexpr detail::part_iterator<Self> end() const {
        const tapegraph::shape s = shape_of(self());
        if (s.rank() > 0 && s[0].known()) return {&self(), s[0].value};
        refuse(self(), s.rank() == 0 ? "range-for: a scalar has no axis to walk along"
                                     : "range-for: the extent of axis 0 must be a number");
        return begin();
    }

    /// x = x + y: rebinds the name to a new value and writes to nothing. Copies of x, formulas that
    /// hold it and records of a tape keep the old value. Refused where the shape would grow.
    template <operand B>
    constexpr Self& operator+=(const B& b) {
        return become(self() + b);
    }
    template <operand B>
    constexpr Self& operator-=(const B& b) {
        return become(self() - b);
    }
    template <operand B>
    constexpr Self& operator*=(const B& b) {
        return become(self() * b);
    }
    template <operand B>
    constexpr Self& operator/=(const B& b) {
        return become(self() / b);
    }

private:
    friend Self;
    constexpr indexable() = default;
    constexpr const Self& self() const { return static_cast<const Self&>(*this); }

    template <class E>
    constexpr Self& become(const E& formula) {
        auto& self = static_cast<Self&>(*this);
        const tapegraph::shape before = shape_of(self);
        Self next = Self::sealed(formula);
        const tapegraph::shape after = shape_of(next);
        bool grown = after.rank() != before.rank();
        for (int i = 0; !grown && i < after.rank(); ++i) grown = before[i].value == 1 && after[i].value != 1;
        if (grown) refuse(next, "+=, -=, *=, /=: the right side has more elements than the left; write a = a + b");
        return self = std::move(next);
    }
};

} // namespace tapegraph
