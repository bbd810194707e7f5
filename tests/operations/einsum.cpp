#include <operations/builders.hpp>

/// Sums of products by subscripts, and what is one of them under another name.

namespace tapegraph::testing {

namespace subscripts {

struct equation {
    std::string text;
    shape_list shapes{};   ///< of its row; none: random programs alone
    std::string meaning{}; ///< the same without "..." and with a result, where `text` has it otherwise

    // The operands' axes and the result's as letters.
    std::string first{}, second{}, result{};
    bool of_two = false;
};

const std::vector<equation>& equations() {
    static const std::vector<equation> list = [] {
        std::vector<equation> all{
            {"ij->ji", {{{2, 3}}, {{0, 3}}}},
            {"ijk->j", {{{2, 3, 5}}, {{2, 0, 5}}, {{2, 3, 0}}}},
            {"ij->", {{{3, 7}}, {{0, 2}}}},
            {"ba", {{{2, 3}}}, "ba->ab"},
            {"ii->i", {{{3, 3}}, {{1, 1}}, {{0, 0}}}},
            {"ii", {{{4, 4}}}, "ii->"},
            {"iji->ji", {{{3, 2, 3}}}},
            {"iiji->j", {{{2, 2, 3, 2}}}},
            {"...ij->...ji", {{{2, 3, 4, 5}}}, "abij->abji"},
            {"i...->...", {{{2, 3, 4}}}, "iab->ab"},
            {"ij,jk->ik", {{{2, 3}, {3, 4}}, {{0, 3}, {3, 2}}, {{3, 0}, {0, 2}}, {{17, 29}, {29, 13}}}},
            {"ij,jk->ki", {{{2, 3}, {3, 4}}}},
            {"ij,jk", {{{2, 3}, {3, 4}}}, "ij,jk->ik"},
            {"bij,bjk->bik", {{{2, 3, 4}, {2, 4, 5}}, {{67, 3, 4}, {67, 4, 5}}, {{0, 3, 4}, {0, 4, 5}}}},
            {"bji,bjk->bik", {{{2, 4, 3}, {2, 4, 5}}}},
            {"bij,bkj->bki", {{{2, 3, 4}, {2, 5, 4}}}},
            {"bij,jk->bik", {{{2, 3, 4}, {4, 5}}}},
            {"bihd,bjhd->bhij", {{{2, 3, 2, 4}, {2, 5, 2, 4}}}},
            {"abc,cbd->ad", {{{2, 3, 4}, {4, 3, 5}}}},
            {"abc,bcd->ad", {{{2, 3, 4}, {3, 4, 5}}}},
            {"iab,jba->ji", {{{2, 3, 4}, {5, 4, 3}}}},
            {"ij,ij->ij", {{{2, 3}, {2, 3}}}},
            {"ij,ij->i", {{{2, 3}, {2, 3}}, {{2, 0}, {2, 0}}}},
            {"ij,ji->", {{{2, 3}, {3, 2}}}},
            {"i,j->ij", {{{3}, {4}}}},
            {"i,j->ji", {{{3}, {4}}}},
            {"i,i", {{{7}, {7}}, {{0}, {0}}, {{513}, {513}}}, "i,i->"},
            {"i,->i", {{{3}, {}}}},
            {"ijx,yjk->ik", {{{2, 3, 2}, {2, 3, 4}}}}, // axes of one operand alone
            {"iij,jk->ik", {{{3, 3, 2}, {2, 4}}}},
            {"abcdefg,hg->abcdefh", {{{1, 2, 1, 2, 1, 2, 3}, {2, 3}}}},
            {"...ij,...jk->...ik", {{{2, 3, 2, 4}, {2, 3, 4, 2}}}, "abij,abjk->abik"},
            {"i...,...j->...ij", {{{2, 3, 2}, {3, 2, 4}}}, "iab,abj->abij"},
        };
        for (const char* text :
             {"ij,kj->ki", "ij,ij->", "i,i->", "ij,j->i", "bij,jk->kbi", "abc,cb->a", "abc,dc->dab", "ij,kl->ljik",
              "abcd,db->ca", "ii->", "ijk->ik", "ijk->k", "iij->ji", "ijij->ij", "abcd->dbca"})
            all.push_back({text});
        for (equation& e : all) {
            const std::string& meaning = e.meaning.empty() ? e.text : e.meaning;
            const auto arrow = meaning.find("->"), comma = meaning.find(',');
            e.of_two = comma != std::string::npos;
            e.result = meaning.substr(arrow + 2);
            e.first = meaning.substr(0, e.of_two ? comma : arrow);
            if (e.of_two) e.second = meaning.substr(comma + 1, arrow - comma - 1);
        }
        return all;
    }();
    return list;
}

// whole[0]: which.
const equation& equation_of(const attributes& with) {
    const auto i = static_cast<std::size_t>(with.whole[0]);
    if (i >= equations().size()) throw argument_error("no such equation");
    return equations()[i];
}

/// Extents by letter; false where they contradict each other.
using by_letter = std::array<std::int64_t, 128>;
bool read_extents(const std::string& letters, const extents& x, by_letter& found) {
    if (letters.size() != x.size()) return false;
    for (std::size_t i = 0; i < x.size(); ++i) {
        std::int64_t& d = found[static_cast<std::size_t>(letters[i])];
        if (d >= 0 && d != x[i]) return false;
        d = x[i];
    }
    return true;
}
by_letter none() {
    by_letter none;
    none.fill(-1);
    return none;
}

bool draw_equation(choices& random, const std::vector<extents>& x, attributes& with) {
    const auto count = static_cast<std::int64_t>(equations().size()), from = random.whole(0, count - 1);
    for (std::int64_t i = 0; i < count; ++i) {
        const equation& e = equations()[static_cast<std::size_t>((from + i) % count)];
        by_letter found = none();
        if (e.of_two != (x.size() > 1)) continue;
        if (!read_extents(e.first, x[0], found) || (e.of_two && !read_extents(e.second, x[1], found))) continue;
        with.whole = {(from + i) % count};
        return true;
    }
    return false;
}

// Fits one of the equations, which the drawing of attributes finds again, or another that fits, too.
bool equation_partner(choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
    for (int attempt = 0; attempt < 40; ++attempt) {
        const equation& e = random.pick(equations());
        by_letter found = none();
        if (!e.of_two || !read_extents(e.first, before[0], found)) continue;
        for (const char c : e.second) {
            std::int64_t& d = found[static_cast<std::size_t>(c)];
            if (d < 0) d = random.whole(0, 10) == 0 ? 0 : random.whole(1, 4);
            dims.push_back(d);
        }
        return true;
    }
    return false;
}

// Every letter counts up to its extent; results take what the product of the operands gives.
array sum_of_products(const std::vector<array>& x, const equation& e) {
    by_letter found = none();
    read_extents(e.first, x[0].dims, found);
    if (x.size() > 1) read_extents(e.second, x[1].dims, found);
    std::string letters;
    extents counts, dims;
    for (const char c : e.first + e.second)
        if (letters.find(c) == std::string::npos) {
            letters += c;
            counts.push_back(found[static_cast<std::size_t>(c)]);
        }
    for (const char c : e.result) dims.push_back(found[static_cast<std::size_t>(c)]);
    array y(dims);
    const auto part = [&](const std::string& of, const extents& at) {
        extents index;
        for (const char c : of) index.push_back(at[letters.find(c)]);
        return index;
    };
    for (std::int64_t i = 0; i < count_of(counts); ++i) {
        const extents at = unravel(i, counts);
        const real second = x.size() > 1 ? x[1].at(part(e.second, at)) : 1;
        y.at(part(e.result, at)) += x[0].at(part(e.first, at)) * second;
    }
    return y;
}

// As of matrix products.
row product(attributes with, shape_list shapes) {
    return {.with = std::move(with), .shapes = std::move(shapes), .ulps = 32, .floor = 4, .why = "sums of products"};
}

operation by_equation(operation made, bool of_two) {
    made.draw = draw_equation;
    made.source = [](const std::vector<std::string>& x, const attributes& with) {
        const equation& e = equation_of(with);
        return "einsum(\"" + e.text + "\", " + x[0] + (e.of_two ? ", " + x[1] : "") + ")";
    };
    made.reference = [](const std::vector<array>& x, const attributes& with) {
        return sum_of_products(x, equation_of(with));
    };
    for (std::size_t i = 0; i < equations().size(); ++i)
        if (equations()[i].of_two == of_two && !equations()[i].shapes.empty())
            made.rows.push_back(product({{static_cast<std::int64_t>(i)}, {}}, equations()[i].shapes));
    return made;
}

std::vector<operation> einsums() {
    operation two =
        by_equation(make_operation<double, double>("einsum",
                                                   [](const auto& x, const auto& y, const attributes& with) {
                                                       return einsum(equation_of(with).text, x, y);
                                                   }),
                    true);
    two.weight = 3;
    two.partner = equation_partner;
    operation one = by_equation(
        make_operation<double>("einsum_of_one",
                               [](const auto& x, const attributes& with) { return einsum(equation_of(with).text, x); }),
        false);
    // "..." broadcasts, as matmul's leading axes do.
    operation matrices = make_operation<double, double>(
        "einsum, broadcast axes",
        not_drawn{[](const auto& a, const auto& b, const attributes&) { return einsum("...ij,...jk", a, b); }},
        {product({}, {{{5, 1, 2, 3}, {1, 4, 3, 2}}, {{2, 3}, {4, 3, 2}}, {{2, 1, 2, 3}, {3, 3, 2}}})});
    matrices.reference = [](const std::vector<array>& x, const attributes&) { return matmul(x[0], x[1]); };
    operation elements = make_operation<double, double>(
        "einsum, products of broadcast axes",
        not_drawn{[](const auto& a, const auto& b, const attributes&) { return einsum("...,i...->i...", a, b); }},
        {product({}, {{{3, 1}, {2, 1, 4}}})});
    elements.reference = [](const std::vector<array>& x, const attributes&) {
        return map(x, [](const real* v) { return v[0] * v[1]; });
    };
    return {two, one, matrices, elements};
}

// whole: how many of the last axes meet as many of the first; or -1 and up to two pairs of axes.
tensordot_axes axes_of_words(const attributes& with) {
    const auto word = [&](std::size_t i) { return axis_of(with, i); };
    if (with.whole[0] >= 0) return word(0);
    if (with.whole.size() == 3) return {{word(1)}, {word(2)}};
    return {{word(1), word(3)}, {word(2), word(4)}};
}

operation tensordots() {
    operation made = make_operation<floating, floating>(
        "tensordot",
        [](const auto& x, const auto& y, const attributes& with) {
            return with.whole == extents{2} ? tensordot(x, y) : tensordot(x, y, axes_of_words(with));
        },
        {product({{1}, {}}, {{{2, 3, 4}, {4, 5}}}), product({{2}, {}}, {{{2, 3, 4}, {3, 4, 5}}}),
         product({{0}, {}}, {{{2, 3}, {4}}}), product({{-1, 1, 0, 0, -1}, {}}, {{{2, 3, 4}, {3, 5, 2}}})});
    made.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        const std::int64_t rank = rank_of(before[0]), common = random.whole(0, std::min<std::int64_t>(rank, 2));
        dims.assign(before[0].end() - common, before[0].end());
        for (std::int64_t more = random.whole(0, 2); more > 0; --more)
            dims.insert(random.chance(0.7) ? dims.end() : dims.begin(), random.whole(1, 3));
        return true;
    };
    made.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        for (int attempt = 0; attempt < 6; ++attempt) {
            const std::int64_t axes = std::min<std::int64_t>({rank_of(x[0]), rank_of(x[1]), random.whole(0, 2)});
            if (std::equal(x[0].end() - axes, x[0].end(), x[1].begin())) {
                with.whole = {axes};
                return rank_of(x[0]) + rank_of(x[1]) - 2 * axes <= 5;
            }
            if (x[0].empty() || x[1].empty()) continue;
            const std::int64_t i = random.whole(0, rank_of(x[0]) - 1), k = random.whole(-rank_of(x[1]), -1);
            if (x[0][static_cast<std::size_t>(i)] != x[1][static_cast<std::size_t>(k + rank_of(x[1]))]) continue;
            with.whole = {-1, i, k};
            return rank_of(x[0]) + rank_of(x[1]) <= 7;
        }
        return false;
    };
    made.source = [](const std::vector<std::string>& x, const attributes& with) {
        std::string axes = text_of(with.whole[0]), first, second;
        for (std::size_t i = 1; i + 1 < with.whole.size(); i += 2) {
            first += (i > 1 ? ", " : "") + text_of(with.whole[i]);
            second += (i > 1 ? ", " : "") + text_of(with.whole[i + 1]);
        }
        if (with.whole[0] < 0) axes = "{{" + first + "}, {" + second + "}}";
        return "tensordot(" + x[0] + ", " + x[1] + ", " + axes + ")";
    };
    made.reference = [](const std::vector<array>& x, const attributes& with) {
        equation e;
        for (std::size_t i = 0; i < x[0].dims.size(); ++i) e.first += static_cast<char>('a' + i);
        for (std::size_t i = 0; i < x[1].dims.size(); ++i) e.second += static_cast<char>('A' + i);
        const auto common = static_cast<std::size_t>(std::max<std::int64_t>(with.whole[0], 0));
        for (std::size_t k = 0; k < common; ++k) e.second[k] = e.first[e.first.size() - common + k];
        for (std::size_t i = 1; i + 1 < with.whole.size(); i += 2)
            e.second[axis_in(x[1].dims, with, i + 1)] = e.first[axis_in(x[0].dims, with, i)];
        for (const char c : e.first)
            if (e.second.find(c) == std::string::npos) e.result += c;
        for (const char c : e.second)
            if (e.first.find(c) == std::string::npos) e.result += c;
        return sum_of_products(x, e);
    };
    return made;
}

