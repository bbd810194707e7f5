"""Operators of onnxruntime's own domain com.microsoft against onnxruntime: onnx_contrib.py PROGRAM

PROGRAM is tests/peers/onnx_real.cpp. One model for each operator and setting. Results that are integers, or go through integers, may be one
step off, for they are rounded from other sums.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.append(sys.path.pop(0))  # whose onnx.py is another
try:
    import numpy as np
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"left out: {missing}")
    sys.exit(77)

rng = np.random.default_rng(1)
F, I32, I64, U8, I8 = np.float32, np.int32, np.int64, np.uint8, np.int8


def normal(*extents):
    return rng.standard_normal(extents).astype(F)


def number(v, kind=F):
    return np.array(v, kind)


def whole(low, high, extents, kind):
    return rng.integers(low, high, extents).astype(kind)


CASES = {}  # name: (operator, operands, attributes, outputs, which operands are constants, tolerance)


def case(name, operator, operands, outputs=1, constants=(), tolerance=1e-4, **attributes):
    CASES[name] = (operator, operands, attributes, outputs, constants, tolerance)


STEP = 1.01  # an integer one step off
for kind, low, high, zero in ((U8, 0, 256, 113), (I8, -128, 128, -7)):
    k = np.dtype(kind).name
    q = lambda *e: whole(low, high, e, kind)
    scale_zero = [number(0.05), number(zero, kind)]
    for op in ("QLinearAdd", "QLinearMul"):
        case(f"{op} {k}", op, [q(2, 3, 37), *scale_zero, q(3, 1), number(0.02), number(3, kind), number(0.07), number(zero, kind)], tolerance=STEP)
    case(f"QLinearSigmoid {k}", "QLinearSigmoid", [q(3, 37), *scale_zero, number(1 / 256), number(low, kind)], constants=(1, 2, 3, 4), tolerance=STEP)
    case(f"QLinearLeakyRelu {k}", "QLinearLeakyRelu", [q(3, 37), *scale_zero, number(0.03), number(zero, kind)], constants=(1, 2, 3, 4), alpha=0.2, tolerance=STEP)
    for last in (0, 1):
        image = q(2, 9, 11, 3) if last else q(2, 3, 9, 11)
        case(f"QLinearAveragePool {k} {last}", "QLinearAveragePool", [image, *scale_zero, number(0.04), number(zero, kind)], kernel_shape=[3, 2], strides=[2, 1],
             pads=[1, 0, 1, 1], channels_last=last, tolerance=STEP)
        case(f"QLinearGlobalAveragePool {k} {last}", "QLinearGlobalAveragePool", [image, *scale_zero, number(0.01), number(zero, kind)], channels_last=last, tolerance=STEP)
    case(f"QLinearSoftmax {k}", "QLinearSoftmax", [q(2, 3, 17), *scale_zero, number(1 / 256), number(low, kind)], constants=(1, 2, 3, 4), axis=-1, opset=13, tolerance=STEP)
    case(f"QLinearSoftmax old {k}", "QLinearSoftmax", [q(2, 3, 17), *scale_zero, number(1 / 256), number(low, kind)], constants=(1, 2, 3, 4), axis=1, opset=12, tolerance=STEP)
    case(f"QLinearConcat {k}", "QLinearConcat", [number(0.06), number(zero, kind), q(2, 5), *scale_zero, q(2, 1), number(0.02), number(1, kind)], axis=1,
         constants=(0, 1, 3, 4, 6, 7), tolerance=STEP)
    case(f"QLinearWhere {k}", "QLinearWhere", [whole(0, 2, (3, 5), bool), q(3, 5), *scale_zero, q(1, 5), number(0.02), number(1, kind), number(0.06), number(zero, kind)],
         constants=(2, 3, 5, 6, 7, 8), tolerance=STEP)
    case(f"MatMulIntegerToFloat {k}", "MatMulIntegerToFloat", [q(2, 5, 19), whole(-128, 128, (19, 7), I8), number(0.03), np.abs(normal(7)), number(zero, kind), whole(-5, 5, (7,), I8), normal(7)],
         constants=(1,))
    case(f"QGemm {k}", "QGemm", [q(5, 19), number(0.03), number(zero, kind), whole(-128, 128, (7, 19), I8), np.abs(normal(7)), whole(0, 1, (7,), I8), whole(-900, 900, (7,), I32), number(9.0),
                                number(zero, kind)], transB=1, tolerance=STEP, constants=(3,))
    case(f"QGemm to f32 {k}", "QGemm", [q(19, 5), number(0.03), number(zero, kind), whole(-128, 128, (19, 7), I8), number(0.2), number(3, I8), whole(-900, 900, (1, 7), I32)], transA=1, alpha=0.5,
         constants=(3,))
    case(f"QLinearConv com.microsoft {k}", "QLinearConv", [q(2, 9, 11, 4), *scale_zero, whole(-60, 60, (5, 4, 3, 3), I8), np.abs(normal(5)) * F(0.01), whole(0, 1, (5,), I8), number(0.5),
                                                         number(zero, kind), whole(-50, 50, (5,), I32)], channels_last=1, pads=[1, 1, 0, 1], strides=[2, 1], constants=(3,), tolerance=STEP)
case("MatMulInteger16", "MatMulInteger16", [whole(-30000, 30000, (3, 7), np.int16), whole(-30000, 30000, (7, 5), np.int16)])
case("DynamicQuantizeMatMul", "DynamicQuantizeMatMul", [normal(2, 5, 300), whole(-128, 128, (300, 7), I8), np.abs(normal(7)), whole(-5, 5, (7,), I8), normal(7)], constants=(1, 3))
case("DynamicQuantizeMatMul plain", "DynamicQuantizeMatMul", [normal(1, 600), whole(0, 256, (600, 7), U8), number(0.01), number(130, U8)])
for directions, direction in ((1, "forward"), (1, "reverse"), (2, "bidirectional")):
    for name, scales, kind, zeros in (("columns", (directions, 44), I8, (directions, 44)), ("one", (directions,), U8, (directions,))):
        low, high, zero = (-127, 128, 0) if kind is I8 else (0, 256, 128)
        case(f"DynamicQuantizeLSTM {direction} {name}", "DynamicQuantizeLSTM",
             [normal(6, 3, 7), whole(low, high, (directions, 7, 44), kind), whole(low, high, (directions, 11, 44), kind), normal(directions, 88), None, normal(directions, 3, 11) * F(0.1),
              normal(directions, 3, 11), None, np.abs(normal(*scales)) * F(0.005) + F(0.002), np.full(zeros, zero, kind), np.abs(normal(*scales)) * F(0.005) + F(0.002), np.full(zeros, zero, kind)],
             outputs=3, constants=(1, 2, 8, 9, 10, 11), hidden_size=11, direction=direction, tolerance=1e-3)
case("DynamicQuantizeLSTM of zeros", "DynamicQuantizeLSTM",
     [np.zeros((2, 1, 3), F), whole(-127, 128, (1, 3, 8), I8), whole(-127, 128, (1, 2, 8), I8), None, None, None, None, None, number([0.01]), np.zeros(1, I8), number([0.01]), np.zeros(1, I8)],
     outputs=3, constants=(1, 2, 8, 9, 10, 11), hidden_size=2)
for bits in (2, 4, 8):
    for k, block in ((64, 32), (80, 16), (37, 32)):
        blocks, n = (k + block - 1) // block, 5
        packed = whole(0, 256, (n, blocks, block * bits // 8), U8)
        for zeros in (None, whole(0, 256, (n, (blocks * bits + 7) // 8), U8)):
            case(f"MatMulNBits {bits} {k} {zeros is None}", "MatMulNBits", [normal(2, 3, k), packed, np.abs(normal(n, blocks)), zeros], constants=(1, 2, 3), K=k, N=n, bits=bits, block_size=block,
                 tolerance=1e-3)
for kind in (0, 1):
    case(f"MatMulBnb4 {kind}", "MatMulBnb4", [normal(3, 32), whole(0, 256, (80,), U8), np.abs(normal(10))], constants=(1, 2), K=32, N=5, block_size=16, quant_type=kind)
a, b = normal(2, 3, 5, 7), normal(2, 3, 7, 4)
case("FusedMatMul", "FusedMatMul", [a, b], alpha=0.5)
case("FusedMatMul transposed", "FusedMatMul", [normal(2, 3, 7, 5), normal(2, 3, 4, 7)], transA=1, transB=1, alpha=-2.0)
case("FusedMatMul batches", "FusedMatMul", [normal(5, 2, 3, 7), b], transBatchA=1)
case("FusedMatMul batches both", "FusedMatMul", [normal(7, 2, 3, 5), normal(4, 2, 3, 7)], transBatchA=1, transA=1, transBatchB=1, transB=1)
case("TransposeMatMul", "TransposeMatMul", [normal(7, 5), normal(7, 4)], transA=1)
for name, numbers in (("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.3]), ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4])):
    case(f"FusedConv {name}", "FusedConv", [normal(2, 3, 9, 8), normal(4, 3, 3, 3), normal(4)], activation=name, activation_params=numbers, pads=[1, 0, 1, 2], constants=(1, 2))
    if name != "Clip":
        case(f"FusedGemm {name}", "FusedGemm", [normal(3, 5), normal(4, 5), normal(4)], activation=name, transB=1, alpha=0.5, beta=2.0,
             **{key: v for key, v in zip(("activation_alpha", "activation_beta"), numbers)})
case("FusedConv with a sum", "FusedConv", [normal(1, 2, 5, 5), normal(4, 1, 3, 3), normal(4), normal(1, 4, 3, 3)], activation="Relu", group=2, constants=(1,))
case("Gelu", "Gelu", [normal(3, 37) * F(3)])
case("BiasGelu", "BiasGelu", [normal(3, 37), normal(37)])
case("FastGelu", "FastGelu", [normal(3, 37) * F(3)])
case("FastGelu bias", "FastGelu", [normal(3, 37), normal(37)])
case("QuickGelu", "QuickGelu", [normal(3, 37)], alpha=1.3)
case("SkipLayerNormalization", "SkipLayerNormalization", [normal(2, 3, 16), normal(2, 3, 16), normal(16), normal(16), normal(16)], epsilon=1e-5)
case("SkipLayerNormalization sum", "SkipLayerNormalization", [normal(2, 3, 16), normal(3, 16), normal(16)], outputs=("y", "", "", "sum"))
case("SkipSimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization", [normal(2, 3, 16), normal(2, 3, 16), normal(16), normal(16)], outputs=("y", "", "", "sum"), epsilon=1e-6)
ids = whole(0, 11, (2, 5), I32)
case("SimplifiedLayerNormalization", "SimplifiedLayerNormalization", [normal(2, 3, 16), normal(16)], axis=-1, epsilon=1e-5)
case("EmbedLayerNormalization", "EmbedLayerNormalization", [ids, whole(0, 2, (2, 5), I32), normal(11, 8), normal(7, 8), normal(2, 8), normal(8), normal(8), number([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], I32)],
     outputs=("y", "m", "sum"))
case("EmbedLayerNormalization positions", "EmbedLayerNormalization", [ids, None, normal(11, 8), normal(7, 8), None, normal(8), normal(8), None, whole(0, 7, (2, 5), I32)], outputs=("y", "m"))
qt = lambda *e: whole(0, 256, e, U8)
case("QEmbedLayerNormalization", "QEmbedLayerNormalization", [ids, whole(0, 2, (2, 5), I32), qt(11, 8), qt(7, 8), qt(2, 8), qt(8), qt(8), None] + [number(0.01 * k) for k in range(1, 6)] +
     [number(120 + k, U8) for k in range(5)], outputs=("y", "m"), tolerance=1e-3)

D, H, B, S = 12, 3, 2, 5  # width, heads, batch, length
for name, extra, attributes in (
        ("", [], {}),
        ("causal", [], {"unidirectional": 1}),
        ("lengths", [number([5, 3], I32)], {}),
        ("mask", [number([[1, 1, 1, 1, 0], [1, 0, 1, 1, 1]], I32)], {"scale": 0.3}),
        ("mask by row", [whole(0, 2, (B, S, S), I32) | np.eye(S, dtype=I32)], {}),
        ("bias", [None, None, normal(B, H, S, S)], {}),
):
    case(f"Attention {name}", "Attention", [normal(B, S, D), normal(D, 3 * D), normal(3 * D), *extra], num_heads=H, **attributes)
case("Attention past", "Attention", [normal(B, S, D), normal(D, 3 * D), normal(3 * D), None, normal(2, B, H, 4, D // H)], outputs=2, num_heads=H, unidirectional=1)
case("Attention sizes", "Attention", [normal(B, S, D), normal(D, 2 * D + 6), normal(2 * D + 6)], num_heads=H, qkv_hidden_sizes=[D, D, 6])
case("QAttention", "QAttention", [whole(0, 256, (B, S, D), U8), whole(-128, 128, (D, 3 * D), I8), normal(3 * D), number(0.02), number(0.01), number([5, 3], I32), number(128, U8), number(0, I8)],
     num_heads=H, constants=(1, 3, 4, 6, 7))
L = 7
for name, operands, attributes, outputs in (
        ("", [normal(B, S, D), normal(B, L, D), normal(B, L, D)], {}, 1),
        ("bias", [normal(B, S, D), normal(B, L, D), normal(B, L, D), normal(3 * D)], {}, 1),
        ("mask", [normal(B, S, D), normal(B, L, D), normal(B, L, D), None, number([[1] * L, [1, 1, 1, 0, 0, 0, 0]], I32)], {"scale": 0.2}, 1),
        ("lengths", [normal(B, S, D), normal(B, L, D), normal(B, L, D), None, number([7, 3], I32)], {}, 1),
        ("added", [normal(B, S, D), normal(B, L, D), normal(B, L, D), None, None, normal(1, H, S, L)], {}, 1),
        ("past", [normal(B, S, D), normal(B, S, D), normal(B, S, D), None, None, None, normal(B, H, 4, D // H), normal(B, H, 4, D // H)], {"unidirectional": 1}, 3),
        ("of an encoder", [normal(B, S, D), normal(B, H, L, D // H), normal(B, H, L, D // H)], {}, 1),
):
    case(f"MultiHeadAttention {name}", "MultiHeadAttention", operands, outputs=outputs, num_heads=H, **attributes)
N, G, E = 4, 2, 16  # heads, groups of them, size
angles = np.outer(np.arange(32), 10000.0 ** (-np.arange(E // 2) / (E // 2)))
tables = [np.cos(angles).astype(F), np.sin(angles).astype(F)]
none = np.zeros((B, G, 0, E), F)
for rotary in (0, 1):
    for interleaved in (0, 1):
        for name, length, past, known, total, more in (("prompt", 5, 0, [4, 4], 5, {}), ("one", 1, 6, [6, 6], 7, {}), ("window", 5, 0, [4, 4], 5, {"local_window_size": 2}),
                                                      ("capped", 3, 4, [6, 6], 7, {"softcap": 3.0, "scale": 0.4}), ("smooth", 5, 0, [4, 4], 5, {"smooth_softmax": 1}),
                                                      ("lengths", 1, 9, [6, 8], 9, {})):
            if interleaved and not rotary:
                continue
            batch = 1 if name == "capped" else B  # onnxruntime takes several positions behind a cache of one sequence alone
            cache = [normal(batch, G, past, E), normal(batch, G, past, E)]
            case(f"GroupQueryAttention {name} {rotary}{interleaved}", "GroupQueryAttention",
                 [normal(batch, length, N * E), normal(batch, length, G * E), normal(batch, length, G * E), *cache, number(known[:batch], I32), number(total, I32)] + (tables if rotary else []), outputs=3,
                 constants=(6,), num_heads=N, kv_num_heads=G, do_rotary=rotary, rotary_interleaved=interleaved, **more)
case("GroupQueryAttention packed", "GroupQueryAttention", [normal(B, S, (N + 2 * G) * E), None, None, none, none, number([4, 4], I32), number(5, I32)], outputs=3, constants=(6,), num_heads=N, kv_num_heads=G)
for interleaved in (0, 1):
    case(f"RotaryEmbedding {interleaved}", "RotaryEmbedding", [normal(B, S, N * E), whole(0, 20, (B, S), I64), *tables], interleaved=interleaved)
    case(f"RotaryEmbedding offset {interleaved}", "RotaryEmbedding", [normal(B, N, S, E), number([3], I64), *tables], interleaved=interleaved)
case("ExpandDims", "ExpandDims", [normal(3, 4), number(1, I32)], constants=(1,))
case("Pad", "Pad", [normal(2, 3), number([0, 1, 1, 0], I64), number(2.5)], constants=(1, 2), mode="constant")
case("CDist", "CDist", [normal(4, 7), normal(5, 7)], metric="euclidean")


def main(program):
    wrong, left = 0, []
    with tempfile.TemporaryDirectory() as name:
        folders = []
        for title, (operator, operands, attributes, outputs, constants, tolerance) in CASES.items():
            names = [f"x{k}" if x is not None else "" for k, x in enumerate(operands)]
            results = list(outputs) if isinstance(outputs, tuple) else [f"y{k}" for k in range(outputs)]
            domain = "" if operator == "SimplifiedLayerNormalization" else "com.microsoft"  # of onnxruntime's, but in the standard's domain
            node = helper.make_node(operator, names, results, domain=domain, name=title, **{k: v for k, v in attributes.items() if v != []})
            given = {n: x for k, (n, x) in enumerate(zip(names, operands)) if x is not None and k not in constants}
            held = [numpy_helper.from_array(x, n) for k, (n, x) in enumerate(zip(names, operands)) if x is not None and k in constants]
            inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()]
            wanted = [r for r in results if r]
            made = lambda infos: helper.make_model(
                helper.make_graph([node], "g", inputs, infos, held),
                opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
            try:
                options = onnxruntime.SessionOptions()
                options.log_severity_level, options.intra_op_num_threads = 4, 1
                session = onnxruntime.InferenceSession(made([helper.make_empty_tensor_value_info(r) for r in wanted]).SerializeToString(), options, providers=["CPUExecutionProvider"])
                expected = session.run(None, given)
            except Exception as why:  # onnxruntime's own errors
                left.append(f"{title}: {str(why)[:160]}")
                continue
            folder = pathlib.Path(name) / title.replace(" ", "_")
            data = folder / "test_data_set_0"
            data.mkdir(parents=True)
            (folder / "model.onnx").write_bytes(made([helper.make_tensor_value_info(r, helper.np_dtype_to_tensor_dtype(y.dtype), None) for r, y in zip(wanted, expected)]).SerializeToString())
            (folder / "tolerance.txt").write_text(str(tolerance))
            for kind, values in (("input", given.values()), ("output", expected)):
                for k, v in enumerate(values):
                    (data / f"{kind}_{k}.pb").write_bytes(numpy_helper.from_array(np.asarray(v)).SerializeToString())
            folders.append(folder)
        lines = subprocess.run([program, *folders], capture_output=True, text=True).stdout.splitlines()
    for line in lines:
        if not line.startswith("equal"):
            print(line)
            wrong += 1
    for line in left:
        print(f"left out {line}")
    print(f"{len(lines)} cases of {len({c[0] for c in CASES.values()})} operators: {len(lines) - wrong} equal; {len(left)} that onnxruntime does not run")
    sys.exit(int(wrong > 0 or len(lines) != len(folders)))


main(sys.argv[1])
