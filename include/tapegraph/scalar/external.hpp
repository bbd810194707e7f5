#pragma once

#include <tapegraph/scalar/number.hpp>
#include <tapegraph/scalar/sweep.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

/// Functions on a tape whose derivatives the tape does not see.

namespace tapegraph::scalars {

/// A call of such a function: where it is, its operands, its results.
template <class T>
struct external_call {
    tape_end at;
    std::vector<std::uint32_t> inputs, results; ///< statements

    virtual ~external_call() = default;
    virtual void pull(std::span<const T> results, std::span<T> inputs) = 0;

    void run(T* adjoints) {
        carry([&](std::uint32_t statement) -> T& { return adjoints[statement]; });
    }
    template <int N>
    void run(adjoint_pack<T, N>* adjoints) {
        for (int lane = 0; lane < N; ++lane) {
            using lanes = T*; // elements of a pack cannot be bound to a reference
            carry([&](std::uint32_t statement) -> T& { return reinterpret_cast<lanes>(adjoints + statement)[lane]; });
        }
    }

private:
    template <class At>
    void carry(const At& at_statement) {
        std::vector<T> of_results, of_inputs(inputs.size(), T(0));
        of_results.reserve(results.size());
        bool zero = true;
        for (std::uint32_t statement : results) {
            of_results.push_back(at_statement(statement));
            zero &= is_zero(of_results.back());
        }
        if (zero) return;
        pull(of_results, of_inputs);
        for (std::size_t i = 0; i < inputs.size(); ++i)
            if (inputs[i] != 0) at_statement(inputs[i]) += of_inputs[i];
    }
};

template <class T, class Pull>
struct external_of final : external_call<T> {
    Pull function;
    explicit external_of(Pull f) : function(std::move(f)) {}
    void pull(std::span<const T> of_results, std::span<T> of_inputs) override { function(of_results, of_inputs); }
};

/// A statement whose derivatives are given.
template <class T>
struct known_statement {
    std::span<const real<T>> numbers;
    std::span<const T> slopes;
    bool on_a_tape() const {
        for (const auto& x : numbers)
            if (x.on_a_tape()) return true;
        return false;
    }
    template <class Writer>
    void write(Writer& writer, const T&) const {
        for (std::size_t i = 0; i < numbers.size(); ++i) writer(numbers[i].place, slopes[i]);
    }
};

} // namespace tapegraph::scalars
