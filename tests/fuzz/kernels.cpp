#include <fuzz/kernels.hpp>

#include <tapegraph/ir/node.hpp>
#include <tapegraph/ops/kernels.hpp>
#include <tapegraph/ops/ops.hpp>

#include <string>
#include <vector>

namespace tapegraph::fuzz {

namespace {

struct row {
    const ir::operation* op;
    dtype type;
    runtime::kernel_pair kernel;
};

template <class T, class... Op>
void add(std::vector<row>& rows) {
    static_assert((ir::operation_binding<Op>::bound && ...));
    (rows.push_back({&ir::descriptor_of<Op>, dtype_of<T>, runtime::kernel_for<Op, T>()}), ...);
}

template <class T, class... Op>
void add_reductions(std::vector<row>& rows) {
    static_assert((ir::operation_binding<Op>::bound && ...));
    const auto pair = []<class O>(O*) {
        using kernel = runtime::reduction_kernel<O, region<slots<dtype_of<T>>, results<0>>, T>;
        return runtime::kernel_pair{{&kernel::run, &kernel::workspace}};
    };
    (rows.push_back({&ir::descriptor_of<Op>, dtype_of<T>, pair(static_cast<Op*>(nullptr))}), ...);
}

std::vector<row> make_rows() {
    std::vector<row> rows;
    add_reductions<double, sum_op, prod_op, max_op, min_op>(rows);
    add_reductions<bool, any_op, all_op>(rows);
    add_reductions<std::int64_t, sum_op>(rows);
    add<double, matmul_op, convolution_op, convolution_input_gradient_op, convolution_filter_gradient_op,
        convolution_bias_op<false>, convolution_bias_op<true>, convolution_bias_pool_op<false>,
        convolution_bias_pool_op<true>, matmul_bias_op<false>, matmul_bias_op<true>, max_pool_op, max_pool_gradient_op,
        max_pool_select_op, average_pool_op, average_pool_gradient_op>(rows);
    add<double, transpose_op, slice_op, pad_op, placed_sum_op, concat_op, index_map_op, index_map_adjoint_op, gather_op,
        scatter_add_op, gather_nd_op, scatter_nd_op, take_along_op, put_along_op, cumulative_sum_op,
        cumulative_product_op, argsort_op, arg_reduce_op, arange_op<std::int32_t>, arange_op<double>, softmax_op,
        log_softmax_op, softmax_gradient_op, log_softmax_gradient_op>(rows);
    add<std::int32_t, transpose_op>(rows);
    add<std::int32_t, one_hot_op<double>>(rows);
    return rows;
}

} // namespace

runtime::kernel_pair kernel_of(const ir::operation& op, dtype first_operand) {
    static const std::vector<row> rows = make_rows();
    for (const row& r : rows)
        if (r.op == &op && r.type == first_operand) return r.kernel;
    throw argument_error("the fuzzer's table of kernels lacks " + std::string(op.name) + " of " +
                         name_of(first_operand));
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

} // namespace

void evaluate(const ir::operation& op, dtype common, const void* const* in, int operands, void* out,
              std::int64_t count) {
    if (op.evaluate == nullptr) throw argument_error(std::string(op.name) + " is not elementwise");
    const auto run = [&](dtype type, const void* const* from, void* to) {
        if (!op.evaluate(type, from, to, count))
            throw dtype_error(std::string(op.name) + " is not made for elements of " + name_of(type));
    };
    if (common == dtype::f64 || common == dtype::f32) return run(common, in, out);
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
