#include <fuzz/rows.hpp>

#include <algorithm>
#include <array>

/// Products: of matrices, of vectors, and sums of products by subscripts.

namespace tapegraph::fuzz {

namespace {

operation matmul_row() {
    operation row = make_operation<double, double>("matmul", [](const auto& x, const auto& y, const attributes& with) {
        return matmul(x, y, {.transpose_a = with.whole[0] != 0, .transpose_b = with.whole[1] != 0});
    });
    row.domains = {{-30, 30}, {-30, 30}};
    row.weight = 4;
    row.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        const extents& a = before[0];
        if (a.size() < 2) return false;
        const std::int64_t inner = a[a.size() - static_cast<std::size_t>(random.whole(1, 2))];
        dims = {inner, random.whole(0, 4)};
        if (random.chance(0.4)) std::swap(dims[0], dims[1]);
        if (a.size() > 2 && random.chance(0.5)) dims.insert(dims.begin(), random.chance(0.5) ? a[a.size() - 3] : 1);
        if (dims.size() < 5 && random.chance(0.2)) dims.insert(dims.begin(), a.size() == dims.size() ? 1 : 2);
        return true;
    };
    row.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (x[0].size() < 2 || x[1].size() < 2) return false;
        for (int attempt = 0; attempt < 6; ++attempt) {
            with.whole = {random.chance(0.4), random.chance(0.4)};
            if (x[0][x[0].size() - (with.whole[0] != 0 ? 2 : 1)] == x[1][x[1].size() - (with.whole[1] != 0 ? 1 : 2)])
                return true;
        }
        return false;
    };
    row.accepts = [](const std::vector<array>& x, const attributes&) { // vectors have a row of their own
        return x[0].dims.size() > 1 && x[1].dims.size() > 1;
    };
    row.source = [](const std::vector<std::string>& x, const attributes& with) {
        const auto flag = [&](std::size_t i) { return std::string(with.whole[i] != 0 ? "true" : "false"); };
        return "matmul(" + x[0] + ", " + x[1] + ", {.transpose_a = " + flag(0) + ", .transpose_b = " + flag(1) + "})";
    };
    row.reference = [](const std::vector<array>& x, const attributes& with) {
        return testing::matmul(x[0], x[1], with.whole[0] != 0, with.whole[1] != 0);
    };
    return row;
}

// What the pass for epilogues looks for; random neighbours alone would seldom spell it.
operation product_layer_row() {
    operation row = make_operation<double, double, double>(
        "matmul_relu", [](const auto& x, const auto& w, const auto& b, const attributes& with) {
            return relu(matmul(x, w, {.transpose_b = with.whole[0] != 0}) + b);
        });
    row.weight = 9;
    row.partner = [](choices& random, std::size_t k, const std::vector<extents>& before, extents& dims) {
        const extents& a = before[0];
        if (a.size() < 2) return false;
        if (k == 1)
            dims = {a.back(), random.whole(0, 4)};
        else
            dims = {before[1].back()};
        return true;
    };
    row.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (x[0].size() < 2 || x[1].size() != 2 || x[2].size() != 1) return false;
        with.whole = {random.chance(0.4)};
        const std::size_t inner = with.whole[0] != 0 ? 1 : 0;
        return x[1][inner] == x[0].back() && x[1][1 - inner] == x[2][0];
    };
    row.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "relu(matmul(" + x[0] + ", " + x[1] + ", {.transpose_b = " + (with.whole[0] != 0 ? "true" : "false") +
               "}) + " + x[2] + ")";
    };
    return row;
}

// The operands' axes as letters; no "..." among them.
struct equation {
    std::string text;
    std::string first, second, result;
};

