#pragma once

#include <tapegraph/core/config.hpp>

namespace tapegraph::detail {

/// A callable that is called before the full expression ends that made this, as an argument of an
/// ordinary function. Such a function is compiled once, where a template is compiled per callable.
template <class Signature>
class function_reference;
template <class R, class... Args>
class function_reference<R(Args...)> {
public:
    template <class F>
    function_reference(const F& f) // NOLINT: a callable is one
        : object_(&f),
          call_([](const void* object, Args... args) -> R { return (*static_cast<const F*>(object))(args...); }) {}
    R operator()(Args... args) const { return call_(object_, args...); }

private:
    const void* object_;
    R (*call_)(const void*, Args...);
};

} // namespace tapegraph::detail
