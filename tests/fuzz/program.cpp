#include <fuzz/program.hpp>

#include <tapegraph/core/error.hpp>

#include <cstdlib>
#include <sstream>

namespace tapegraph::fuzz {

namespace {

// std::stod refuses numbers below the smallest normal one.
double number_of(const std::string& word) {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (end == word.c_str()) throw argument_error("'" + word + "' is not a number");
    return value;
}

template <class List, class Text>
std::string joined(const List& list, const Text& text) {
    std::string result;
    for (const auto& each : list) result += (result.empty() ? "" : ", ") + text(each);
    return result;
}

// The list between `open` and `close`, if the line holds one.
std::vector<std::string> between(std::string& line, char open, char close) {
    std::vector<std::string> result;
    const auto from = line.find(open), to = line.find(close);
    if (from == std::string::npos || to == std::string::npos) return result;
    std::istringstream parts(line.substr(from + 1, to - from - 1));
    line.erase(from, to - from + 1);
    for (std::string part; std::getline(parts, part, ',');) result.push_back(part);
    return result;
}

int value_number(const std::string& word) {
    if (word.size() < 2 || word[0] != 'v') throw argument_error("program text: expected a value, found '" + word + "'");
    return std::stoi(word.substr(1));
}

} // namespace

std::string to_text(const program& p) {
    std::string text;
    for (int i = 0; i < p.size(); ++i) {
        const instruction& c = p.code[static_cast<std::size_t>(i)];
        text += "v" + std::to_string(i) + (c.inner ? " ~= " : " = ") + c.op;
        for (int operand : c.operands) text += " v" + std::to_string(operand);
        if (!c.with.whole.empty())
            text += " (" + joined(c.with.whole, [](std::int64_t v) { return std::to_string(v); }) + ")";
        if (!c.with.real.empty()) text += " [" + joined(c.with.real, number_text) + "]";
        text += std::string(" : ") + name_of(c.type) + to_string(testing::shape_from(c.dims)) + "\n";
    }
    text += "outputs";
    for (int output : p.outputs) text += " v" + std::to_string(output);
    return text + "\n";
}

program from_text(const std::string& text) {
    program p;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        line = line.substr(0, line.find(':'));
        instruction c;
        for (const std::string& word : between(line, '(', ')')) c.with.whole.push_back(std::stoll(word));
        for (const std::string& word : between(line, '[', ']')) c.with.real.push_back(number_of(word));
        std::istringstream words(line);
        std::string first, sign, word;
        if (!(words >> first)) continue;
        if (first == "outputs") {
            while (words >> word) p.outputs.push_back(value_number(word));
            continue;
        }
        if (value_number(first) != p.size() || !(words >> sign >> c.op))
            throw argument_error("program text: cannot read '" + line + "'");
        c.inner = sign == "~=";
        while (words >> word) c.operands.push_back(value_number(word));
        for (int operand : c.operands)
            if (operand < 0 || operand >= p.size()) throw argument_error("program text: an operand does not precede");
        p.code.push_back(c);
    }
    for (int output : p.outputs)
        if (output < 0 || output >= p.size()) throw argument_error("program text: an output does not exist");
    return p;
}

} // namespace tapegraph::fuzz
