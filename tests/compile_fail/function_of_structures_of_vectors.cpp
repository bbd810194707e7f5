// A structure of tensors.
// expect: a structure has specs of numbers, tg::spec<double>; std::arrays of these are its vectors
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

template <class Number>
struct spring {
    Number stiffness, length;
};
constexpr auto energy = [](const auto& s) { return sum(s.stiffness * s.length); };

int main() { auto f = tg::function<tg::graph>(energy, spring<tg::spec<double, 3>>{}); }