/// outer, dot, inner, vdot.
template <class T, class F>
operation by_name(const char* name, F f, bool (*partner)(choices&, std::size_t, const std::vector<extents>&, extents&),
                  equation (*meaning)(const std::vector<array>& x), shape_list shapes) {
    operation made = make_operation<T, T>(name, f, {product({}, std::move(shapes))});
    made.partner = partner;
    made.source = [name](const std::vector<std::string>& x, const attributes&) {
        return std::string(name) + "(" + x[0] + ", " + x[1] + ")";
    };
    made.reference = [meaning](std::vector<array> x, const attributes&) {
        const equation e = meaning(x);
        // Letters fewer than axes: of all elements in a line. A number is a factor of its own.
        for (std::size_t k = 0; k < 2; ++k)
            if ((k == 0 ? e.first : e.second).size() == 1 && x[k].dims.size() != 1) x[k].dims = {x[k].size()};
        return sum_of_products(x, e);
    };
    return made;
}
std::string letters(std::size_t count, char from) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += static_cast<char>(from + i);
    return text;
}
// The last axis of x with axis `from_end` of y, except of numbers.
equation last_with(const std::vector<array>& x, std::size_t from_end) {
    equation e;
    e.first = letters(x[0].dims.size(), 'a'), e.second = letters(x[1].dims.size(), 'A');
    if (!e.first.empty() && !e.second.empty())
        e.second[e.second.size() - std::min(from_end, e.second.size())] = e.first.back();
    for (const char c : e.first + e.second)
        if ((e.first.find(c) == std::string::npos) != (e.second.find(c) == std::string::npos)) e.result += c;
    return e;
}
equation of_lines(const char* result) {
    equation e;
    e.first = "a", e.second = *result == 0 ? "a" : "b", e.result = result;
    return e;
}

