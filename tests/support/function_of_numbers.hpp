#pragma once

#include <tuple>
#include <type_traits>
#include <vector>

namespace support {

template <class Number>
using one_number = Number;
template <class Number>
using many_numbers = std::vector<Number>;

/// A function of a vector of any of these numbers, as the addresses of its code for each, so that a test of many
/// functions compiles what it does with them once. A function without state is converted to it.
template <template <class> class Result, class... Numbers>
class function_of_numbers {
public:
    template <class F>
    function_of_numbers(const F&) : calls_(called<F, Numbers>...) {
        static_assert(std::is_empty_v<F>);
    }
    template <class V>
    auto operator()(const V& v) const -> Result<std::remove_cvref_t<decltype(v[0])>> { // named: not all are run
        using number = std::remove_cvref_t<decltype(v[0])>;
        return std::get<call<number>>(calls_)(std::vector<number>(v.begin(), v.end()));
    }

private:
    template <class Number>
    using call = Result<Number> (*)(const std::vector<Number>&);
    template <class F, class Number>
    static Result<Number> called(const std::vector<Number>& v) {
        return F{}(v);
    }
    std::tuple<call<Numbers>...> calls_;
};

} // namespace support
