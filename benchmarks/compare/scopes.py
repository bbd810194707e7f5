"""The names of weights in scopes, as the C++ models write them."""


class Scope:
    """weights of a scope: scope["kernel"] is an array, scope / "norm" / 0 a scope inside."""

    def __init__(self, values, path=""):
        self.values, self.path = values, path

    def __getitem__(self, name):
        return self.values[self.path + name]

    def __contains__(self, name):
        return self.path + name in self.values

    def __truediv__(self, name):
        return Scope(self.values, f"{self.path}{name}/")
