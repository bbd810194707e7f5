#pragma once

#include <tapegraph/core/config.hpp>

#include <new>

namespace tapegraph {

/// Storage for Capacity objects of which only the first `count` are constructed.
template <class T, int Capacity>
class partial_array {
public:
    explicit partial_array(int count) : count_(count) {
        for (int i = 0; i < count; ++i) new (&items_[i]) T();
    }
    partial_array(const partial_array&) = delete;
    partial_array& operator=(const partial_array&) = delete;
    ~partial_array() {
        for (int i = 0; i < count_; ++i) items_[i].~T();
    }

    /// Element i, from 0, unchecked.
    T& operator[](int i) { return items_[i]; }
    const T& operator[](int i) const { return items_[i]; }
    /// The first element.
    T* data() { return items_; }

private:
    union {
        T items_[Capacity];
    };
    int count_;
};

} // namespace tapegraph
