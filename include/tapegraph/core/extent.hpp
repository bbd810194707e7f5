#pragma once

#include <tapegraph/core/list.hpp>

#include <cstdint>
#include <limits>
#include <string_view>

/// Extents of shapes: numbers, or polynomials of symbols while a graph is traced.
///
/// A symbolic extent is a value far below zero whose distance from the lowest integer is its index in an
/// `extent_table`. Equal polynomials have equal indices, so comparing extents is comparing integers.

namespace tapegraph {

/// Whether the number stands for an extent that is known only at run time, or for a polynomial of such.
constexpr bool is_symbolic(std::int64_t value) { return value < -(std::int64_t{1} << 60); }

namespace detail {
constexpr std::int64_t symbolic_value(int index) { return std::numeric_limits<std::int64_t>::min() + index; }
constexpr int symbolic_index(std::int64_t value) {
    return static_cast<int>(value - std::numeric_limits<std::int64_t>::min());
}
} // namespace detail

/// The polynomials of one trace. A monomial is a coefficient and a product of at most eight atoms; an atom is a symbol or
/// an opaque floor division of a polynomial by a number.
class extent_table {
public:
    /// A symbol, or a quotient of polynomials that does not divide out.
    struct atom {
        std::string_view name; // of a symbol; empty for a division
        std::int64_t dividend = 0, divisor = 0;
    };
    /// A product of atoms with a coefficient.
    struct monomial {
        std::int64_t coefficient = 0;
        std::uint64_t atoms = 0; // sorted 8-bit atom numbers, 1-based, the lowest in the top bits
    };
    /// Which monomials of the table are its terms.
    struct polynomial {
        int first = 0, count = 0;
    };

    /// A monomial has at most as many factors as a shape has axes.
    static constexpr int atom_bits = 8, top = 64 - atom_bits;
    /// The index of the first factor of a product of atoms; the others follow `atom_bits` lower.
    static constexpr int first_atom(std::uint64_t product) { return static_cast<int>(product >> top) - 1; }

    list<atom> atoms;
    list<monomial> monomials;
    list<polynomial> polynomials;
    /// A condition that tracing could not decide and that is checked when extents are bound: left
    /// equals right, or, where an operation is named, left is at least right.
    struct requirement {
        std::int64_t left = 0, right = 0;
        const char* at_least_for = nullptr;
    };
    list<requirement> requirements;

    /// Returns the symbol of this name. An empty name always makes a new one.
    constexpr std::int64_t symbol(std::string_view name) {
        for (int i = 0; i < atoms.size(); ++i)
            if (!name.empty() && atoms[i].name == name) return of_atom(i);
        return of_atom(atoms.push_back({name.empty() ? std::string_view("?") : name, 0, 0}));
    }

    /// a + sign b, as a number or as the polynomial's number in this table.
    constexpr std::int64_t add(std::int64_t a, std::int64_t b, std::int64_t sign = 1) {
        list<monomial> sum = terms(a);
        const list<monomial> right = terms(b);
        for (monomial term : right) {
            term.coefficient *= sign;
            accumulate(sum, term);
        }
        return intern(sum);
    }

    /// a b, as a number or as the polynomial's number in this table.
    constexpr std::int64_t multiply(std::int64_t a, std::int64_t b) {
        list<monomial> product;
        const list<monomial> left = terms(a), right = terms(b);
        for (const monomial& x : left)
            for (const monomial& y : right)
                accumulate(product, {x.coefficient * y.coefficient, merge(x.atoms, y.atoms)});
        return intern(product);
    }

    /// floor(a / divisor); exact when it divides every coefficient but the constant's, opaque otherwise.
    constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t divisor) {
        if (divisor == 1) return a;
        list<monomial> quotient = terms(a);
        bool exact = true;
        for (monomial& term : quotient) {
            const std::int64_t rest = term.coefficient % divisor;
            exact = exact && (rest == 0 || term.atoms == 0);
            term.coefficient = term.coefficient / divisor - (rest < 0 ? 1 : 0);
        }
        if (exact) {
            if (!quotient.empty() && quotient.back().coefficient == 0) quotient.pop_back(); // the constant comes last
            return intern(quotient);
        }
        for (int i = 0; i < atoms.size(); ++i)
            if (atoms[i].divisor == divisor && atoms[i].dividend == a) return of_atom(i);
        return of_atom(atoms.push_back({{}, a, divisor}));
    }

