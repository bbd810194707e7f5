"""Models of scikit-learn, converted by skl2onnx, as load_onnx and onnxruntime compute them: onnx_ml.py PROGRAM

PROGRAM is tests/peers/onnx_cases.cpp, which compares a model's outputs with stored ones. Here onnxruntime's are stored. Fails if one is
wrong or refused.
"""

import pathlib
import sys
import tempfile
import warnings

sys.path.append(sys.path.pop(0))  # whose onnx.py is another
try:
    import numpy
    import skl2onnx
    from onnx import TensorProto, helper
    from onnx_stored import compare, store
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType
    from sklearn import ensemble, impute, linear_model, pipeline, preprocessing, tree
except ImportError as missing:
    print(f"left out: {missing}")
    sys.exit(77)

RANDOM = numpy.random.default_rng(45)
RECORDS = 200, 6


def trained():
    """Names, models that were trained, and the type of their input."""
    x = RANDOM.normal(size=RECORDS).astype(numpy.float32)
    value = x[:, 0] * 2 - x[:, 1] * x[:, 2] + numpy.abs(x[:, 3])
    targets = numpy.stack([value, -value + x[:, 4]], 1)
    two, four = (value > 0).astype(numpy.int64) + 3, numpy.digitize(value, [-1, 0, 1.5]) * 2
    regressors = {
        "tree": tree.DecisionTreeRegressor(max_depth=7),
        "forest": ensemble.RandomForestRegressor(20),
        "extra": ensemble.ExtraTreesRegressor(10, max_depth=5),
        "boosted": ensemble.GradientBoostingRegressor(n_estimators=30),
        "histogram": ensemble.HistGradientBoostingRegressor(max_iter=20),
        "linear": linear_model.LinearRegression(),
        "elastic": linear_model.ElasticNet(alpha=0.1),
        "ada": ensemble.AdaBoostRegressor(n_estimators=5),
    }
    classifiers = {
        "tree": tree.DecisionTreeClassifier(max_depth=6),
        "forest": ensemble.RandomForestClassifier(20),
        "boosted": ensemble.GradientBoostingClassifier(n_estimators=10),
        "histogram": ensemble.HistGradientBoostingClassifier(max_iter=10),
        "logistic": linear_model.LogisticRegression(),
        "sgd": linear_model.SGDClassifier(),
        "ridge": linear_model.RidgeClassifier(),
    }
    floats = FloatTensorType([None, RECORDS[1]])
    for name, model in regressors.items():
        yield f"regressor_{name}", model.fit(x, value), floats, x
    yield "regressor_forest_of_two", ensemble.RandomForestRegressor(10).fit(x, targets), floats, x
    yield "regressor_linear_of_two", linear_model.LinearRegression().fit(x, targets), floats, x
    for name, model in classifiers.items():
        yield f"classifier_{name}_of_two", model.fit(x, two), floats, x
        yield f"classifier_{name}_of_four", model.fit(x, four), floats, x
    yield "classifier_forest_of_doubles", ensemble.RandomForestClassifier(5).fit(x, four), DoubleTensorType([None, RECORDS[1]]), x.astype(
        numpy.float64)
    whole = RANDOM.integers(0, 5, RECORDS)
    holes = numpy.where(RANDOM.uniform(size=RECORDS) < 0.2, numpy.nan, x).astype(numpy.float32)
    prepared = {
        "standard": preprocessing.StandardScaler(),
        "robust": preprocessing.RobustScaler(),
        "extremes": preprocessing.MinMaxScaler(),
        "largest": preprocessing.MaxAbsScaler(),
        "norm_l1": preprocessing.Normalizer("l1"),
        "norm_l2": preprocessing.Normalizer("l2"),
        "binarizer": preprocessing.Binarizer(threshold=0.25),
        "powers": preprocessing.PolynomialFeatures(2),
        "bins": preprocessing.KBinsDiscretizer(4, encode="onehot-dense"),
    }
    for name, model in prepared.items():
        yield f"prepared_{name}", model.fit(x), floats, x
    yield "prepared_imputer", impute.SimpleImputer().fit(holes), floats, holes
    yield "prepared_one_hot", preprocessing.OneHotEncoder(sparse_output=False).fit(whole), Int64TensorType([None, RECORDS[1]]), whole
    yield "prepared_ordinal", preprocessing.OrdinalEncoder().fit(whole), Int64TensorType([None, RECORDS[1]]), whole
    chain = pipeline.make_pipeline(impute.SimpleImputer(strategy="median"), preprocessing.StandardScaler(), ensemble.RandomForestClassifier(7))
    yield "pipeline", chain.fit(holes, four), floats, holes