const std::vector<equation>& equations() {
    static const std::vector<equation> list = [] {
        std::vector<equation> made;
        for (const std::string text :
             {"ij,jk->ik",   "ij,kj->ki",    "ij,ij->i",     "ij,ij->",     "i,j->ij",         "i,i->",
              "ij,j->i",     "bij,bjk->bik", "bij,bkj->bki", "bij,jk->kbi", "bihd,bjhd->bhij", "abc,cb->a",
              "abc,dc->dab", "ij,kl->ljik",  "abcd,db->ca",  "iij,jk->ik",  "ij->ji",          "ii->i",
              "ii->",        "ijk->ik",      "ijk->k",       "iij->ji",     "ijij->ij",        "abcd->dbca"}) {
            equation e{text, {}, {}, text.substr(text.find("->") + 2)};
            const std::string operands = text.substr(0, text.find("->"));
            const auto comma = operands.find(',');
            e.first = operands.substr(0, comma);
            if (comma != std::string::npos) e.second = operands.substr(comma + 1);
            made.push_back(e);
        }
        return made;
    }();
    return list;
}

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
        if (e.second.empty() == (x.size() > 1)) continue;
        if (!read_extents(e.first, x[0], found) || (x.size() > 1 && !read_extents(e.second, x[1], found))) continue;
        with.whole = {(from + i) % count};
        return true;
    }
    return false;
}

