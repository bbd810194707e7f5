// Graphs made at run time take tensors.
// expect: tg::function<tg::traced> takes tensors alone; structures of numbers are for graph and eager mode
#include <tapegraph/tapegraph.hpp>
#include <tapegraph/traced.hpp>

namespace tg = tapegraph;

template <class Number>
struct spring {
    Number stiffness, length;
};
constexpr auto energy = [](const auto& s) { return s.stiffness * s.length * s.length; };

int main() { auto f = tg::function<tg::traced>(energy, spring<tg::spec<double>>{}); }