    /// a / b where b is one monomial that divides every term; -1 when it does not.
    constexpr std::int64_t divide_exactly(std::int64_t a, std::int64_t b) {
        const list<monomial> divisor = terms(b);
        if (divisor.size() != 1) return a == b ? 1 : -1;
        list<monomial> quotient = terms(a);
        for (monomial& term : quotient) {
            std::uint64_t left = term.atoms;
            if (term.coefficient % divisor[0].coefficient != 0 || !remove(left, divisor[0].atoms)) return -1;
            term = {term.coefficient / divisor[0].coefficient, left};
        }
        return intern(quotient);
    }

    /// Records that a and b must be equal, to be checked when the extents are known.
    constexpr void require_equal(std::int64_t a, std::int64_t b) {
        for (const requirement& known : requirements)
            if (known.left == a && known.right == b && known.at_least_for == nullptr) return;
        requirements.push_back({a, b});
    }
    /// Records that a must be at least `least`, which `operation` needs.
    constexpr void require_at_least(std::int64_t a, std::int64_t least, const char* operation) {
        for (const requirement& known : requirements)
            if (known.left == a && known.right == least && known.at_least_for != nullptr) return;
        requirements.push_back({a, least, operation});
    }

    /// The number an extent stands for; `value_of(atom index)` gives the bound value of a symbol.
    template <class Bindings>
    constexpr std::int64_t evaluate(std::int64_t value, const Bindings& value_of) const {
        if (!is_symbolic(value)) return value;
        const polynomial p = polynomials[detail::symbolic_index(value)];
        std::int64_t sum = 0;
        for (int i = p.first; i < p.first + p.count; ++i) {
            std::int64_t product = monomials[i].coefficient;
            for (std::uint64_t rest = monomials[i].atoms; rest != 0; rest <<= atom_bits) {
                const int index = first_atom(rest);
                const atom& factor = atoms[index];
                if (factor.divisor == 0) {
                    product *= value_of(index);
                } else {
                    const std::int64_t dividend = evaluate(factor.dividend, value_of);
                    const std::int64_t quotient = dividend / factor.divisor;
                    product *= quotient - (dividend % factor.divisor < 0 ? 1 : 0);
                }
            }
            sum += product;
        }
        return sum;
    }

    /// The atom index of the symbol that an extent consists of, or -1 for a number or a larger
    /// polynomial.
    constexpr int symbol_of(std::int64_t value) const {
        if (!is_symbolic(value)) return -1;
        const polynomial p = polynomials[detail::symbolic_index(value)];
        const monomial& term = monomials[p.first];
        if (p.count != 1 || term.coefficient != 1 || (term.atoms << atom_bits) != 0) return -1;
        const int index = first_atom(term.atoms);
        return index >= 0 && atoms[index].divisor == 0 ? index : -1;
    }

private:
    constexpr std::int64_t of_atom(int index) {
        list<monomial> single;
        if (index > 254)
            throw "more than 255 symbols and divisions in extents"; // ends constant evaluation with this line
        single.push_back({1, static_cast<std::uint64_t>(index + 1) << top});
        return intern(single);
    }

    constexpr list<monomial> terms(std::int64_t value) const {
        list<monomial> result;
        if (!is_symbolic(value)) {
            if (value != 0) result.push_back({value, 0});
            return result;
        }
        const polynomial p = polynomials[detail::symbolic_index(value)];
        for (int i = p.first; i < p.first + p.count; ++i) result.push_back(monomials[i]);
        return result;
    }

