"""What describes a model to all peers, and its data, which are those of benchmarks/compare/*.cpp. A
layer is its kind, its name in our weights (None if it has none) and its options. NumPy is imported
where it is used: compare.py itself runs without it."""


def convolution(name, filters, kernel, stride=1, padding="valid"):
    return "convolution", name, {"filters": filters, "kernel": kernel, "stride": stride, "padding": padding}


def dense(name, units):
    return "dense", name, {"units": units}


def layer(kind, **options):
    return kind, None, options


class Study:
    """layers, or None if a file of works/ builds the model; `shape` of a record, None for its
    length; `rate` of the optimizer; `classes`: 2 (one logit) or more; `successors`: each character's
    label is the next character. A subclass may have data of its own."""

    def __init__(self, layers, shape, optimizer, rate, classes=2, vocabulary=0, successors=False):
        self.layers, self.shape, self.optimizer, self.rate = layers, shape, optimizer, rate
        self.classes, self.vocabulary, self.successors = classes, vocabulary, successors

    def layers_for(self, check):
        """Returns the layers, without dropout where results are compared, since random numbers
        differ between libraries."""
        return [each for each in self.layers if not (check and each[0] == "dropout")]

    def data(self, batch, length):
        """Returns NumPy arrays x [batch, ...] and y."""
        import numpy

        shape = (batch, *(length if extent is None else extent for extent in self.shape))
        if self.vocabulary:
            places = numpy.arange(numpy.prod(shape), dtype=numpy.int64)
            x = (places * 7919 % self.vocabulary).astype(numpy.int32).reshape(shape)
            if self.successors:
                return x, ((places + 1) * 7919 % self.vocabulary).astype(numpy.int32)
        else:
            x = noise(shape, 1)
        rows = numpy.arange(batch)
        return x, (rows % self.classes).astype(numpy.int32) if self.classes > 2 else (rows % 2).astype(numpy.float32).reshape(batch, 1)


def noise(shape, scale):
    """Returns the same bits as noise.hpp, which explains them."""
    import numpy

    bits = numpy.arange(1, numpy.prod(shape) + 1, dtype=numpy.int64).astype(numpy.uint32)
    bits = (bits ^ bits >> 16) * numpy.uint32(0x85EBCA6B)
    bits = (bits ^ bits >> 13) * numpy.uint32(0xC2B2AE35)
    bits ^= bits >> 16
    values = (bits >> 8).astype(numpy.float32) / numpy.float32(8388608) - numpy.float32(1)
    return (numpy.float32(scale) * values).reshape(shape)


def digest(result):
    """Returns the digest of an array, as in contestant.hpp: its mean magnitude and 16 elements."""
    import numpy

    y = numpy.asarray(result).reshape(-1)
    return [float(numpy.mean(numpy.abs(y), dtype=numpy.float64)), *(float(y[i * (y.size - 1) // 15]) for i in range(16))]
