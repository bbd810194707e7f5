#include <operations/formula.hpp>

#include <cctype>

namespace tapegraph::testing {

shape_list unary_shapes() {
    return {{{}}, {{1}}, {{7}}, {{0}}, {{2, 0, 3}}, {{3, 5, 7}}, {{513}}, {{1, 2, 1, 2, 1, 2, 1, 3}}, {{32771}}};
}

shape_list binary_shapes() {
    shape_list shapes{{{3, 1}, {1, 4}},
                      {{2, 3, 5}, {3, 1}},
                      {{3, 1}, {2, 3, 5}},
                      {{2, 1, 5}, {1, 3, 1}},
                      {{1}, {7}},
                      {{1, 1, 3}, {2, 1, 1}},
                      {{0}, {1}},
                      {{2, 0}, {1, 1}},
                      {{3, 1}, {1, 0}},
                      {{513}, {513}},
                      {{700, 3}, {3}},
                      {{33, 1021}, {1021}},
                      {{33, 1}, {33, 1021}},
                      {{181, 1}, {1, 191}},
                      {{}, {32771}},
                      {{2, 1, 2, 1, 2, 1, 2, 1}, {1, 2, 1, 2, 1, 2, 1, 2}}};
    const extents whole{2, 3, 2, 5};
    for (std::ptrdiff_t a = 0; a <= 4; ++a) // every pair of ranks
        for (std::ptrdiff_t b = 0; b <= 4; ++b)
            shapes.push_back({extents(whole.end() - a, whole.end()), extents(whole.end() - b, whole.end())});
    return shapes;
}

operation formula_of(operation made, const char* text, std::vector<domain> domains,
                     std::function<real(const real*, real k)> reference) {
    for (std::size_t k = 0; k < domains.size(); ++k) made.domains[k] = domains[k];
    made.formula = true;
    made.takes_formula = names_operands_once(text);
    made.source = [text](const std::vector<std::string>& x, const attributes& with) {
        return formula_source(text, x, with);
    };
    // The number k: identities (0, 1, -1) often, for simplification to act on.
    if (made.source({"x", "y", "z"}, {{}, {0.125}}).find("0.125") != std::string::npos)
        made.draw = [](choices& random, const std::vector<extents>&, attributes& with) {
            with.real = {random.pick(std::vector<double>{1, -1, 2, 0.5, -0.75, 1.3, 0})};
            return true;
        };
    if (reference)
        made.reference = [reference](const std::vector<array>& x, const attributes& with) {
            const real k = with.real.empty() ? 0 : static_cast<real>(with.real[0]);
            return map(x, [&](const real* v) { return reference(v, k); });
        };
    for (row& r : made.rows) {
        r.elementwise = true;
        if (r.shapes.empty()) r.shapes = made.types.size() == 1 ? unary_shapes() : binary_shapes();
    }
    return made;
}

namespace {

/// Calls f(word) for the words of a text and what lies between them.
template <class F>
void each_word(const std::string& text, const F& f) {
    const auto in_word = [&](std::size_t at) {
        return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
    };
    for (std::size_t i = 0, end = 0; i < text.size(); i = end) {
        end = i + 1;
        while (in_word(i) && in_word(end)) ++end;
        f(text.substr(i, end - i));
    }
}

std::size_t operand_of(const std::string& word) { return word == "x" ? 0 : word == "y" ? 1 : word == "z" ? 2 : 3; }

} // namespace

bool names_operands_once(const std::string& text) {
    int uses[4]{};
    each_word(text, [&](const std::string& word) { ++uses[operand_of(word)]; });
    return uses[0] <= 1 && uses[1] <= 1 && uses[2] <= 1;
}

std::string formula_source(const std::string& text, const std::vector<std::string>& x, const attributes& with) {
    std::string result;
    each_word(text, [&](const std::string& word) {
        if (operand_of(word) < x.size()) {
            result += x[operand_of(word)];
        } else if (word == "k") {
            const std::string number = number_text(with.real.empty() ? 0.0 : with.real[0]);
            result += number[0] == '-' ? "(" + number + ")" : number;
        } else {
            result += word;
        }
    });
    return result;
}

} // namespace tapegraph::testing
