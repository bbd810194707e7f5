// Runs cases of operations that pytorch_operations.py writes: pytorch_operations IN OUT, or without arguments the names it knows.
//
// A case is a line "name dtype derivatives n whole... m real... operands cotangents" and, for each operand and each cotangent, a
// line "dtype rank extents..." followed by its bytes. The first cotangent is of the value; the others, of the operands, weigh
// the gradient, whose derivative is the second one ("none": this operand's part is left out). An answer is "ok n" and n such arrays, or "error what was said".
#define DOCTEST_CONFIG_IMPLEMENT // the precompiled header of the table has its beginning
#include <doctest/doctest.h>

#include "pytorch_operations/table.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>

namespace {

using namespace tapegraph::testing;
using tapegraph::any_tensor;
using tapegraph::dtype;
using tapegraph::tensor;

std::map<std::string, operation> operations() {
    std::map<std::string, operation> made;
    for (const auto& part : {unary_for_pytorch(), binary_for_pytorch(), reductions_for_pytorch(),
                             movement_for_pytorch(), products_for_pytorch()})
        for (const operation& each : part) made.emplace(each.name, each);
    return made;
}

constexpr std::pair<const char*, dtype> types[5]{
    {"f64", dtype::f64}, {"f32", dtype::f32}, {"i64", dtype::i64}, {"i32", dtype::i32}, {"bool", dtype::boolean}};

std::optional<any_tensor> read_array(std::istream& in) {
    std::string line, type;
    std::getline(in, line);
    std::istringstream words(line);
    std::size_t rank = 0;
    words >> type >> rank;
    if (type == "none") return {};
    std::vector<std::int64_t> dims(rank);
    for (auto& d : dims) words >> d;
    for (const auto& [name, each] : types) {
        if (type != name) continue;
        any_tensor made(each, shape_from(dims));
        in.read(static_cast<char*>(made.write()),
                static_cast<std::streamsize>(static_cast<std::size_t>(made.size()) * tapegraph::size_of(each)));
        return made;
    }
    throw std::runtime_error("no such type: " + line);
}

void write_array(std::ostream& out, const any_tensor& x) {
    for (const auto& [name, each] : types)
        if (x.type() == each) out << name;
    out << ' ' << x.rank();
    for (int i = 0; i < x.rank(); ++i) out << ' ' << x.shape().data()[i];
    out << '\n';
    out.write(static_cast<const char*>(x.read()),
              static_cast<std::streamsize>(static_cast<std::size_t>(x.size()) * tapegraph::size_of(x.type())));
}

struct test_case {
    any_tensor (*run)(const any_tensor*, const attributes&) = nullptr;
    attributes with;
    int derivatives = 0;
    std::vector<any_tensor> operands;
    std::vector<std::optional<any_tensor>> cotangents;
};

/// The value and, of the operands of type T, the gradient and the derivative of what the cotangents make of it.
template <class T>
std::vector<any_tensor> answer(test_case of) {
    const dtype type = tapegraph::dtype_of<T>;
    if (of.derivatives == 0) return {of.run(of.operands.data(), of.with)};
    std::vector<std::size_t> places;
    tapegraph::gradient_tape outer;
    std::vector<any_tensor> sources;
    for (std::size_t i = 0; i < of.operands.size(); ++i) {
        if (of.operands[i].type() != type) continue;
        tensor<T> watched(of.operands[i]);
        outer.watch(watched);
        of.operands[i] = watched;
        sources.push_back(watched);
    }
    std::vector<any_tensor> result, first;
    const auto weigh = [](const any_tensor& x, const any_tensor& by) {
        if (x.shape() != by.shape())
            throw tapegraph::shape_error("the value has shape " + tapegraph::to_string(x.shape()));
        return tapegraph::eval(sum(tensor<T>(x) * tensor<T>(by)));
    };
    {
        tapegraph::gradient_tape inner;
        result.push_back(of.run(of.operands.data(), of.with));
        if (result[0].type() != type) return result;
        first = inner.gradient(weigh(result[0], *of.cotangents[0]), sources);
    }
    result.insert(result.end(), first.begin(), first.end());
    if (of.derivatives == 1) return result;
    tensor<T> total = tapegraph::eval(sum(tensor<T>(*of.cotangents[0]) * T(0)));
    for (std::size_t k = 0; k < first.size(); ++k)
        if (of.cotangents[1 + k]) total = tapegraph::eval(total + weigh(first[k], *of.cotangents[1 + k]));
    for (const any_tensor& each : outer.gradient(total, sources)) result.push_back(each);
    return result;
}

void run(std::istream& in, std::ostream& out) {
    const std::map<std::string, operation> known = operations();
    for (std::string name, line; std::getline(in, name) && std::getline(in, line);) {
        std::istringstream words(line);
        test_case of;
        std::string type, number;
        std::size_t count = 0, operands = 0, cotangents = 0;
        words >> type >> of.derivatives >> count;
        for (std::int64_t word = 0; count > 0 && words >> word; --count) of.with.whole.push_back(word);
        words >> count;
        for (; count > 0 && words >> number; --count) of.with.real.push_back(std::strtod(number.c_str(), nullptr));
        words >> operands >> cotangents;
        for (; operands > 0; --operands) of.operands.push_back(read_array(in).value());
        for (; cotangents > 0; --cotangents) of.cotangents.push_back(read_array(in));
        try {
            const operation& found = known.at(name);
            of.run = type == "f64" || found.eager_float == nullptr ? found.eager : found.eager_float;
            const auto made = type == "f64" ? answer<double>(of) : answer<float>(of);
            out << "ok " << made.size() << '\n';
            for (const any_tensor& each : made) write_array(out, each);
        } catch (const std::exception& failure) {
            std::string text = failure.what();
            for (char& c : text)
                if (c == '\n') c = ' ';
            out << "error " << text << '\n';
        }
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 1) {
        for (const auto& [name, each] : operations()) std::cout << name << '\n';
        return 0;
    }
    if (argc != 3) return 2;
    std::ifstream in(argv[1], std::ios::binary);
    std::ofstream out(argv[2], std::ios::binary);
    run(in, out);
    return out.flush() ? 0 : 1;
}