std::vector<operation> named_products() {
    return {by_name<floating>(
                "outer", [](const auto& x, const auto& y, const attributes&) { return outer(x, y); },
                [](choices& random, std::size_t, const std::vector<extents>&, extents& dims) {
                    for (std::int64_t rank = random.whole(0, 2); rank > 0; --rank) dims.push_back(random.whole(0, 4));
                    return true;
                },
                [](const std::vector<array>&) { return of_lines("ab"); },
                {{{3}, {4}}, {{2, 3}, {2}}, {{}, {3}}, {{0}, {3}}}),
            by_name<double>(
                "dot", [](const auto& x, const auto& y, const attributes&) { return tapegraph::dot(x, y); },
                [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
                    if (before[0].size() > 2) return false;
                    if (before[0].empty() || random.chance(0.1)) return true;
                    dims = {before[0].back()};
                    if (random.chance(0.5)) dims.push_back(random.whole(1, 4));
                    if (dims.size() == 2 && random.chance(0.3)) dims.insert(dims.begin(), random.whole(1, 3));
                    return true;
                },
                [](const std::vector<array>& x) { return last_with(x, 2); },
                {{{3}, {3}}, {{3}, {2, 3, 4}}, {{2, 3}, {3}}, {{2, 3}, {4, 3, 5}}}),
            by_name<double>(
                "inner", [](const auto& x, const auto& y, const attributes&) { return inner(x, y); },
                [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
                    if (before[0].empty()) return true;
                    dims = {before[0].back()};
                    if (random.chance(0.5)) dims.insert(dims.begin(), random.whole(1, 4));
                    return before[0].size() < 4;
                },
                [](const std::vector<array>& x) { return last_with(x, 1); }, {{{2, 3}, {4, 5, 3}}}),
            by_name<double>(
                "vdot", [](const auto& x, const auto& y, const attributes&) { return vdot(x, y); },
                [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
                    dims = random.chance(0.5) ? before[0] : extents{count_of(before[0])};
                    return true;
                },
                [](const std::vector<array>&) { return of_lines(""); }, {{{2, 3}, {3, 2}}, {{5}, {5}}})};
}

} // namespace subscripts

std::vector<operation> einsum_operations() {
    using namespace subscripts;
    std::vector<operation> made = einsums();
    made.push_back(tensordots());
    const std::vector<operation> more = named_products();
    made.insert(made.end(), more.begin(), more.end());
    for (operation& each : made) each.domains.assign(each.types.size(), {-30, 30});
    return made;
}

} // namespace tapegraph::testing
