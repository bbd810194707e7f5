#include <fuzz/mapped.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tapegraph::fuzz {

namespace {

any_tensor example(const any_tensor& batch, std::int64_t i) {
    any_tensor one(batch.type(), shape(batch.rank() - 1, batch.shape().data() + 1));
    const std::size_t bytes = static_cast<std::size_t>(one.size()) * size_of(one.type());
    if (bytes > 0)
        std::memcpy(one.write(), static_cast<const std::byte*>(batch.read()) + static_cast<std::size_t>(i) * bytes,
                    bytes);
    return one;
}

any_tensor batch_of(const std::vector<any_tensor>& examples) {
    shape dims{static_cast<std::int64_t>(examples.size())};
    const shape own = examples[0].shape();
    for (int i = 0; i < own.rank(); ++i) dims.push_back(own[i]);
    any_tensor all(examples[0].type(), dims);
    const std::size_t bytes = static_cast<std::size_t>(examples[0].size()) * size_of(all.type());
    for (std::size_t i = 0; i < examples.size() && bytes > 0; ++i)
        std::memcpy(static_cast<std::byte*>(all.write()) + i * bytes, examples[i].read(), bytes);
    return all;
}

// A leaf for another example: other numbers from the same interval.
any_tensor redrawn(const instruction& c, std::int64_t i) {
    program one{{c}, {}};
    one.code[0].with.whole[0] += 7919 * i;
    return leaves_of(one)[0];
}

// Numbers from outside the operations' domains, which other examples may have, are no reason to go on.
bool moderate(const any_tensor& x) {
    const array plain = plain_values(x);
    return std::all_of(plain.values.begin(), plain.values.end(), [](real v) { return std::abs(v) <= 1e4; });
}

// Of every example by itself. The kernels may add in another order when there is one more axis; 1e-12 of the operands'
// size is what check_values allows as well.
std::string compare(const any_tensor& got, const std::vector<any_tensor>& want, real scale) {
    const shape dims = got.shape();
    for (std::size_t i = 0; i < want.size(); ++i) {
        const shape own = want[i].shape();
        if (dims.rank() != own.rank() + 1 || dims[0].value != static_cast<std::int64_t>(want.size()) ||
            !(shape(own.rank(), dims.data() + 1) == own))
            return to_string(dims) + " of examples of shape " + to_string(own);
        if (got.type() != want[i].type())
            return name_of(got.type()) + std::string(" instead of ") + name_of(want[i].type());
        const array a = plain_values(example(got, static_cast<std::int64_t>(i))), b = plain_values(want[i]);
        for (std::int64_t k = 0; k < b.size(); ++k) {
            const bool real_number = got.type() == dtype::f64;
            if (a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]))) continue;
            if (real_number && std::abs(a[k] - b[k]) <= 1e-12L * std::max(scale * scale, std::abs(b[k]))) continue;
            return "element " + std::to_string(k) + " of example " + std::to_string(i) + " is " +
                   number_text(static_cast<double>(a[k])) + " instead of " + number_text(static_cast<double>(b[k]));
        }
    }
    return {};
}

} // namespace

std::string check_mapped(const program& p, const std::vector<any_tensor>& values, std::int64_t& instructions) {
    std::int64_t seed = p.size();
    for (const instruction& c : p.code)
        if (!c.with.whole.empty() && c.leaf()) seed += c.with.whole[0];
    choices random(static_cast<std::uint64_t>(seed));
    const std::int64_t count = random.whole(1, 3);
    std::vector<any_tensor> all = values;
    std::vector<bool> own(p.code.size(), false);
    bool first = true;
    for (std::size_t i = 0; i < p.code.size(); ++i) {
        const instruction& c = p.code[i];
        if (c.leaf()) {
            if (c.op == "constant" || !(random.chance(0.6) || first)) continue;
            std::vector<any_tensor> examples;
            for (std::int64_t k = 0; k < count; ++k) examples.push_back(redrawn(c, k));
            all[i] = batch_of(examples);
            own[i] = true;
            first = false;
            continue;
        }
        const operation& op = operation_named(c.op);
        std::vector<any_tensor> x;
        std::uint32_t set = 0;
        real scale = 1;
        for (std::size_t k = 0; k < c.operands.size(); ++k) {
            const auto operand = static_cast<std::size_t>(c.operands[k]);
            x.push_back(all[operand]);
            set |= std::uint32_t{own[operand]} << k;
            if (!moderate(x[k])) return {};
            for (const real v : plain_values(x[k]).values) scale = std::max(scale, std::abs(v));
        }
        if (set == 0) continue; // its value is the program's own
        std::vector<any_tensor> want;
        for (std::int64_t e = 0; e < count; ++e) {
            std::vector<any_tensor> of_one;
            for (std::size_t k = 0; k < x.size(); ++k) of_one.push_back((set >> k & 1) != 0 ? example(x[k], e) : x[k]);
            try {
                want.push_back(run_instruction(c, of_one.data()));
            } catch (const range_error&) { // other examples have other indices
                return {};
            }
        }
        all[i] = batch_of(want);
        own[i] = true;
        if (op.mapped == nullptr) continue;
        if (std::find(op.mapped_sets.begin(), op.mapped_sets.end(), set) == op.mapped_sets.end()) {
            for (std::size_t k = 0; k < x.size(); ++k)
                if ((set >> k & 1) == 0)
                    x[k] = batch_of(std::vector<any_tensor>(static_cast<std::size_t>(count), x[k]));
            set = op.mapped_sets[0];
        }
        if (std::string text = compare(op.mapped(set, x.data(), c.with), want, scale); !text.empty())
            return "v" + std::to_string(i) + " (" + c.op + ", " + std::to_string(count) + " examples, operands " +
                   std::to_string(set) + " are batches): " + text;
        ++instructions;
    }
    return {};
}

} // namespace tapegraph::fuzz
