#include <fuzz/kernels.hpp>

#include <tapegraph/graph/library_kernels.hpp>

#include <string>
#include <vector>

namespace tapegraph::fuzz {

runtime::kernel_pair kernel_of(const ir::operation& op, dtype first_operand) {
    const ir::registered_kernel* const known = ir::kernel_registry::instance().find(&op, first_operand);
    if (known == nullptr || known->kernel.run == nullptr)
        throw argument_error("ops/operation_list.hpp lacks " + std::string(op.name) + " of " +
                             name_of(first_operand));
    return known->kernel;
}

namespace {

double element(const void* data, dtype type, std::int64_t i) {
    switch (type) {
    case dtype::boolean: return static_cast<const bool*>(data)[i] ? 1 : 0;
    case dtype::i32: return static_cast<const std::int32_t*>(data)[i];
    case dtype::i64: return static_cast<double>(static_cast<const std::int64_t*>(data)[i]);
    case dtype::u8: return static_cast<const std::uint8_t*>(data)[i];
    default: throw dtype_error("the fuzzer has no way through elementwise operations of this type");
    }
}
void store(void* data, dtype type, std::int64_t i, double value) {
    switch (type) {
    case dtype::boolean: static_cast<bool*>(data)[i] = value != 0; break;
    case dtype::i32: static_cast<std::int32_t*>(data)[i] = static_cast<std::int32_t>(value); break;
    case dtype::i64: static_cast<std::int64_t*>(data)[i] = static_cast<std::int64_t>(value); break;
    case dtype::u8: static_cast<std::uint8_t*>(data)[i] = static_cast<std::uint8_t>(value); break;
    default: throw dtype_error("the fuzzer has no way through elementwise operations of this type");
    }
}

/// In float, rounded once.
template <class T>
void evaluate_storage(const ir::operation& op, const void* const* in, int operands, void* out, std::int64_t count) {
    std::vector<std::vector<float>> wide(static_cast<std::size_t>(operands));
    const void* pointers[4]{};
    for (int k = 0; k < operands; ++k) {
        pointers[k] = in[k];
        if (k < op.conditions) continue;
        const auto* const from = static_cast<const T*>(in[k]);
        auto& values = wide[static_cast<std::size_t>(k)];
        for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(from[i]));
        pointers[k] = values.data();
    }
    const bool own = op.result_type(dtype_of<T>) != dtype_of<T>; // a question or a cast
    std::vector<float> result(static_cast<std::size_t>(count));
    if (!op.evaluate(dtype::f32, pointers, own ? out : result.data(), count))
        throw dtype_error(std::string(op.name) + " is not made for elements of float");
    for (std::int64_t i = 0; !own && i < count; ++i) static_cast<T*>(out)[i] = T(result[static_cast<std::size_t>(i)]);
}

} // namespace

void evaluate(const ir::operation& op, dtype common, const void* const* in, int operands, void* out,
              std::int64_t count) {
    if (op.evaluate == nullptr) throw argument_error(std::string(op.name) + " is not elementwise");
    const auto run = [&](dtype type, const void* const* from, void* to) {
        if (!op.evaluate(type, from, to, count))
            throw dtype_error(std::string(op.name) + " is not made for elements of " + name_of(type));
    };
    if (common == dtype::f64 || common == dtype::f32) return run(common, in, out);
    if (common == dtype::f16) return evaluate_storage<half>(op, in, operands, out, count);
    if (common == dtype::bf16) return evaluate_storage<bfloat16>(op, in, operands, out, count);
    std::vector<std::vector<double>> wide(static_cast<std::size_t>(operands));
    const void* pointers[4]{};
    for (int k = 0; k < operands; ++k) {
        pointers[k] = in[k];
        if (k < op.conditions) continue;
        auto& values = wide[static_cast<std::size_t>(k)];
        for (std::int64_t i = 0; i < count; ++i) values.push_back(element(in[k], common, i));
        pointers[k] = values.data();
    }
    // An operation that answers in a type of its own (comparisons, casts) writes it as it is.
    if (op.result_type(common) == op.result_type(dtype::f64)) return run(dtype::f64, pointers, out);
    std::vector<double> result(static_cast<std::size_t>(count));
    run(dtype::f64, pointers, result.data());
    for (std::int64_t i = 0; i < count; ++i) store(out, common, i, result[static_cast<std::size_t>(i)]);
}

} // namespace tapegraph::fuzz
