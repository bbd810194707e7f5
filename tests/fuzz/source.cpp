#include <fuzz/source.hpp>

#include <fuzz/check.hpp>
#include <fuzz/generator.hpp>

#include <algorithm>

namespace tapegraph::fuzz {

namespace {

std::string value(int i) { return "v" + std::to_string(i); }

std::vector<int> leaves(const program& p) {
    std::vector<int> result;
    for (int i = 0; i < p.size(); ++i)
        if (p.code[static_cast<std::size_t>(i)].leaf()) result.push_back(i);
    return result;
}

bool real_leaf(const instruction& c) { return c.op == "input" || c.op == "constant"; }

template <class List, class Text>
std::string joined(const List& list, const Text& text) {
    std::string result;
    for (const auto& each : list) result += (result.empty() ? "" : ", ") + text(each);
    return result;
}

std::string parameters(const std::vector<int>& values) {
    return joined(values, [](int i) { return "[[maybe_unused]] const auto& " + value(i); });
}

std::int64_t batch_of(const program& p) {
    for (const instruction& c : p.code)
        if (c.op == "input" && !c.dims.empty()) return c.dims[0];
    return -1;
}

} // namespace

namespace {

int occurrences(const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

// Whether value i may stand in its reader's operands instead of having a name: where nothing else reads it.
bool read_once(const program& p, int i) {
    auto readers = std::count(p.outputs.begin(), p.outputs.end(), i);
    for (const instruction& c : p.code) readers += std::count(c.operands.begin(), c.operands.end(), i);
    return readers == 1;
}

} // namespace

std::string to_structure(const program& p, const std::string& name) {
    std::string text = "template <bool Sealed>\nstruct " + name + " {\n    constexpr auto operator()(" +
                       parameters(leaves(p)) + ") const {\n";
    // The value before, if it may be an operand as it is. One such operand: of two, C++ chooses which comes first.
    int before = -1;
    std::string spelled;
    const auto give_name = [&](int i, const std::string& what) {
        text += "        [[maybe_unused]] const auto " + value(i) + " = " + what + ";\n";
    };
    for (int i = 0; i < p.size(); ++i) {
        const instruction& c = p.code[static_cast<std::size_t>(i)];
        if (c.leaf()) continue;
        std::vector<std::string> x;
        for (const int operand : c.operands) x.push_back(operand == before ? "BEFORE" : value(operand));
        std::string source = operation_named(c.op).source(x, c.with);
        if (occurrences(source, "BEFORE") == 1) {
            source.replace(source.find("BEFORE"), 6, spelled);
        } else if (before >= 0) {
            give_name(before, spelled);
            for (std::string& each : x)
                if (each == "BEFORE") each = value(before);
            source = operation_named(c.op).source(x, c.with);
        }
        before = -1;
        spelled = (c.inner ? "inner<Sealed>(" : "tg::eval(") + source + ")";
        if (i % 2 == 0 && read_once(p, i) && std::count(p.outputs.begin(), p.outputs.end(), i) == 0)
            before = i;
        else
            give_name(i, spelled);
    }
    if (before >= 0) give_name(before, spelled);
    return text + "        return std::tuple{" + joined(p.outputs, value) + "};\n    }\n};\n";
}

std::string specs_of(const program& p, bool batch) {
    const std::int64_t first = batch_of(p);
    return joined(leaves(p), [&](int i) {
        const instruction& c = p.code[static_cast<std::size_t>(i)];
        std::string text = std::string("tg::spec<") + (real_leaf(c)        ? "element"
                                                       : c.op == "indices" ? "std::int32_t"
                                                                           : "bool");
        for (std::size_t k = 0; k < c.dims.size(); ++k)
            text += k == 0 && batch && c.dims[0] == first ? ", tg::dyn" : ", " + std::to_string(c.dims[k]);
        return text + ">{}";
    });
}

std::string values_of(const program& p) {
    return joined(leaves(p), [&](int i) {
        const instruction& c = p.code[static_cast<std::size_t>(i)];
        if (c.op == "constant") return "tg::tensor<element>(" + number_text(c.with.real[0]) + ")";
        const std::string seed = std::to_string(c.with.whole[0]) + ", ";
        if (c.op == "input")
            return "drawn_reals<element>(" + seed + braces(c.dims) + ", " + number_text(c.with.real[0]) + ", " +
                   number_text(c.with.real[1]) + ")";
        if (c.op == "indices")
            return "drawn_indices(" + seed + braces(c.dims) + ", " + std::to_string(c.with.whole[1]) + ")";
        return "drawn_conditions(" + seed + braces(c.dims) + ")";
    });
}

namespace {

std::string loss_structure(const program& p, const std::string& name) {
    std::string terms;
    for (std::size_t k = 0; k < p.outputs.size(); ++k) {
        if (p.code[static_cast<std::size_t>(p.outputs[k])].type != dtype::f64) continue;
        const std::string part = "tg::eval(sum(square(std::get<" + std::to_string(k) + ">(y))))";
        terms = terms.empty() ? part : "tg::eval(" + terms + " * 0.5 + " + part + ")";
    }
    std::vector<int> reals;
    for (const int i : leaves(p))
        if (real_leaf(p.code[static_cast<std::size_t>(i)])) reals.push_back(i);
    const std::string all = parameters(leaves(p)), call = joined(leaves(p), value);
    if (terms.empty() || reals.empty()) return "using whole = " + name + "<false>;\n";
    return "struct whole {\n    constexpr auto operator()(" + all + ") const {\n        const auto loss = [&](" +
           parameters(reals) + ") {\n            const auto y = " + name + "<false>{}(" + call +
           ");\n            return " + terms + ";\n        };\n        return std::tuple_cat(" + name + "<false>{}(" +
           call + "), std::tuple{tg::value_and_gradient(loss)(" + joined(reals, value) + ")});\n    }\n};\n";
}

bool batch_may_vary(const program& p) try {
    program copy = p;
    const std::vector<any_tensor> at = leaves_of(copy);
    const std::vector<any_tensor> values = run_eagerly(copy, at, true);
    ir::trace t;
    trace_program(t, copy, at, loss_of(copy, values), {.grouped = true, .symbolic = true});
    return batch_of(p) > 1 && t.error.what == nullptr && !t.extents.atoms.empty();
} catch (const error&) { // a program found because it throws
    return false;
}

} // namespace

std::string to_test_case(const program& p, std::uint64_t seed, const std::string& what) {
    const std::string name = "program_" + std::to_string(seed);
    std::string text = "namespace " + name + " {\n" + "using element = double;\n" + to_structure(p, "program") +
                       loss_structure(p, "program") + "} // namespace " + name + "\n";
    text += "TEST_CASE(\"fuzz: seed " + std::to_string(seed) + (what.empty() ? "" : ", " + what) + "\") {\n    using " +
            name + "::element;\n    check_compiled<" + name + "::whole, " + name + "::program>(std::tuple{" +
            specs_of(p, batch_may_vary(p)) + "},\n        " + values_of(p) + ");\n}\n";
    return text;
}

std::string to_source(std::uint64_t first_seed, int count) {
    std::string text = "// Generated by the fuzzer: seeds from " + std::to_string(first_seed) + ", " +
                       std::to_string(count) + " programs.\n#include <fuzz/compiled.hpp>\n\n" +
                       "using namespace tapegraph::fuzz; // what the sources below call\n\n";
    std::uint64_t seed = first_seed;
    for (int made = 0; made < count; ++seed) {
        const program p = generate(seed, {.most_instructions = 7, .most_elements = 300});
        const auto formulas =
            std::count_if(p.code.begin(), p.code.end(), [](const instruction& c) { return !c.leaf(); });
        if (formulas < 4) continue;
        std::string one = to_test_case(p, seed, "");
        if (made % 2 == 1) one.replace(one.find("using element = double"), 22, "using element = float");
        text += "/*\n" + to_text(p) + "*/\n" + one + "\n";
        ++made;
    }
    return text;
}

} // namespace tapegraph::fuzz
