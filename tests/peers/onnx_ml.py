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
    from sklearn import (calibration, cluster, compose, cross_decomposition, decomposition, discriminant_analysis, ensemble, feature_selection,
                         gaussian_process, impute, kernel_approximation, linear_model, mixture, multiclass, naive_bayes, neighbors, neural_network,
                         pipeline, preprocessing, svm, tree)
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
        "forest": ensemble.RandomForestClassifier(21),
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
    yield from machines(x, value, two, four)
    yield from others(x, value, targets, two, four)
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


def machines(x, value, two, four):
    """Support vector machines: every kernel, with and without probabilities."""
    floats = FloatTensorType([None, RECORDS[1]])
    for kernel in ("linear", "poly", "rbf", "sigmoid"):
        own = {"kernel": kernel, "gamma": 0.2, "coef0": 0.5, "degree": 3}
        yield f"svr_{kernel}", svm.SVR(**own).fit(x, value), floats, x
        outside = svm.OneClassSVM(**own).fit(x)
        # onnxruntime sums in f32 numbers of which little is left: only records whose score is more than its rounding errors.
        yield f"one_class_{kernel}", outside, floats, x[numpy.abs(outside.decision_function(x)) > 0.05]
        for name, y in (("two", two), ("four", four)):
            yield f"svc_{kernel}_of_{name}", svm.SVC(**own).fit(x, y), floats, x
            yield f"svc_{kernel}_of_{name}_with_probabilities", svm.SVC(probability=True, random_state=1, **own).fit(x, y), floats, x
    yield "svc_poly_of_degree_2", svm.SVC(kernel="poly", degree=2, gamma=0.3).fit(x, four), floats, x
    yield "svc_ovr", svm.SVC(decision_function_shape="ovr").fit(x, four), floats, x
    yield "svc_ties", svm.SVC(break_ties=True).fit(x, four), floats, x
    yield "nu_svr", svm.NuSVR().fit(x, value), floats, x
    yield "nu_svc", svm.NuSVC(nu=0.2, probability=True, random_state=1).fit(x, four), floats, x
    yield "linear_svc", svm.LinearSVC().fit(x, four), floats, x
    yield "linear_svr", svm.LinearSVR().fit(x, value), floats, x


