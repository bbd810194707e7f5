// The same of a function.
// expect: tg::traced needs #include <tapegraph/traced.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main(int argc, char**) {
    auto f = tg::function<tg::traced>([argc](auto x) { return x * argc; }, tg::spec<float, 2>{});
    return static_cast<int>(f(tg::ones<float>({2}))[0]);
}
