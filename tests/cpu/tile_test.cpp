#include <tapegraph/cpu/region.hpp>
#include <tapegraph/ops/ops.hpp>

#include <support/settings_guard.hpp>

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace tile_test {

/// Ends of tiles, which fill no vector: the bits of whole vectors, nothing read or written past them.

namespace {

using namespace tapegraph;

[[maybe_unused]] constexpr dtype f32 = dtype::f32, f64 = dtype::f64, f16 = dtype::f16, i32 = dtype::i32,
                                 truth = dtype::boolean;

// Memory whose last byte stands before a page that nobody may touch.
class guarded_bytes {
public:
    guarded_bytes()
        : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
          pages_(::mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        REQUIRE(pages_ != MAP_FAILED);
        REQUIRE(::mprotect(static_cast<std::byte*>(pages_) + page_, page_, PROT_NONE) == 0);
    }
    guarded_bytes(const guarded_bytes&) = delete;
    guarded_bytes& operator=(const guarded_bytes&) = delete;
    ~guarded_bytes() { ::munmap(pages_, 2 * page_); }
    /// The last `bytes` of it.
    std::byte* last(std::size_t bytes) const { return static_cast<std::byte*>(pages_) + page_ - bytes; }

private:
    std::size_t page_;
    void* pages_;
};

constexpr std::int64_t most = 192; // whole vectors of every type

// Numbers of a type from 0.3 on; integers from 1 on, conditions in turns.
std::vector<std::byte> numbers(dtype type, int which) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(most) * size_of(type));
    for (std::int64_t i = 0; i < most; ++i) {
        const double value = 0.3 + 0.01 * static_cast<double>((i * 7 + which * 31) % 97);
        std::byte* const at = bytes.data() + static_cast<std::size_t>(i) * size_of(type);
        const auto put = [&](auto x) { std::memcpy(at, &x, sizeof x); };
        switch (type) {
        case f64: put(value); break;
        case f32: put(static_cast<float>(value)); break;
        case f16: put(half(static_cast<float>(value))); break;
        case i32: put(static_cast<std::int32_t>(i % 5 + 1)); break;
        default: put(static_cast<std::uint8_t>(i % 3 == 0));
        }
    }
    return bytes;
}

// `made` are the results' types, `in_place` the operand that the first of them lies in, or -1.
template <dtype... Slots, class Results, class... Instructions>
void check_ends(region<slots<Slots...>, Results, Instructions...>, cpu::tile_function evaluate,
                const std::vector<dtype>& made, int in_place = -1) {
    const std::vector<dtype> types{Slots...};
    const auto count_in = types.size(), count_out = made.size();
    std::vector<std::vector<std::byte>> in, whole;
    cpu::tile t;
    t.count = most;
    for (std::size_t s = 0; s < count_in; ++s) t.in[s] = in.emplace_back(numbers(types[s], static_cast<int>(s))).data();
    for (std::size_t k = 0; k < count_out; ++k)
        t.out[k] = whole.emplace_back(static_cast<std::size_t>(most) * size_of(made[k])).data();
    evaluate(t);

    std::vector<guarded_bytes> operands(count_in), results(count_out);
    for (std::int64_t n = 0; n < most; ++n) {
        const auto bytes = [&](dtype type) { return static_cast<std::size_t>(n) * size_of(type); };
        t.count = n;
        for (std::size_t s = 0; s < count_in; ++s) {
            std::byte* const at = operands[s].last(bytes(types[s]));
            std::copy_n(in[s].data(), bytes(types[s]), at);
            t.in[s] = at;
        }
        for (std::size_t k = 0; k < count_out; ++k) t.out[k] = results[k].last(bytes(made[k]));
        if (in_place >= 0) t.out[0] = const_cast<void*>(t.in[in_place]);
        evaluate(t);
        for (std::size_t k = 0; k < count_out; ++k)
            CHECK_MESSAGE(std::memcmp(t.out[k], whole[k].data(), bytes(made[k])) == 0, n);
    }
}

// A gate of a recurrent layer and its gradient: both results of each element at once.
using gate =
    region<slots<f64, f64, f64>, results<4, 7>, instruction<multiply_op, f64, 0, 1>, instruction<tanh_op, f64, 3>,
           instruction<square_op, f64, 4>, instruction<sigmoid_op, f64, 2>, instruction<multiply_op, f64, 5, 6>>;
using gate_in_float =
    region<slots<f32, f32, f32>, results<4, 7>, instruction<multiply_op, f32, 0, 1>, instruction<tanh_op, f32, 3>,
           instruction<square_op, f32, 4>, instruction<sigmoid_op, f32, 2>, instruction<multiply_op, f32, 5, 6>>;
// Words of one byte beside those of four and eight, stored halves, and integers, which may not be divided by what is not there.
using chosen = region<slots<truth, f32, f64>, results<5, 4>, instruction<exp_op, f32, 1>, instruction<exp_op, f64, 2>,
                      instruction<where_op, f32, 0, 3, 1>>;
using halves = region<slots<f16, f16>, results<3>, instruction<exp_op, f16, 0>, instruction<multiply_op, f16, 1, 2>>;
using divided =
    region<slots<i32, i32, f32>, results<3, 4>, instruction<floor_divide_op, i32, 0, 1>, instruction<log_op, f32, 2>>;
