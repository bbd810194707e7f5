#include <ops/table.hpp>

#include <tapegraph/core/fixed_string.hpp>

#include <cctype>
#include <map>

namespace tapegraph::testing {

namespace {
/// The meaning of subscripts without "...": a loop over every letter.
array summed(std::string_view text, const std::vector<array>& x) {
    std::vector<std::string> labels(1);
    std::string out;
    bool result = false;
    for (char c : text) {
        if (c == '>') result = true;
        else if (c == ',') labels.emplace_back();
        else if (std::isalpha(c) != 0) (result ? out : labels.back()) += c;
    }
    std::string every;
    std::map<char, std::int64_t> size;
    for (std::size_t k = 0; k < labels.size(); ++k)
        for (std::size_t i = 0; i < labels[k].size(); ++i) {
            if (size.count(labels[k][i]) == 0) every += labels[k][i];
            size[labels[k][i]] = x[k].dims[i];
        }
    const auto dims_of = [&](const std::string& of) {
        extents dims;
        for (char c : of) dims.push_back(size[c]);
        return dims;
    };
    array y(dims_of(out));
    const extents all = dims_of(every);
    for (std::int64_t i = 0; i < count_of(all); ++i) {
        const extents at = unravel(i, all);
        const auto index = [&](const std::string& of) {
            extents chosen;
            for (char c : of) chosen.push_back(at[every.find(c)]);
            return chosen;
        };
        real product = 1;
        for (std::size_t k = 0; k < labels.size(); ++k) product *= x[k].at(index(labels[k]));
        y.at(index(out)) += product;
    }
    return y;
}

/// `Meaning` says the same as `Text` without "..." and with a result.
template <fixed_string Text, std::size_t Operands, fixed_string Meaning = Text>
row einsum_row() {
    const auto expected = [](const std::vector<array>& x) { return summed(Meaning.view(), x); };
    std::string name = "einsum " + std::string(Text.view());
    if constexpr (Operands == 1)
        return make_row<1, false>(std::move(name), [](auto a) { return einsum(Text.view(), a); }, {}, expected);
    else
        return make_row<2, false>(std::move(name), [](auto a, auto b) { return einsum(Text.view(), a, b); }, {}, expected);
}
} // namespace

// As for matrix products.
std::vector<row> einsum_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<extents>> shapes) {
        r.shapes = std::move(shapes);
        r.ulps = 32;
        r.floor = 4;
        r.why = "sums of products";
        rows.push_back(std::move(r));
    };
    put(einsum_row<"ij->ji", 1>(), {{{2, 3}}, {{0, 3}}});
    put(einsum_row<"ijk->j", 1>(), {{{2, 3, 5}}, {{2, 0, 5}}, {{2, 3, 0}}});
    put(einsum_row<"ij->", 1>(), {{{3, 7}}, {{0, 2}}});
    put(einsum_row<"ba", 1, "ba->ab">(), {{{2, 3}}});
    put(einsum_row<"ii->i", 1>(), {{{3, 3}}, {{1, 1}}, {{0, 0}}});
    put(einsum_row<"ii", 1, "ii->">(), {{{4, 4}}});
    put(einsum_row<"iji->ji", 1>(), {{{3, 2, 3}}});
    put(einsum_row<"iiji->j", 1>(), {{{2, 2, 3, 2}}});
    put(einsum_row<"...ij->...ji", 1, "abij->abji">(), {{{2, 3, 4, 5}}});
    put(einsum_row<"i...->...", 1, "iab->ab">(), {{{2, 3, 4}}});

    put(einsum_row<"ij,jk->ik", 2>(), {{{2, 3}, {3, 4}}, {{0, 3}, {3, 2}}, {{3, 0}, {0, 2}}, {{17, 29}, {29, 13}}});
    put(einsum_row<"ij,jk->ki", 2>(), {{{2, 3}, {3, 4}}});
    put(einsum_row<"ij,jk", 2, "ij,jk->ik">(), {{{2, 3}, {3, 4}}});
    put(einsum_row<"bij,bjk->bik", 2>(), {{{2, 3, 4}, {2, 4, 5}}, {{67, 3, 4}, {67, 4, 5}}, {{0, 3, 4}, {0, 4, 5}}});
    put(einsum_row<"bji,bjk->bik", 2>(), {{{2, 4, 3}, {2, 4, 5}}});
    put(einsum_row<"bij,bkj->bki", 2>(), {{{2, 3, 4}, {2, 5, 4}}});
    put(einsum_row<"bij,jk->bik", 2>(), {{{2, 3, 4}, {4, 5}}});
    put(einsum_row<"bihd,bjhd->bhij", 2>(), {{{2, 3, 2, 4}, {2, 5, 2, 4}}});
    put(einsum_row<"abc,cbd->ad", 2>(), {{{2, 3, 4}, {4, 3, 5}}});
    put(einsum_row<"abc,bcd->ad", 2>(), {{{2, 3, 4}, {3, 4, 5}}});
    put(einsum_row<"iab,jba->ji", 2>(), {{{2, 3, 4}, {5, 4, 3}}});
    put(einsum_row<"ij,ij->ij", 2>(), {{{2, 3}, {2, 3}}});
    put(einsum_row<"ij,ij->i", 2>(), {{{2, 3}, {2, 3}}, {{2, 0}, {2, 0}}});
    put(einsum_row<"ij,ji->", 2>(), {{{2, 3}, {3, 2}}});
    put(einsum_row<"i,j->ij", 2>(), {{{3}, {4}}});
    put(einsum_row<"i,j->ji", 2>(), {{{3}, {4}}});
    put(einsum_row<"i,i", 2, "i,i->">(), {{{7}, {7}}, {{0}, {0}}, {{513}, {513}}});
    put(einsum_row<"i,->i", 2>(), {{{3}, {}}});
    put(einsum_row<"ijx,yjk->ik", 2>(), {{{2, 3, 2}, {2, 3, 4}}}); // axes of one operand alone
    put(einsum_row<"iij,jk->ik", 2>(), {{{3, 3, 2}, {2, 4}}});
    put(einsum_row<"abcdefg,hg->abcdefh", 2>(), {{{1, 2, 1, 2, 1, 2, 3}, {2, 3}}});
    put(einsum_row<"...ij,...jk->...ik", 2, "abij,abjk->abik">(), {{{2, 3, 2, 4}, {2, 3, 4, 2}}});
    put(einsum_row<"i...,...j->...ij", 2, "iab,abj->abij">(), {{{2, 3, 2}, {3, 2, 4}}});
    // "..." broadcasts, as matmul's leading axes do.
    put(make_row<2, false>(
            "einsum, broadcast axes", [](auto a, auto b) { return einsum("...ij,...jk", a, b); }, {},
            [](const std::vector<array>& x) { return matmul(x[0], x[1]); }),
        {{{5, 1, 2, 3}, {1, 4, 3, 2}}, {{2, 3}, {4, 3, 2}}, {{2, 1, 2, 3}, {3, 3, 2}}});
    put(make_row<2, false>(
            "einsum, products of broadcast axes", [](auto a, auto b) { return einsum("...,i...->i...", a, b); }, {},
            [](const std::vector<array>& x) { return map(x, [](const real* v) { return v[0] * v[1]; }); }),
        {{{3, 1}, {2, 1, 4}}});

    put(make_row<2>(
            "tensordot 1", [](auto a, auto b) { return tensordot(a, b, 1); }, {},
            [](const std::vector<array>& x) { return summed("abc,cd->abd", x); }),
        {{{2, 3, 4}, {4, 5}}});
    put(make_row<2, false>(
            "tensordot 2", [](auto a, auto b) { return tensordot(a, b); }, {},
            [](const std::vector<array>& x) { return summed("abc,bcd->ad", x); }),
        {{{2, 3, 4}, {3, 4, 5}}});
    put(make_row<2, false>(
            "tensordot 0", [](auto a, auto b) { return tensordot(a, b, 0); }, {},
            [](const std::vector<array>& x) { return summed("ab,c->abc", x); }),
        {{{2, 3}, {4}}});
    put(make_row<2, false>(
            "tensordot axes", [](auto a, auto b) { return tensordot(a, b, {{1, 0}, {0, -1}}); }, {},
            [](const std::vector<array>& x) { return summed("abc,bda->cd", x); }),
        {{{2, 3, 4}, {3, 5, 2}}});
    put(make_row<2, false>(
            "dot", [](auto a, auto b) { return tapegraph::dot(a, b); }, {},
            [](const std::vector<array>& x) {
                return summed(x[0].dims.size() == 1 ? (x[1].dims.size() == 1 ? "a,a->" : "b,abc->ac")
                                                    : (x[1].dims.size() == 1 ? "ab,b->a" : "ab,cbd->acd"),
                              x);
            }),
        {{{3}, {3}}, {{3}, {2, 3, 4}}, {{2, 3}, {3}}, {{2, 3}, {4, 3, 5}}});
    put(make_row<2, false>(
            "inner", [](auto a, auto b) { return inner(a, b); }, {},
            [](const std::vector<array>& x) { return summed("ab,cdb->acd", x); }),
        {{{2, 3}, {4, 5, 3}}});
    put(make_row<2>(
            "outer", [](auto a, auto b) { return outer(a, b); }, {},
            [](const std::vector<array>& x) {
                return summed("a,b->ab", {array({x[0].size()}, x[0].values), array({x[1].size()}, x[1].values)});
            }),
        {{{3}, {4}}, {{2, 3}, {2}}, {{}, {3}}, {{0}, {3}}});
    put(make_row<2, false>(
            "vdot", [](auto a, auto b) { return vdot(a, b); }, {},
            [](const std::vector<array>& x) {
                return summed("a,a->", {array({x[0].size()}, x[0].values), array({x[1].size()}, x[1].values)});
            }),
        {{{2, 3}, {3, 2}}, {{5}, {5}}});
    return rows;
}

} // namespace tapegraph::testing
