#include <operations/operation.hpp>

#include <tapegraph/core/error.hpp>

namespace tapegraph::testing {

namespace {

template <class To, class From>
tensor<To> converted(const tensor<From>& x) {
    auto y = tensor<To>::uninitialized(x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i) {
        if constexpr (std::is_same_v<To, bool>)
            y.mutable_data()[i] = x.data()[i] > 0;
        else
            y.mutable_data()[i] = static_cast<To>(x.data()[i]);
    }
    return y;
}

template <class T>
std::vector<any_tensor> operands_of(const std::vector<dtype>& types, const tensors<T>& x) {
    std::vector<any_tensor> operands;
    for (std::size_t k = 0; k < x.size(); ++k) {
        if (types[k] == dtype::boolean)
            operands.push_back(converted<bool>(x[k]));
        else if (types[k] == dtype::i32)
            operands.push_back(converted<std::int32_t>(x[k]));
        else if (types[k] == dtype::i64)
            operands.push_back(converted<std::int64_t>(x[k]));
        else
            operands.push_back(x[k]);
    }
    return operands;
}

// Answers and indices, as numbers.
template <class T>
tensor<T> as_numbers(const any_tensor& y) {
    if (y.type() == dtype_of<T>) return tensor<T>(y);
    const array plain = plain_values(y);
    auto result = tensor<T>::uninitialized(y.shape());
    for (std::int64_t i = 0; i < y.size(); ++i) result.mutable_data()[i] = static_cast<T>(plain[i]);
    return result;
}

template <class T>
tensor_function<T> run_of(const operation& of, const attributes& with,
                          any_tensor (*call)(const any_tensor* x, const attributes& with)) {
    if (call == nullptr) return {};
    return [types = of.types, with, call](const tensors<T>& x) {
        return as_numbers<T>(call(operands_of(types, x).data(), with));
    };
}

} // namespace

array plain_values(const any_tensor& x) {
    array a(extents_of(x.shape()));
    const auto read = [&]<class T>(const T* data) {
        for (std::int64_t i = 0; i < a.size(); ++i) a[i] = static_cast<real>(data[i]);
    };
    switch (x.type()) {
    case dtype::f64: read(static_cast<const double*>(x.read())); break;
    case dtype::f32: read(static_cast<const float*>(x.read())); break;
    case dtype::i64: read(static_cast<const std::int64_t*>(x.read())); break;
    case dtype::i32: read(static_cast<const std::int32_t*>(x.read())); break;
    case dtype::boolean: read(static_cast<const bool*>(x.read())); break;
    default: throw dtype_error(std::string("the table of operations does not read ") + name_of(x.type()));
    }
    return a;
}

std::vector<row> rows_of(const std::vector<operation>& operations) {
    std::vector<row> rows;
    for (const operation& of : operations) {
        std::size_t real_ones = 0;
        while (real_ones < of.types.size() && of.types[real_ones] == dtype::f64) ++real_ones;
        for (row r : of.rows) {
            if (!of.reference) throw argument_error("the rows of '" + of.name + "' have no reference");
            if (r.name.empty()) r.name = of.source ? of.source({"x", "y", "z"}, r.with) : of.name;
            r.domains.resize(of.types.size());
            if (r.watched < 0 && real_ones < of.types.size()) r.watched = static_cast<int>(real_ones);
            r.run = run_of<double>(of, r.with, of.eager);
            r.run_float = run_of<float>(of, r.with, of.eager_float);
            r.expected = [types = of.types, reference = of.reference, with = r.with](std::vector<array> x) {
                for (std::size_t k = 0; k < x.size(); ++k)
                    if (types[k] == dtype::boolean)
                        for (real& v : x[k].values) v = v > 0;
                return reference(x, with);
            };
            rows.push_back(std::move(r));
        }
    }
    return rows;
}

} // namespace tapegraph::testing