def made_by_hand():
    """Single nodes that converters make of other libraries' models, and an input."""

    def model(kind, type_in, attributes, outputs=(TensorProto.FLOAT,)):
        names = [f"y{i}" for i in range(len(outputs))]
        node = helper.make_node(kind, ["x"], names, domain="ai.onnx.ml", **attributes)
        inputs = [helper.make_tensor_value_info("x", type_in, [None, 3])]
        graph = helper.make_graph([node], kind, inputs, [helper.make_tensor_value_info(n, t, None) for n, t in zip(names, outputs)])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)

    x = RANDOM.normal(size=(40, 3)).astype(numpy.float32)
    whole = RANDOM.integers(-2, 4, (40, 3))
    for norm in ("MAX", "L1", "L2"):
        yield f"normalizer_{norm}", model("Normalizer", TensorProto.FLOAT, {"norm": norm}), numpy.abs(x)
    yield "labels_of_integers", model("LabelEncoder", TensorProto.INT64, {"keys_int64s": [0, 3, -2], "values_floats": [0.5, 1, 2], "default_float": 9.0}), whole
    yield "labels_to_integers", model("LabelEncoder", TensorProto.FLOAT, {"keys_floats": [0.0, float(x[0, 0])], "values_int64s": [4, 5], "default_int64": -7}, [TensorProto.INT64]), x
    branches = {"nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0], "nodes_values": [0.1, 0, 0],
                "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "classlabels_int64s": [10, 20, 30],
                "class_treeids": [0, 0, 0], "class_nodeids": [1, 1, 2], "class_ids": [0, 1, 2], "class_weights": [0.5, 0.25, -1.0]}
    for mode in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ"):
        modes = {"nodes_modes": [f"BRANCH_{mode}", "LEAF", "LEAF"], "post_transform": "SOFTMAX"}
        yield f"trees_{mode}", model("TreeEnsembleClassifier", TensorProto.FLOAT, branches | modes, [TensorProto.INT64, TensorProto.FLOAT]), x
    for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        own = {"coefficients": [0.5, 1, -1, 0.25, 2, 1], "intercepts": [0.1, -0.2], "classlabels_ints": [7, 9], "post_transform": transform}
        yield f"linear_{transform}", model("LinearClassifier", TensorProto.FLOAT, own, [TensorProto.INT64, TensorProto.FLOAT]), x


def main(program):
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        folders = []
        for name, model, kind, x in trained():
            options = {id(model): {"zipmap": False}} if hasattr(model, "predict") and hasattr(model, "classes_") else None
            try:
                converted = skl2onnx.convert_sklearn(model, initial_types=[("x", kind)], options=options, target_opset={"": 17, "ai.onnx.ml": 3})
            except Exception as why:
                print(f"left out {name}: skl2onnx: {str(why).splitlines()[0]}")
                continue
            folders.append(pathlib.Path(place) / name)
            store(folders[-1], converted, [[x[:50]]])
        for name, model, x in made_by_hand():
            folders.append(pathlib.Path(place) / name)
            store(folders[-1], model, [[x]])
        compare(program, folders)


main(sys.argv[1])