def others(x, value, targets, two, four):
    """What skl2onnx makes of other models, in operators of both domains."""
    floats = FloatTensorType([None, RECORDS[1]])
    kernel = gaussian_process.kernels.RBF(2.0) + gaussian_process.kernels.WhiteKernel(0.1)
    for name, model, y in (
        ("gaussian_process", gaussian_process.GaussianProcessRegressor(kernel, optimizer=None), value),
        ("gaussian_process_of_two", gaussian_process.GaussianProcessClassifier(gaussian_process.kernels.RBF(2.0), optimizer=None), two),
        ("neighbors", neighbors.KNeighborsRegressor(5), value),
        ("neighbors_of_two_targets", neighbors.KNeighborsRegressor(3), targets),
        ("neighbors_by_distance", neighbors.KNeighborsRegressor(5, weights="distance"), value),
        ("neighbors_manhattan", neighbors.KNeighborsClassifier(5, metric="manhattan"), four),
        ("neighbors_classes", neighbors.KNeighborsClassifier(5), four),
        ("neighbors_centroids", neighbors.NearestNeighbors(n_neighbors=3), None),
        ("bayes_gaussian", naive_bayes.GaussianNB(), four),
        ("bayes_bernoulli", naive_bayes.BernoulliNB(), four),
        ("perceptron_classes", neural_network.MLPClassifier((8,), max_iter=20, random_state=1), four),
        ("perceptron_two", neural_network.MLPClassifier((8, 5), max_iter=20, activation="tanh", random_state=1), two),
        ("perceptron", neural_network.MLPRegressor(hidden_layer_sizes=(8,), max_iter=20, random_state=1), value),
        ("discriminants_linear", discriminant_analysis.LinearDiscriminantAnalysis(), four),
        ("discriminants_quadratic", discriminant_analysis.QuadraticDiscriminantAnalysis(), four),
        ("one_vs_rest", multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), four),
        ("one_vs_one", multiclass.OneVsOneClassifier(linear_model.LogisticRegression()), four),
        ("voting", ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=4))], voting="soft", flatten_transform=False), four),
        ("voting_hard", ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=4))], flatten_transform=False), four),
        ("voting_numbers", ensemble.VotingRegressor([("a", linear_model.LinearRegression()), ("b", tree.DecisionTreeRegressor(max_depth=4))]), value),
        ("stacking", ensemble.StackingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=4))]), four),
        ("stacking_numbers", ensemble.StackingRegressor([("a", linear_model.LinearRegression()), ("b", tree.DecisionTreeRegressor(max_depth=4))]), value),
        ("bagging", ensemble.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=4), 5), four),
        ("bagging_numbers", ensemble.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=4), 5), value),
        ("ada_classes", ensemble.AdaBoostClassifier(n_estimators=5), four),
        ("extra_classes", ensemble.ExtraTreesClassifier(10, max_depth=5), four),
        ("isolation", ensemble.IsolationForest(n_estimators=10, random_state=1), None),
        ("outlier_factor", neighbors.LocalOutlierFactor(n_neighbors=5, novelty=True), None),
        ("calibrated", calibration.CalibratedClassifierCV(linear_model.LogisticRegression(), cv=3), four),
        ("calibrated_isotonic", calibration.CalibratedClassifierCV(linear_model.LogisticRegression(), method="isotonic", cv=3), two),
        ("means", cluster.KMeans(4, n_init=2, random_state=1), None),
        ("means_mini", cluster.MiniBatchKMeans(4, n_init=2, random_state=1), None),
        ("mixture", mixture.GaussianMixture(3, random_state=1), None),
        ("mixture_diagonal", mixture.GaussianMixture(3, covariance_type="diag", random_state=1), None),
        ("mixture_bayes", mixture.BayesianGaussianMixture(n_components=3, covariance_type="tied", random_state=1), None),
        ("components", decomposition.PCA(3), None),
        ("components_truncated", decomposition.TruncatedSVD(3), None),
        ("components_kernel", decomposition.KernelPCA(3, kernel="rbf"), None),
        ("components_incremental", decomposition.IncrementalPCA(3), None),
        ("least_squares", cross_decomposition.PLSRegression(2), targets),
        ("selection", feature_selection.SelectKBest(k=3), four),
        ("selection_variance", feature_selection.VarianceThreshold(0.01), None),
        ("selection_from_model", feature_selection.SelectFromModel(linear_model.Lasso(0.1)), value),
        ("poisson", linear_model.PoissonRegressor(), numpy.abs(value)),
        ("gamma", linear_model.GammaRegressor(), numpy.abs(value) + 0.1),
        ("huber", linear_model.HuberRegressor(), value),
        ("bayes_ridge", linear_model.BayesianRidge(), value),
        ("quantile", linear_model.QuantileRegressor(alpha=0.01), value),
        ("passive", linear_model.PassiveAggressiveClassifier() if hasattr(linear_model, "PassiveAggressiveClassifier") else linear_model.Perceptron(), four),
        ("power", preprocessing.PowerTransformer(), None),
        ("quantiles", preprocessing.QuantileTransformer(n_quantiles=20), None),
        ("splines", preprocessing.KBinsDiscretizer(3, encode="ordinal"), None),
        ("neighbors_imputer", impute.KNNImputer(n_neighbors=2), None),
        ("columns", compose.ColumnTransformer([("a", preprocessing.StandardScaler(), [0, 2]), ("b", preprocessing.MinMaxScaler(), [1, 5])], remainder="passthrough"), None),
        ("nystroem", kernel_approximation.Nystroem(n_components=10, random_state=1), None),
        ("fourier", kernel_approximation.RBFSampler(n_components=10, random_state=1), None),
    ):
        try:
            fitted = model.fit(x) if y is None else model.fit(x, y)
        except Exception as why:
            print(f"left out {name}: scikit-learn: {str(why).splitlines()[0]}")
            continue
        yield name, fitted, floats, x


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
    both = [TensorProto.INT64, TensorProto.FLOAT]
    for classes in (2, 3):
        pairs, vectors = classes * (classes - 1) // 2, 2 * classes
        numbers = lambda *shape: RANDOM.normal(size=shape).ravel().tolist()
        machine = {"kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0], "vectors_per_class": [2] * classes, "classlabels_ints": [5, 3, 8][:classes],
                   "support_vectors": numbers(vectors, 3), "coefficients": numbers(classes - 1, vectors), "rho": numbers(pairs)}
        sigmoids = {"prob_a": numbers(pairs), "prob_b": numbers(pairs)}
        straight = {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0], "classlabels_ints": [5, 3, 8][:classes], "coefficients": numbers(classes, 3), "rho": [0.3]}
        above = dict(straight, coefficients=numpy.abs(straight["coefficients"]).tolist())
        for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"):
            own = {"post_transform": transform}
            if transform != "PROBIT":  # of numbers outside [0, 1]
                yield f"svm_{classes}_{transform}", model("SVMClassifier", TensorProto.FLOAT, machine | own, both), x
                yield f"svm_linear_{classes}_{transform}", model("SVMClassifier", TensorProto.FLOAT, straight | own, both), x
                yield f"svm_linear_positive_{classes}_{transform}", model("SVMClassifier", TensorProto.FLOAT, above | own, both), x
            yield f"svm_probabilities_{classes}_{transform}", model("SVMClassifier", TensorProto.FLOAT, machine | sigmoids | own, both), x
    yield "svm_of_integers", model("SVMClassifier", TensorProto.INT64, machine, both), whole
    yield "svm_of_doubles", model("SVMClassifier", TensorProto.DOUBLE, machine, both), x.astype(numpy.float64)
    straight = {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0], "coefficients": [1.0, -2.0, 0.5], "rho": [0.3], "n_supports": 0}
    yield "svm_regressor_linear", model("SVMRegressor", TensorProto.FLOAT, straight), x
    yield "svm_regressor_linear_one_class", model("SVMRegressor", TensorProto.FLOAT, straight | {"one_class": 1}), x