// The loss and the accuracy of logits, from labels, 0 and 0.5: comparisons for one of several results.
using judged = region<slots<f32, f32, f32, f32>, results<4, 8>, instruction<sigmoid_cross_entropy_op, f32, 0, 1>,
                      instruction<greater_op, truth, 0, 2>, instruction<greater_op, truth, 1, 3>,
                      instruction<equal_op, truth, 5, 6>, instruction<cast_op<float>, f32, 7>>;
// Short: left to the compiler's loops.
using sum = region<slots<f64, f64>, results<2>, instruction<add_op, f64, 0, 1>>;

template <class Region>
constexpr bool by_whole_vectors = cpu::in_whole_vectors<cpu::region_body<Region>>::template lanes<cpu::avx512> > 1;
static_assert(by_whole_vectors<gate> && by_whole_vectors<gate_in_float> && by_whole_vectors<chosen> &&
              by_whole_vectors<halves> && by_whole_vectors<divided> && !by_whole_vectors<sum>);

} // namespace

TEST_CASE("ends of tiles have the bits of whole vectors, and touch nothing past them") {
    const support::settings_guard guard;
    for (const auto set : {cpu::instruction_set::avx512, cpu::instruction_set::avx2, cpu::instruction_set::baseline}) {
        CAPTURE(static_cast<int>(set));
        cpu::set_instruction_set(set);
        check_ends(gate{}, &cpu::evaluate_tile<gate>, {f64, f64});
        check_ends(gate{}, &cpu::evaluate_merged_tile<gate>, {f64, f64});
        check_ends(gate{}, &cpu::evaluate_merged_tile<gate>, {f64, f64}, 1);
        check_ends(gate_in_float{}, &cpu::evaluate_merged_tile<gate_in_float>, {f32, f32}, 0);
        check_ends(judged{}, &cpu::evaluate_merged_tile<judged>, {f32, f32});
        check_ends(judged{}, &cpu::evaluate_merged_tile<judged>, {f32, f32}, 0);
        check_ends(judged{}, &cpu::evaluate_merged_tile<judged>, {f32, f32}, 1);
        check_ends(chosen{}, &cpu::evaluate_tile<chosen>, {f32, f64});
        check_ends(chosen{}, &cpu::evaluate_merged_tile<chosen>, {f32, f64});
        check_ends(chosen{}, &cpu::evaluate_merged_tile<chosen>, {f32, f64}, 1);
        check_ends(halves{}, &cpu::evaluate_tile<halves>, {f16}, 0);
        check_ends(divided{}, &cpu::evaluate_tile<divided>, {i32, f32});
        check_ends(sum{}, &cpu::evaluate_tile<sum>, {f64}, 1);
    }
}

// Results that lie apart from the operands are computed one after the other. Where one overwrites
// an operand, that would change the next.
TEST_CASE("comparisons for several results: the same bits wherever the results lie") {
    const support::settings_guard guard;
    constexpr std::int64_t count = 67;
    for (const auto set : {cpu::instruction_set::avx512, cpu::instruction_set::avx2, cpu::instruction_set::baseline}) {
        CAPTURE(static_cast<int>(set));
        cpu::set_instruction_set(set);
        std::vector<float> x(count), z(count), zero(count, 0), half(count, 0.5f), hits(count);
        for (std::int64_t i = 0; i < count; ++i) {
            x[static_cast<std::size_t>(i)] = static_cast<float>((i * 7) % 13 - 6) / 3;
            z[static_cast<std::size_t>(i)] = static_cast<float>(i % 3 == 0);
        }
        std::vector<float> loss(count), right(count);
        cpu::tile t{{x.data(), z.data(), zero.data(), half.data()}, {loss.data(), right.data()}, count, nullptr};
        cpu::evaluate_tile<judged>(t);
        for (std::size_t i = 0; i < count; ++i) CHECK(right[i] == static_cast<float>((x[i] > 0) == (z[i] > 0.5f)));
        std::vector<float> apart(count), in_place = x;
        t.out[0] = apart.data(), t.out[1] = hits.data();
        cpu::evaluate_merged_tile<judged>(t);
        CHECK(apart == loss);
        CHECK(hits == right);
        t.in[0] = t.out[0] = in_place.data();
        cpu::evaluate_merged_tile<judged>(t);
        CHECK(in_place == loss);
        CHECK(hits == right);
        in_place = x;
        t.in[0] = in_place.data(), t.out[0] = apart.data(), t.out[1] = in_place.data();
        cpu::evaluate_merged_tile<judged>(t);
        CHECK(apart == loss);
        CHECK(in_place == right);
    }
}

TEST_CASE("ends of tiles: an unused result") {
    std::vector<double> a(13, 0.5), b(13, 2), wanted(13, -1);
    cpu::tile t{{a.data(), b.data(), b.data()}, {nullptr, wanted.data()}, 13, nullptr};
    cpu::evaluate_tile<gate>(t);
    CHECK(wanted[12] == wanted[0]);
    CHECK(wanted[12] == doctest::Approx(std::tanh(1.0) * std::tanh(1.0) / (1 + std::exp(-2.0))));
}

} // namespace tile_test
