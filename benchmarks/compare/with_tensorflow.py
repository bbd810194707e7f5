"""TensorFlow as a contestant: with_tensorflow.py function|xla|keras THREADS. `keras` is the step of model.fit, compiled as
Keras chooses."""

import re
import sys

import keras
import tensorflow as tf
from safetensors.numpy import load_file

import operations
import protocol
import studies
import works
from study import digest
from tensorflow_layers import set_weights

WAY, THREADS = sys.argv[1], int(sys.argv[2])
tf.config.threading.set_intra_op_parallelism_threads(THREADS)
tf.config.threading.set_inter_op_parallelism_threads(THREADS)
XLA = True if WAY == "xla" else None


def layers_of(study, check):
    rank = len(study.shape) - 1
    made = []
    for kind, name, options in study.layers_for(check):
        if kind == "convolution":
            make = keras.layers.Conv1D if rank == 1 else keras.layers.Conv2D
            made.append((name, make(options["filters"], options["kernel"], options["stride"], options["padding"])))
        elif kind == "dense":
            made.append((name, keras.layers.Dense(options["units"])))
        elif kind == "embedding":
            made.append((name, keras.layers.Embedding(study.vocabulary, options["units"])))
        elif kind == "bag":
            made += [(name, keras.layers.Embedding(study.vocabulary, options["units"])), (None, keras.layers.GlobalAveragePooling1D())]
        elif kind == "lstm":
            made.append((name, keras.layers.LSTM(options["units"])))
        else:
            made.append((name, {"relu": keras.layers.ReLU, "pool": keras.layers.MaxPooling2D, "flatten": keras.layers.Flatten,
                                "average": keras.layers.GlobalAveragePooling1D,
                                "normalization": keras.layers.BatchNormalization,
                                "dropout": lambda: keras.layers.Dropout(options["rate"])}[kind]()))
    return made


def network(study, check, weights, x):
    named = layers_of(study, check)
    model = keras.Sequential([keras.Input(x.shape[1:], batch_size=x.shape[0], dtype=x.dtype.name)] + [each for _, each in named])
    set_weights(named, weights)
    return model


def of_fit(model, x, y, optimizer, entropy):
    model.compile(optimizer=optimizer, loss=entropy)
    model.make_train_function()
    batches = iter(tf.data.Dataset.from_tensors((x, y)).repeat())

    def step():
        model.reset_metrics()  # they average over the steps of an epoch
        return float(model.train_function(batches)["loss"])

    return step


def of_tape(model, x, y, optimizer, entropy):
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=XLA)
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.add_n([entropy(y, model(x, training=True)), *model.losses])
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return lambda: float(train(x, y))


def model_row(work, kind, batch, length, check, file):
    study = studies.STUDIES[work]
    keras.backend.clear_session()
    x, y = study.data(batch, length)
    make = works.function_of(work, "tensorflow_model")
    model = make(load_file(file), x) if make else network(study, check, load_file(file), x)
    x, y = tuple(map(tf.constant, x)) if isinstance(x, tuple) else tf.constant(x), tf.constant(y)
    if kind == "inference":
        if WAY == "keras":
            predict = lambda: model.predict_on_batch(x)  # noqa: E731
        else:
            compiled = tf.function(lambda x: model(x, training=False), jit_compile=XLA)
            predict = lambda: compiled(x).numpy()  # noqa: E731
        return protocol.Prepared(predict, lambda count: digest(predict()))
    entropy = (keras.losses.SparseCategoricalCrossentropy(from_logits=True) if study.classes > 2
               else keras.losses.BinaryCrossentropy(from_logits=True))
    optimizer = {"sgd": keras.optimizers.SGD(study.rate), "adam": keras.optimizers.Adam(study.rate),
                 "momentum": keras.optimizers.SGD(study.rate, momentum=0.9)}[study.optimizer]
    step = (of_fit if WAY == "keras" else of_tape)(model, x, y, optimizer, entropy)
    return protocol.Prepared(step, lambda count: [step() for _ in range(count)])


FUNCTIONS = {
    "matmul": tf.matmul,
    "chain": lambda x: tf.tanh(x * 2 + 1) * 3,
    "gelu": tf.nn.gelu,
    "gelu_tanh": lambda x: tf.nn.gelu(x, approximate=True),
    "swish": tf.nn.silu,
    "softmax": tf.nn.softmax,
    "sum_of_rows": lambda x: tf.reduce_sum(x, 1),
    "cross_entropy": lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(
        tf.range(tf.shape(x)[0]) * 7919 % operations.CLASSES, x),
    "sum_of_columns": lambda x: tf.reduce_sum(x, 0),
}


def lstm(arrays):
    """Returns Keras's layer, and the operands of differentiation: its input and its weights."""
    layer, x = keras.layers.LSTM(arrays[2].shape[0]), tf.constant(arrays[0])
    layer.build(x.shape)
    layer.set_weights(arrays[1:])
    return lambda x, *_: layer(x, training=True), [x, *(variable.value for variable in layer.trainable_variables)]


def tiny(kind, tensors):
    a, b = tensors

    def chain():
        z = a
        for _ in range(operations.TINY):
            z = z + b
        return z

    def differentiate():
        with tf.GradientTape() as tape:
            tape.watch(a)
            z = chain()
        return tape.gradient(z, a)

    run = differentiate if kind == "gradient" else chain
    return protocol.Prepared(run, lambda count: digest(run()), operations.TINY)


def adam(arrays):
    """Updates of a variable whose gradient is given."""
    variable, gradient = keras.Variable(arrays[0]), tf.constant(arrays[1])
    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build([variable])
    update = tf.function(lambda g: optimizer.apply_gradients([(g, variable)]), jit_compile=XLA)

    def step():
        update(gradient)

    return protocol.Prepared(step, lambda count: [step() for _ in range(3)] and digest(variable.numpy()))


def operation_row(work, kind, size):
    arrays = operations.operands(work, size)
    if work == "adam":
        return adam(arrays)
    if work == "lstm":
        function, tensors = lstm(arrays)
    else:
        function = FUNCTIONS.get(work)
        if re.fullmatch(r"conv\d", work):
            function = lambda x, w: tf.nn.conv2d(x, w, 1, "VALID")  # noqa: E731
        if function is None and work != "add":
            raise protocol.Failure(f"no operation '{work}' of TensorFlow's")
        tensors = [tf.constant(each) for each in arrays]
    if work == "add":
        return tiny(kind, tensors)
    if kind == "forward":
        compiled = tf.function(function, jit_compile=XLA)
        return protocol.Prepared(lambda: compiled(*tensors).numpy(), lambda count: digest(compiled(*tensors)))

    @tf.function(jit_compile=XLA)
    def differentiate(x):
        operands = [x, *tensors[1:]]
        with tf.GradientTape() as tape:
            tape.watch(operands)
            value = tf.reduce_mean(tf.square(function(*operands)))
        return tape.gradient(value, operands)

    def step():
        return [each.numpy() for each in differentiate(tensors[0])]

    return protocol.Prepared(step, lambda count: [number for each in step() for number in digest(each)])


def prepare(row, check, file):
    work, kind, size, length = row
    if work in studies.STUDIES:
        return model_row(work, kind, size, length, check, file)
    return operation_row(work, kind, size)


protocol.serve(prepare)
