#include <tapegraph/ops/operation_list.hpp>
#include <tapegraph/traced.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace instructions_test {

namespace tg = tapegraph;

/// Elementwise operations of run-time graphs: each is a compiled region of one instruction, and must give what its operation's
/// definition gives.

namespace {

/// Values at which functions bend, end or overflow, and ordinary ones between.
template <class T>
std::vector<T> values(std::uint64_t seed) {
    std::vector<T> all{T(0),
                       T(-0.0),
                       T(1),
                       T(-1),
                       T(0.5),
                       T(-0.5),
                       T(2),
                       T(3),
                       T(88.9),
                       T(-104),
                       T(709.9),
                       T(-746),
                       std::numeric_limits<T>::infinity(),
                       -std::numeric_limits<T>::infinity(),
                       std::numeric_limits<T>::denorm_min(),
                       std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::quiet_NaN()};
    for (std::uint64_t i = 0; all.size() < 1031; ++i) // a prime, more than the registers hold at once
        all.push_back(8 * tg::random::uniform_at<T>(seed, 0, 5, i) - 4);
    return all;
}

template <class T>
void check(const tg::ir::operation& op, int& checked) {
    const tg::ir::registered_kernel* const known = tg::ir::kernel_registry::instance().find(&op, tg::dtype_of<T>);
    REQUIRE_MESSAGE(known != nullptr, op.name);
    REQUIRE_MESSAGE((known->instruction != nullptr), op.name);
    const auto size = static_cast<std::int64_t>(values<T>(0).size());
    std::vector<T> numbers[4];
    std::vector<std::uint8_t> conditions(static_cast<std::size_t>(size));
    const void* in[4]{};
    for (int k = 0; k < op.arity; ++k) {
        numbers[k] = values<T>(static_cast<std::uint64_t>(k) + 1);
        if (k > 0) std::rotate(numbers[k].begin(), numbers[k].begin() + 7 * k, numbers[k].end());
        in[k] = numbers[k].data();
    }
    for (std::size_t i = 0; i < conditions.size(); ++i) conditions[i] = i % 3 == 0;
    for (int k = 0; k < op.conditions; ++k) in[k] = conditions.data();
    std::vector<std::byte> expected(static_cast<std::size_t>(size) * 8), found(expected.size());
    REQUIRE_MESSAGE(op.evaluate(tg::dtype_of<T>, in, expected.data(), size), op.name);
    tg::cpu::tile t{};
    for (int k = 0; k < op.arity; ++k) t.in[k] = in[k];
    t.out[0] = found.data();
    t.count = size;
    known->instruction(t);
    const tg::dtype result = op.result_type(tg::dtype_of<T>);
    const auto bytes = static_cast<std::size_t>(size) * tg::size_of(result);
    if (result == tg::dtype_of<T>) { // which NaN an instruction gives is the processor's and the compiler's affair
        for (std::int64_t i = 0; i < size; ++i)
            for (auto* const each : {&expected, &found}) {
                T& value = reinterpret_cast<T*>(each->data())[i];
                if (std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
            }
    }
    const std::string what = std::string(op.name) + " of " + tg::name_of(tg::dtype_of<T>);
    CHECK_MESSAGE(std::memcmp(expected.data(), found.data(), bytes) == 0, what);
    ++checked;
}

template <class Op>
void check_floating(int& checked) {
    check<float>(tg::ir::descriptor_of<Op>, checked);
    check<double>(tg::ir::descriptor_of<Op>, checked);
}

} // namespace

TEST_CASE("run-time graphs: every elementwise instruction gives the value of its operation") {
    using namespace tg;
    int checked = 0;
#define TG_CHECK(...) check_floating<__VA_ARGS__>(checked);
    TG_ELEMENTWISE_OPERATIONS(TG_CHECK)
#undef TG_CHECK
    check_floating<is_nan_op>(checked);
    check_floating<is_inf_op>(checked);
    check_floating<is_finite_op>(checked);
    CHECK(checked > 130);
}

} // namespace instructions_test