def converted_model(model, kind):
    """By skl2onnx, with tensors for maps where it makes maps."""
    arguments = {"initial_types": [("x", kind)], "target_opset": {"": 17, "ai.onnx.ml": 3}}
    if not (hasattr(model, "predict") and hasattr(model, "classes_")):
        return skl2onnx.convert_sklearn(model, **arguments)
    try:
        return skl2onnx.convert_sklearn(model, options={id(model): {"zipmap": False}}, **arguments)
    except (NameError, ValueError) as why:
        if "zipmap" not in str(why):
            raise
        return skl2onnx.convert_sklearn(model, **arguments)


def main(program):
    warnings.simplefilter("ignore")
    numpy.random.seed(45)  # scikit-learn's, where a model is not given one
    with tempfile.TemporaryDirectory() as place:
        folders = []
        for name, model, kind, x in trained():
            try:
                converted = converted_model(model, kind)
            except Exception as why:
                print(f"left out {name}: skl2onnx: {str(why).splitlines()[0][:150]}")
                continue
            try:
                store(pathlib.Path(place) / name, converted, [[x[:50]]])
            except Exception as why:
                print(f"left out {name}: onnxruntime: {str(why)[:150]}")
                continue
            folders.append(pathlib.Path(place) / name)
        for name, model, x in made_by_hand():
            folders.append(pathlib.Path(place) / name)
            store(folders[-1], model, [[x]])
        compare(program, folders)


main(sys.argv[1])
