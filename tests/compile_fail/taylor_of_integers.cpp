// A polynomial of whole numbers.
// expect: tg::taylor has an order from 0 on, and plain numbers
// expect-elsewhere: a static_assert in the class
#include <tapegraph/real.hpp>

namespace tg = tapegraph;

int main() { return static_cast<int>(sizeof(tg::taylor<int, 3>)); }
