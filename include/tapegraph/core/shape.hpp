#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/extent.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>

namespace tapegraph {

inline constexpr int max_rank = 8;

/// The extents of a tensor, outermost first. Rank 0 is a scalar. While a graph is traced extents may be symbolic.
class shape {
public:
    constexpr shape() = default;
    constexpr shape(std::initializer_list<std::int64_t> extents) {
        for (std::int64_t value : extents) push_back(value);
    }
    constexpr shape(int rank, const std::int64_t* extents, extent_table* table = nullptr)
        : table_(table), rank_(static_cast<std::int8_t>(rank)) {
        for (int i = 0; i < rank; ++i) extents_[i] = extents[i];
    }

    /// The number of axes; 0 for a scalar.
    constexpr int rank() const { return rank_; }
    /// The extent of an axis, counted from 0, unchecked.
    constexpr extent operator[](int axis) const { return {extents_[axis], table_}; }
    /// Replaces the extent of an axis.
    constexpr void set(int axis, extent value) {
        extents_[axis] = value.value;
        if (value.table != nullptr) table_ = value.table;
    }
    /// Appends an axis; one beyond max_rank is dropped and reported by `overflow`.
    constexpr void push_back(extent value) {
        if (rank_ == max_rank) {
            overflow_ = true;
            return;
        }
        ++rank_;
        set(rank_ - 1, value);
    }
    /// Whether more axes were added than a shape may have.
    constexpr bool overflow() const { return overflow_; }
    /// The extents in the order of the axes; symbolic ones as numbers of `table`.
    constexpr const std::int64_t* data() const { return extents_; }
    /// The table of symbolic extents, or nullptr if all are numbers.
    constexpr extent_table* table() const { return table_; }
    /// Says which table symbolic extents refer to.
    constexpr void attach(extent_table* table) { table_ = table; }
    /// Whether all extents are numbers.
    constexpr bool known() const {
        for (int i = 0; i < rank_; ++i)
            if (is_symbolic(extents_[i])) return false;
        return true;
    }

    /// Product of all extents (1 for a scalar).
    constexpr extent size() const { return size(0, rank_); }
    /// Product of the extents of axes [first, last).
    constexpr extent size(int first, int last) const {
        extent product{1, table_};
        for (int i = first; i < last; ++i) product = product * (*this)[i];
        return product;
    }
    /// Number of elements of a shape without symbols.
    constexpr std::int64_t elements() const {
        std::int64_t product = 1;
        for (int i = 0; i < rank_; ++i) product *= extents_[i];
        return product;
    }

    friend constexpr bool operator==(const shape& a, const shape& b) {
        if (a.rank_ != b.rank_) return false;
        for (int i = 0; i < a.rank_; ++i)
            if (a.extents_[i] != b.extents_[i]) return false;
        return true;
    }

private:
    std::int64_t extents_[max_rank]{};
    extent_table* table_ = nullptr;
    std::int8_t rank_ = 0;
    bool overflow_ = false;
};

/// Decides whether two extents are equal. Two symbolic ones that are not the same polynomial become a requirement that
/// is checked when extents are bound, and count as equal.
constexpr bool equal_or_required(extent a, extent b) {
    if (a.value == b.value) return true;
    if (a.known() && b.known()) return false;
    (a.table != nullptr ? a.table : b.table)->require_equal(a.value, b.value);
    return true;
}

/// Decides whether an extent is at least a number. For a symbolic one this becomes a requirement in the operation's name
/// that is checked when extents are bound, and counts as true.
constexpr bool at_least_or_required(extent a, std::int64_t least, const char* operation) {
    if (a.known()) return a.value >= least;
    if (least > 0) a.table->require_at_least(a.value, least, operation);
    return true;
}

/// NumPy broadcasting of two shapes; `ok` becomes false where they do not fit. An undecided symbol against a number above
/// one is taken to be that number (and required to be).
constexpr shape broadcast(const shape& a, const shape& b, bool& ok) {
    const shape& longer = a.rank() >= b.rank() ? a : b;
    const shape& shorter = a.rank() >= b.rank() ? b : a;
    const int offset = longer.rank() - shorter.rank();
    shape result = longer;
    if (shorter.table() != nullptr) result.attach(shorter.table());
    for (int i = 0; i < shorter.rank(); ++i) {
        const extent x = longer[offset + i], y = shorter[i];
        if (x.value == y.value || y.value == 1) continue;
        if (x.value == 1) {
            result.set(offset + i, y);
            continue;
        }
        ok = ok && equal_or_required(x, y);
        if (!x.known() && y.known()) result.set(offset + i, y);
    }
    return result;
}

/// An axis counted from the end when negative; -1 when it lies outside.
constexpr int normalized_axis(std::int64_t axis, int rank) {
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? static_cast<int>(axis) : -1;
}

/// "[2, 3]"; a symbolic extent prints as "?".
std::string to_string(const shape& s);
#if TG_DEFINES(runtime)
TG_DEFINITION std::string to_string(const shape& s) {
    std::string text = "[";
    for (int i = 0; i < s.rank(); ++i) {
        if (i > 0) text += ", ";
        text += s[i].known() ? std::to_string(s[i].value) : "?";
    }
    return text + "]";
}
#endif

} // namespace tapegraph
