// C's headers bring std's functions into the global namespace. Called without std:: the library's are found all the same.
// expect-success
#include <tapegraph/tapegraph.hpp>

#include <math.h>
#include <stdlib.h>

using tapegraph::tensor;
using std::sqrt;

tensor<float> values(const tensor<float>& x) {
    return sqrt(x) + abs(x - 1) + pow(x, 2) + pow(2, x) + hypot(x, x) + floor(exp(x)) + float(fabs(-1.0)) + sqrt(4.0f);
}

int main() {
    const auto f = [](auto x) { return sum(sqrt(abs(x)) + pow(x, 2)); };
    auto compiled = tapegraph::function<tapegraph::graph>(f, tapegraph::spec<float, 3>{});
    return compiled(values(tensor<float>{1, 2, 3})).rank();
}