    static constexpr void accumulate(list<monomial>& sum, const monomial& term) {
        int at = 0;
        while (at < sum.size() && sum[at].atoms > term.atoms) ++at;
        if (at < sum.size() && sum[at].atoms == term.atoms) {
            sum[at].coefficient += term.coefficient;
            if (sum[at].coefficient != 0) return;
            for (int i = at; i + 1 < sum.size(); ++i) sum[i] = sum[i + 1];
            sum.pop_back();
            return;
        }
        sum.push_back(term);
        for (int i = sum.size() - 1; i > at; --i) {
            const monomial lower = sum[i - 1];
            sum[i - 1] = sum[i];
            sum[i] = lower;
        }
    }

    static constexpr std::uint64_t merge(std::uint64_t a, std::uint64_t b) {
        std::uint64_t result = 0;
        int shift = top;
        while (a != 0 || b != 0) {
            if (shift < 0) throw "an extent has degree above eight"; // likewise
            const bool take_a = b == 0 || (a != 0 && (a >> top) <= (b >> top));
            std::uint64_t& source = take_a ? a : b;
            result |= (source >> top) << shift;
            source <<= atom_bits;
            shift -= atom_bits;
        }
        return result;
    }

    static constexpr bool remove(std::uint64_t& from, std::uint64_t what) {
        std::uint64_t result = 0;
        int shift = top;
        for (; from != 0; from <<= atom_bits) {
            if (what != 0 && from >> top == what >> top) {
                what <<= atom_bits;
                continue;
            }
            result |= (from >> top) << shift;
            shift -= atom_bits;
        }
        from = result;
        return what == 0;
    }

    constexpr std::int64_t intern(const list<monomial>& sum) {
        if (sum.empty()) return 0;
        if (sum.size() == 1 && sum[0].atoms == 0) return sum[0].coefficient;
        for (int i = 0; i < polynomials.size(); ++i) {
            const polynomial p = polynomials[i];
            bool same = p.count == sum.size();
            for (int j = 0; same && j < p.count; ++j)
                same = monomials[p.first + j].coefficient == sum[j].coefficient &&
                       monomials[p.first + j].atoms == sum[j].atoms;
            if (same) return detail::symbolic_value(i);
        }
        const int first = monomials.size();
        for (const monomial& term : sum) monomials.push_back(term);
        return detail::symbolic_value(polynomials.push_back({first, sum.size()}));
    }
};

/// One extent of a shape. Arithmetic is ordinary; while a graph is traced it may be symbolic.
struct extent {
    std::int64_t value = 0;
    extent_table* table = nullptr;

    constexpr extent() = default;
    // NOLINTNEXTLINE: numbers are extents
    constexpr extent(std::int64_t number) : value(number) {}
    constexpr extent(std::int64_t number, extent_table* symbols) : value(number), table(symbols) {}

    /// Whether it is a number already.
    constexpr bool known() const { return !is_symbolic(value); }

    friend constexpr extent operator+(extent a, extent b) {
        if (a.known() && b.known()) return {a.value + b.value, a.any(b)};
        return {a.any(b)->add(a.value, b.value), a.any(b)};
    }
    friend constexpr extent operator-(extent a, extent b) {
        if (a.known() && b.known()) return {a.value - b.value, a.any(b)};
        return {a.any(b)->add(a.value, b.value, -1), a.any(b)};
    }
    friend constexpr extent operator*(extent a, extent b) {
        if (a.known() && b.known()) return {a.value * b.value, a.any(b)};
        return {a.any(b)->multiply(a.value, b.value), a.any(b)};
    }
    /// Floor division by a positive number.
    friend constexpr extent operator/(extent a, std::int64_t divisor) {
        if (!a.known()) return {a.table->floor_divide(a.value, divisor), a.table};
        return {a.value / divisor - (a.value % divisor < 0 ? 1 : 0), a.table};
    }
    /// Whether both are the same number or the same polynomial.
    friend constexpr bool operator==(extent a, extent b) { return a.value == b.value; }

private:
    constexpr extent_table* any(extent other) const { return table != nullptr ? table : other.table; }
};

} // namespace tapegraph
