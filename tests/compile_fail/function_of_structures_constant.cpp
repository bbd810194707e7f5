// A member that is no number of the structure's type: a compiled function would not see its value.
// expect: a structure of numbers has members of its type argument, std::arrays and structures of these, and nothing else: make constants static
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

template <class Number>
struct spring {
    Number stiffness, length;
    int turns = 3;
};
constexpr auto energy = [](const auto& s) { return s.stiffness * s.length * s.length; };

int main() { auto f = tg::function<tg::graph>(energy, spring<tg::spec<double>>{}); }
