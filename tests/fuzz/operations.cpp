#include <fuzz/operations.hpp>

#include <tapegraph/core/error.hpp>

#include <cctype>

namespace tapegraph::fuzz {

namespace {

std::vector<operation>& table() {
    static std::vector<operation> rows = [] {
        std::vector<operation> all;
        for (const auto& part : {formula_operations(), function_operations(), reduction_operations(),
                                 contraction_operations(), movement_operations(), repetition_operations(),
                                 index_operations(), window_operations(), constant_operations()})
            all.insert(all.end(), part.begin(), part.end());
        for (const operation& row : all)
            if (row.domains.size() != row.types.size())
                throw argument_error("row '" + row.name + "' has not one domain per operand");
        return all;
    }();
    return rows;
}

} // namespace

const std::vector<operation>& all_operations() { return table(); }

void add_operation(const operation& row) {
    for (operation& existing : table())
        if (existing.name == row.name) {
            existing = row;
            return;
        }
    table().push_back(row);
}

const operation& operation_named(const std::string& name) {
    for (const operation& row : table())
        if (row.name == name) return row;
    throw argument_error("no row of the fuzzer's table is named '" + name + "'");
}

std::string braces(const std::vector<std::int64_t>& values) {
    std::string text;
    for (const std::int64_t v : values) text += (text.empty() ? "" : ", ") + std::to_string(v);
    return "{" + text + "}";
}

namespace {

/// Calls f(word, is_word) for the words of a text and what lies between them.
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

} // namespace tapegraph::fuzz
