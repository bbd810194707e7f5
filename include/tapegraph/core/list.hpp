#pragma once

#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <initializer_list>

namespace tapegraph {

/// A growable array of trivial elements for constant evaluation and run time alike.
///
/// std::vector would do, but each of its calls costs a dozen constant-evaluated ones, and the
/// passes push thousands of elements within the compiler's budget.
///
/// In loops of some thousand steps of constant evaluation, nvcc's front end (13.0) sometimes
/// forgets to destroy objects that own memory, and reports a leak. This was seen for a range-based
/// for over a function's result, a temporary in the condition of an if, a block of an if with
/// another if in it, and a while loop with a continue, whose function then forgets its own objects.
/// Name results before such a loop.
template <class T>
class list {
public:
    constexpr list() = default;
    constexpr list(std::initializer_list<T> values) {
        for (const T& value : values) push_back(value);
    }
    constexpr explicit list(int count, T value = {}) { resize(count, value); }
    constexpr list(const list& other) { copy(other.data_, other.size_); }
    constexpr list(list&& other) noexcept : data_(other.data_), size_(other.size_), capacity_(other.capacity_) {
        other.data_ = nullptr;
        other.size_ = other.capacity_ = 0;
    }
    constexpr list& operator=(const list& other) {
        if (this != &other) copy(other.data_, other.size_);
        return *this;
    }
    constexpr list& operator=(list&& other) noexcept {
        T* const data = data_;
        const int size = size_, capacity = capacity_;
        data_ = other.data_, size_ = other.size_, capacity_ = other.capacity_;
        other.data_ = data, other.size_ = size, other.capacity_ = capacity;
        return *this;
    }
    constexpr ~list() { delete[] data_; }

    constexpr int size() const { return size_; }
    constexpr bool empty() const { return size_ == 0; }
    /// Element i, from 0, unchecked.
    constexpr T& operator[](int i) { return data_[i]; }
    constexpr const T& operator[](int i) const { return data_[i]; }
    /// The last element of a list that is not empty.
    constexpr T& back() { return data_[size_ - 1]; }
    constexpr const T* begin() const { return data_; }
    constexpr const T* end() const { return data_ + size_; }
    constexpr T* begin() { return data_; }
    constexpr T* end() { return data_ + size_; }

    /// Appends and returns the index of the new element.
    constexpr int push_back(const T& value) {
        const T copy = value; // `value` may live in the block that is about to move
        if (size_ == capacity_) reserve(capacity_ == 0 ? 16 : 2 * capacity_);
        data_[size_] = copy;
        return size_++;
    }
    /// Becomes a copy of `count` elements.
    constexpr void copy(const T* from, int count) {
        size_ = 0;
        reserve(count);
        for (int i = 0; i < count; ++i) data_[i] = from[i];
        size_ = count;
    }
    /// Removes the last element of a list that is not empty.
    constexpr void pop_back() { --size_; }
    /// Removes all elements and keeps the memory.
    constexpr void clear() { size_ = 0; }
    /// Makes it `count` long; new elements are `value`.
    constexpr void resize(int count, T value = {}) {
        reserve(count);
        for (int i = size_; i < count; ++i) data_[i] = value;
        size_ = count;
    }
    /// Takes memory for `count` elements, so that adding up to them moves nothing.
    constexpr void reserve(int count) {
        if (count <= capacity_) return;
        T* const wider = new T[static_cast<std::size_t>(count)]; // not set: zeroing costs a step an element
        for (int i = 0; i < size_; ++i) wider[i] = data_[i];
        delete[] data_;
        data_ = wider;
        capacity_ = count;
    }

private:
    T* data_ = nullptr;
    int size_ = 0;
    int capacity_ = 0;
};

} // namespace tapegraph