// Fits one of the equations, which the drawing of attributes finds again, or another that fits, too.
bool equation_partner(choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
    for (int attempt = 0; attempt < 30; ++attempt) {
        const equation& e = random.pick(equations());
        by_letter found = none();
        if (e.second.empty() || !read_extents(e.first, before[0], found)) continue;
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
    for (std::int64_t i = 0; i < testing::count_of(counts); ++i) {
        const extents at = testing::unravel(i, counts);
        const real second = x.size() > 1 ? x[1].at(part(e.second, at)) : 1;
        y.at(part(e.result, at)) += x[0].at(part(e.first, at)) * second;
    }
    return y;
}

array einsum_reference(const std::vector<array>& x, const attributes& with) {
    return sum_of_products(x, equation_of(with));
}

operation tensordot_row() {
    // whole: how many of the last axes meet as many of the first, or -1 and a pair of axes.
    operation row =
        make_operation<double, double>("tensordot", [](const auto& x, const auto& y, const attributes& with) {
            if (with.whole[0] >= 0) return tensordot(x, y, static_cast<int>(with.whole[0]));
            return tensordot(x, y, {{static_cast<int>(with.whole[1])}, {static_cast<int>(with.whole[2])}});
        });
    row.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        const std::int64_t rank = rank_of(before[0]), common = random.whole(0, std::min<std::int64_t>(rank, 2));
        dims.assign(before[0].end() - common, before[0].end());
        for (std::int64_t more = random.whole(0, 2); more > 0; --more)
            dims.insert(random.chance(0.7) ? dims.end() : dims.begin(), random.whole(1, 3));
        return true;
    };
    row.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        for (int attempt = 0; attempt < 6; ++attempt) {
            const std::int64_t axes = std::min<std::int64_t>({rank_of(x[0]), rank_of(x[1]), random.whole(0, 2)});
            if (std::equal(x[0].end() - axes, x[0].end(), x[1].begin())) {
                with.whole = {axes, 0, 0};
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
    row.source = [](const std::vector<std::string>& x, const attributes& with) {
        const std::string axes = with.whole[0] >= 0
                                     ? text_of(with.whole[0])
                                     : "{{" + text_of(with.whole[1]) + "}, {" + text_of(with.whole[2]) + "}}";
        return "tensordot(" + x[0] + ", " + x[1] + ", " + axes + ")";
    };
    row.reference = [](const std::vector<array>& x, const attributes& with) {
        std::string a, b, result;
        for (std::size_t i = 0; i < x[0].dims.size(); ++i) a += static_cast<char>('a' + i);
        for (std::size_t i = 0; i < x[1].dims.size(); ++i) b += static_cast<char>('A' + i);
        for (std::int64_t k = 0; k < with.whole[0]; ++k)
            b[static_cast<std::size_t>(k)] = a[a.size() - static_cast<std::size_t>(with.whole[0] - k)];
        if (with.whole[0] < 0)
            b[static_cast<std::size_t>(with.whole[2] + rank_of(x[1].dims))] =
                a[static_cast<std::size_t>(with.whole[1])];
        for (const char c : a)
            if (b.find(c) == std::string::npos) result += c;
        for (const char c : b)
            if (a.find(c) == std::string::npos) result += c;
        return sum_of_products(x, {{}, a, b, result});
    };
    return row;
}

/// outer, dot, inner, vdot: matrices and vectors multiplied by their names.
template <class F>
operation product(const char* name, F f,
                  bool (*partner)(choices&, std::size_t, const std::vector<extents>&, extents&)) {
    operation row = make_operation<double, double>(name, f);
    row.partner = partner;
    row.draw = [](choices&, const std::vector<extents>&, attributes&) { return true; };
    row.source = [name](const std::vector<std::string>& x, const attributes&) {
        return std::string(name) + "(" + x[0] + ", " + x[1] + ")";
    };
    return row;
}

} // namespace

std::vector<operation> contraction_operations() {
    operation two = make_operation<double, double>("einsum", [](const auto& x, const auto& y, const attributes& with) {
        return einsum(equation_of(with).text, x, y);
    });
    two.partner = equation_partner;
    operation one = make_operation<double>(
        "einsum_of_one", [](const auto& x, const attributes& with) { return einsum(equation_of(with).text, x); });
    for (operation* row : {&two, &one}) {
        row->draw = draw_equation;
        row->reference = einsum_reference;
        row->source = [](const std::vector<std::string>& x, const attributes& with) {
            return "einsum(\"" + equation_of(with).text + "\", " + x[0] + (x.size() > 1 ? ", " + x[1] : "") + ")";
        };
    }
    two.weight = 3;

    std::vector<operation> r{matmul_row(), product_layer_row(), two, tensordot_row()};
    r.push_back(product(
        "matmul_vector", [](const auto& x, const auto& y, const attributes&) { return matmul(x, y); },
        [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
            const extents& a = before[0];
            if (a.empty()) return false;
            dims = {a.back()};
            if (a.size() == 1 && random.chance(0.7)) dims.push_back(random.whole(0, 4));
            if (dims.size() == 2 && random.chance(0.3)) dims.insert(dims.begin(), random.whole(1, 3));
            return true;
        }));
    r.back().source = [](const std::vector<std::string>& x, const attributes&) {
        return "matmul(" + x[0] + ", " + x[1] + ")";
    };
    r.push_back(product(
        "outer", [](const auto& x, const auto& y, const attributes&) { return outer(x, y); },
        [](choices& random, std::size_t, const std::vector<extents>&, extents& dims) {
            for (std::int64_t rank = random.whole(0, 2); rank > 0; --rank) dims.push_back(random.whole(0, 4));
            return true;
        }));
    r.push_back(product(
        "dot", [](const auto& x, const auto& y, const attributes&) { return dot(x, y); },
        [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
            if (before[0].size() > 2) return false;
            if (before[0].empty() || random.chance(0.1)) return true;
            dims = {before[0].back()};
            if (random.chance(0.5)) dims.push_back(random.whole(1, 4));
            if (dims.size() == 2 && random.chance(0.3)) dims.insert(dims.begin(), random.whole(1, 3));
            return true;
        }));
    r.push_back(product(
        "inner", [](const auto& x, const auto& y, const attributes&) { return inner(x, y); },
        [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
            if (before[0].empty()) return true;
            dims = {before[0].back()};
            if (random.chance(0.5)) dims.insert(dims.begin(), random.whole(1, 4));
            return before[0].size() < 4;
        }));
    r.push_back(product(
        "vdot", [](const auto& x, const auto& y, const attributes&) { return vdot(x, y); },
        [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
            dims = random.chance(0.5) ? before[0] : extents{testing::count_of(before[0])};
            return true;
        }));
    for (operation& row : r) row.domains.assign(row.types.size(), {-30, 30});
    one.domains = {{-30, 30}};
    r.push_back(one);
    return r;
}

} // namespace tapegraph::fuzz
