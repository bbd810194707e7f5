#pragma once

#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/ops/reduction/cpu_normalization_rows.hpp>

/// Shares out the records of a normalization and its derivatives (ops/reduction/normalization.hpp).

TG_ROUNDS_EACH_BEGIN
namespace tapegraph::cpu {

namespace normalization_detail {

/// Calls lines(example, first, end) for lines of an example, or block(example, record, block) for
/// blocks of a record.
template <class Lines, class Block>
void each_task(const normalized_shape& s, const Lines& lines, const Block& block) {
    const bool parallel = s.elements() >= 2 * task;
    if (s.by_lines()) {
        const std::int64_t count = s.records * s.groups, in_task = std::max<std::int64_t>(1, task / s.in_group),
                           tasks = divide_up(count, in_task);
        parallel_for(s.examples * tasks, parallel, [&](std::int64_t number) {
            const std::int64_t first = number % tasks * in_task;
            lines(number / tasks, first, std::min(count, first + in_task));
        });
    } else {
        const column_plan plan(s);
        parallel_for(s.examples * s.records * plan.blocks, parallel, [&](std::int64_t number) {
            const std::int64_t record = number / plan.blocks;
            block(record / s.records, record % s.records, plan.block(s, number % plan.blocks));
        });
    }
}

/// How sums over the records of an example are divided: `parts` of them, which are joined in order.
struct sums_plan {
    std::int64_t parts, blocks;
    explicit sums_plan(const normalized_shape& s)
        : parts(std::clamp<std::int64_t>(s.records * s.record() / task, 1,
                                         std::max<std::int64_t>(1, std::min(s.records, most_parts)))),
          blocks(s.by_lines() || s.elements() == 0 ? 1 : column_plan(s).blocks) {}
    /// Whether the results are the only sums that are needed.
    bool direct(const normalized_shape& s) const { return s.by_lines() && parts == 1 && s.records <= rows_in_t; }
    std::int64_t totals(const normalized_shape& s) const { return s.examples * parts * 2 * s.channels(); }
};

template <class T>
void join_parts(const double* total, std::int64_t parts, std::int64_t count, T* to) {
    for (std::int64_t c = 0; c < count; ++c) {
        double sum = total[c];
        for (std::int64_t part = 1; part < parts; ++part) sum += total[part * count + c];
        to[c] = static_cast<T>(sum);
    }
}

} // namespace normalization_detail

/// y = (x - mean) / sqrt(variance + epsilon) gamma + beta; gamma and beta [examples / sharing, channels].
template <class T>
void normalize(const normalized_shape& s, const T* x, const T* gamma, const T* beta, T* y) {
    using namespace normalization_detail;
    if (s.elements() == 0) return;
    const std::int64_t example_size = s.records * s.record();
    each_task(
        s,
        [&](std::int64_t example, std::int64_t first, std::int64_t end) {
            const std::int64_t at = example * example_size, parameter = example / s.sharing * s.channels();
            dispatch<forward_lines_body<T>>(&s, x + at, gamma + parameter, beta + parameter, y + at, first, end);
        },
        [&](std::int64_t example, std::int64_t record, const channel_block& b) {
            const std::int64_t at = (example * s.records + record) * s.record() + b.at,
                               parameter = example / s.sharing * s.channels() + b.at;
            dispatch<forward_block_body<T>>(&s, &b, x + at, gamma + parameter, beta + parameter, y + at);
        });
}

template <class T>
std::size_t normalization_sums_bytes(const normalized_shape& s) {
    const normalization_detail::sums_plan plan(s);
    if (plan.direct(s)) return 0;
    const auto totals = static_cast<std::size_t>(plan.totals(s));
    return totals * (s.by_lines() ? sizeof(double) + sizeof(T) : sizeof(double));
}

/// sums [examples, s.sums()], as normalization_sums_op has them.
template <class T>
void normalization_sums(const normalized_shape& s, const T* dy, const T* x, const T* gamma, T* sums, void* workspace) {
    using namespace normalization_detail;
    const sums_plan plan(s);
    const bool direct = plan.direct(s);
    const std::int64_t of_part = 2 * s.channels(), tasks = s.examples * plan.parts,
                       totals = direct ? 0 : plan.totals(s);
    double* const total = static_cast<double*>(workspace);
    std::fill_n(total, totals, 0.0);
    for (std::int64_t e = 0; direct && e < s.examples; ++e) std::fill_n(sums + e * s.sums(), of_part, T(0));
    if (s.elements() > 0)
        parallel_for(tasks * plan.blocks, s.elements() >= 2 * task, [&](std::int64_t number) {
            const std::int64_t part = number / plan.blocks, example = part / plan.parts, place = part % plan.parts;
            const std::int64_t first = s.records * place / plan.parts, end = s.records * (place + 1) / plan.parts;
            const std::int64_t at = example * s.records * s.record();
            const T* const factor = gamma + example / s.sharing * s.channels();
            T* const stats = sums + example * s.sums() + of_part;
            if (s.by_lines()) {
                T* const run =
                    direct ? sums + example * s.sums() : reinterpret_cast<T*>(total + totals) + part * of_part;
                if (!direct) std::fill_n(run, of_part, T(0));
                dispatch<sums_of_lines_body<T>>(&s, dy + at, x + at, factor, stats, first * s.groups, end * s.groups,
                                                run, direct ? nullptr : total + part * of_part);
                return;
            }
            const channel_block b = column_plan(s).block(s, number % plan.blocks);
            for (std::int64_t record = first; record < end; ++record) {
                const std::int64_t from = at + record * s.record() + b.at;
                dispatch<sums_of_block_body<T>>(&s, &b, dy + from, x + from, factor + b.at,
                                                stats + 4 * (record * s.groups + b.group),
                                                total + part * of_part + b.at);
            }
        });
    for (std::int64_t e = 0; !direct && e < s.examples; ++e)
        join_parts(total + e * plan.parts * of_part, plan.parts, of_part, sums + e * s.sums());
    if (s.record() == 0) // groups without elements
        for (std::int64_t e = 0; e < s.examples; ++e)
            std::fill_n(sums + e * s.sums() + of_part, s.sums() - of_part, T(0));
}

/// The derivative by x, from dy and the sums.
template <class T>
void normalization_gradient(const normalized_shape& s, const T* dy, const T* x, const T* gamma, const T* sums, T* dx) {
    using namespace normalization_detail;
    if (s.elements() == 0) return;
    const std::int64_t example_size = s.records * s.record();
    const auto statistics = [&](std::int64_t example) { return sums + example * s.sums() + 2 * s.channels(); };
    each_task(
        s,
        [&](std::int64_t example, std::int64_t first, std::int64_t end) {
            const std::int64_t at = example * example_size;
            dispatch<gradient_lines_body<T>>(&s, dy + at, x + at, gamma + example / s.sharing * s.channels(),
                                             statistics(example), dx + at, first, end);
        },
        [&](std::int64_t example, std::int64_t record, const channel_block& b) {
            const std::int64_t at = (example * s.records + record) * s.record() + b.at;
            dispatch<gradient_block_body<T>>(&s, &b, dy + at, x + at, gamma + example / s.sharing * s.channels() + b.at,
                                             statistics(example) + 4 * (record * s.groups + b.group), dx + at);
        });
}

} // namespace tapegraph::cpu
TG_ROUNDS_EACH_END
