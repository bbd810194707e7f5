#pragma once

#include <tapegraph/data/pipeline/ragged.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

/// Serializes elements, for caches in files.

namespace tapegraph::data::detail {

template <class T>
void put_number(std::string& to, T value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The unread bytes; a count is accepted only if its bytes are there.
struct stored_reader {
    std::string_view left;

    bool take(void* to, std::size_t bytes) {
        if (bytes > left.size()) return false;
        if (bytes > 0) std::memcpy(to, left.data(), bytes);
        left.remove_prefix(bytes);
        return true;
    }
    /// Reads a count of items of at least this many bytes each.
    bool count(std::size_t& to, std::size_t each) {
        std::uint64_t n = 0;
        if (!take(&n, sizeof n) || n > left.size() / each) return false;
        to = static_cast<std::size_t>(n);
        return true;
    }
};

/// `put` appends an element's bytes, `get` reads them and returns whether they are valid, `type`
/// names them.
template <class E>
struct stored {
    static_assert(has_fields<E>,
                  "cache in a file: elements are numbers, strings, arrays, vectors, tensors, and tuples of them");
    static void put(std::string& to, const E& e) {
        std::apply([&](const auto&... field) { (stored<std::remove_cvref_t<decltype(field)>>::put(to, field), ...); },
                   fields_of(e));
    }
    static bool get(stored_reader& from, E& e) {
        return std::apply(
            [&](auto&... field) { return (stored<std::remove_cvref_t<decltype(field)>>::get(from, field) && ...); },
            fields_of(e));
    }
    static std::string type() {
        return []<class... F>(std::type_identity<std::tuple<F...>>) {
            std::string text = "(";
            ((text += stored<F>::type(), text += ' '), ...);
            text.back() = ')';
            return text;
        }(std::type_identity<typename field_types<E>::type>{});
    }
};
template <number T>
struct stored<T> {
    static void put(std::string& to, const T& value) { put_number(to, value); }
    static bool get(stored_reader& from, T& value) {
        if constexpr (std::is_same_v<T, bool>) {
            unsigned char byte = 2;
            const bool good = from.take(&byte, 1) && byte < 2;
            value = byte == 1;
            return good;
        } else {
            return from.take(&value, sizeof value);
        }
    }
    static std::string type() { return name_of(dtype_of<T>); }
};
template <>
struct stored<std::string> {
    static void put(std::string& to, const std::string& text) {
        put_number<std::uint64_t>(to, text.size());
        to += text;
    }
    static bool get(stored_reader& from, std::string& text) {
        std::size_t length = 0;
        if (!from.count(length, 1)) return false;
        text.assign(from.left.substr(0, length));
        from.left.remove_prefix(length);
        return true;
    }
    static std::string type() { return "text"; }
};
template <class T>
struct stored<std::vector<T>> {
    static void put(std::string& to, const std::vector<T>& v) {
        put_number<std::uint64_t>(to, v.size());
        for (const T& e : v) stored<T>::put(to, e);
    }
    static bool get(stored_reader& from, std::vector<T>& v) {
        std::size_t count = 0;
        if (!from.count(count, number<T> ? sizeof(T) : 1)) return false;
        v.clear();
        for (std::size_t i = 0; i < count; ++i) {
            T e{};
            if (!stored<T>::get(from, e)) return false;
            v.push_back(std::move(e));
        }
        return true;
    }
    static std::string type() { return stored<T>::type() + "*"; }
};
template <class T, std::size_t N>
struct stored<std::array<T, N>> {
    static void put(std::string& to, const std::array<T, N>& a) {
        for (const T& e : a) stored<T>::put(to, e);
    }
    static bool get(stored_reader& from, std::array<T, N>& a) {
        for (T& e : a)
            if (!stored<T>::get(from, e)) return false;
        return true;
    }
    static std::string type() { return stored<T>::type() + "[" + std::to_string(N) + "]"; }
};
template <class T>
struct stored<tensor<T>> {
    static void put(std::string& to, const tensor<T>& t) {
        put_number(to, static_cast<std::int64_t>(t.rank()));
        for (int i = 0; i < t.rank(); ++i) put_number(to, t.shape()[i].value);
        to.append(reinterpret_cast<const char*>(t.data()), static_cast<std::size_t>(t.size()) * sizeof(T));
    }
    static bool get(stored_reader& from, tensor<T>& t) {
        std::int64_t rank = 0, extents[max_rank]{}, size = 1;
        if (!from.take(&rank, sizeof rank) || rank < 0 || rank > max_rank) return false;
        for (std::int64_t i = 0; i < rank; ++i)
            if (!from.take(&extents[i], sizeof extents[i]) || extents[i] < 0 ||
                __builtin_mul_overflow(size, extents[i], &size))
                return false;
        if (static_cast<std::uint64_t>(size) > from.left.size() / sizeof(T)) return false;
        t = tensor<T>::uninitialized(shape(static_cast<int>(rank), extents));
        return from.take(t.mutable_data(), static_cast<std::size_t>(size) * sizeof(T));
    }
    static std::string type() { return stored<T>::type() + " tensor"; }
};
template <class T>
struct stored<ragged<T>> {
    static void put(std::string& to, const ragged<T>& r) {
        stored<tensor<T>>::put(to, r.values);
        stored<tensor<std::int64_t>>::put(to, r.row_splits);
    }
    static bool get(stored_reader& from, ragged<T>& r) {
        if (!stored<tensor<T>>::get(from, r.values) || !stored<tensor<std::int64_t>>::get(from, r.row_splits))
            return false;
        if (r.values.rank() != 1 || r.row_splits.rank() != 1 || r.row_splits.size() < 1) return false;
        const auto splits = r.row_splits.values();
        bool good = splits.front() == 0 && splits.back() == r.values.size();
        for (std::size_t i = 1; i < splits.size(); ++i) good = good && splits[i] >= splits[i - 1];
        return good;
    }
    static std::string type() { return stored<T>::type() + " ragged"; }
};

} // namespace tapegraph::data::detail
