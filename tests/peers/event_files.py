"""TensorBoard reads what io::event_writer writes, by its loader and through its server; io::read_scalars reads what TensorBoard's writer does."""

import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    from google.protobuf import text_format
    from tensorboard import program
    from tensorboard.backend import application
    from tensorboard.backend.event_processing import data_ingester
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.compat.proto import event_pb2, graph_pb2, summary_pb2
    from tensorboard.plugins.histogram import summary_v2 as histogram
    from tensorboard.plugins.hparams import plugin_data_pb2
    from tensorboard.plugins.scalar import summary_v2 as scalar
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util import tensor_util
    from werkzeug.test import Client
except ImportError as missing:
    print("left out:", missing)
    sys.exit(77)

PROGRAM = sys.argv[1]


def histogram_of(values):
    """TensorBoard's own 30 buckets."""
    proto = histogram.histogram_pb("x", values)
    return tensor_util.make_ndarray(proto.value[0].tensor)


def ours(folder):
    subprocess.run([PROGRAM, "write", str(folder)], check=True)
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()

    def tensor(tag):
        every = events.Tensors(tag)
        return [(e.step, tensor_util.make_ndarray(e.tensor_proto)) for e in every]

    def plugin(tag):
        return events.SummaryMetadata(tag).plugin_data.plugin_name

    loss = tensor("loss")
    assert [step for step, _ in loss] == list(range(100))
    assert all(value == np.float32(1 / (1 + step)) for step, value in loss)
    assert np.isinf(tensor("extreme")[0][1])
    values = np.array([np.float32((i * 7919) % 1009) / np.float32(100) - np.float32(3) for i in range(1009)])
    for tag, data in (("values", values), ("equal", np.full(7, 2.5)), ("none", np.array([]))):
        step, buckets = tensor(tag)[0]
        assert step == 5 and buckets.shape == (30, 3), tag
        expected = histogram_of(data)
        np.testing.assert_allclose(buckets[:, :2], expected[:, :2], rtol=1e-6, atol=1e-6)
        # A value on an edge may fall to either side of it, by a rounding.
        assert abs(buckets[:, 2] - expected[:, 2]).sum() <= 4, tag
        assert buckets[:, 2].sum() == len(data)
    picture = tensor("picture")[0][1]
    assert picture[:2].tolist() == [b"4", b"3"] and len(picture) == 4
    try:
        from PIL import Image

        pixels = np.concatenate([np.asarray(Image.open(io.BytesIO(p))).ravel() for p in picture[2:]])
        assert abs(pixels - np.arange(72) / 71 * 255).max() <= 0.5001
    except ImportError:
        pass
    assert tensor("note")[0][1].tolist() == [b"# a *title*"]
    assert [plugin(t) for t in ("loss", "values", "picture", "note")] == ["scalars", "histograms", "images", "text"]
    start = plugin_data_pb2.HParamsPluginData.FromString(
        events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content)
    hparams = start.session_start_info.hparams
    assert hparams["rate"].number_value == 0.5 and hparams["optimizer"].string_value == "adam" and hparams["shuffle"].bool_value
    graph = events.Graph()
    names = {node.name for node in graph.node}
    assert len(names) == len(graph.node)
    assert all(name in names for node in graph.node for name in node.input)
    assert graph == graph_pb2.GraphDef.FromString((folder / "graph.pb").read_bytes())
    assert graph == text_format.Parse((folder / "graph.pbtxt").read_text(), graph_pb2.GraphDef())
    stats = events.RunMetadata("step 3").step_stats.dev_stats[0].node_stats
    assert all(s.node_name in names and s.all_end_rel_micros == 8 for s in stats) and len(stats) > 5


def server(folder):
    """What the browser is told."""
    board = program.TensorBoard()
    board.configure(argv=[None, "--logdir", str(folder.parent), "--load_fast", "false", "--reload_interval", "0"])
    ingester = data_ingester.LocalDataIngester(board.flags)
    ingester.start()
    app = application.TensorBoardWSGIApp(board.flags, board.plugin_loaders, ingester.data_provider,
                                         board.assets_zip_provider, ingester.deprecated_multiplexer)
    client = Client(app)

    def get(path):
        for _ in range(100):
            answer = client.get("/data/plugin/" + path)
            if answer.status_code == 200 and len(answer.get_data()) > 4:
                return answer.get_data()
            time.sleep(0.1)
        raise AssertionError(f"{path}: {answer.status}")

    run = folder.name
    assert len(json.loads(get(f"scalars/scalars?run={run}&tag=loss"))) == 100
    assert b"block/hidden/matmul" in get(f"graphs/graph?run={run}")
    assert b"all_end_rel_micros" in get(f"graphs/run_metadata?run={run}&tag=step%203")
    request = {"experimentName": "", "allowedStatuses": ["STATUS_SUCCESS"], "colParams": [], "startIndex": 0, "sliceSize": 10}
    answer = client.post("/data/plugin/hparams/session_groups", data=json.dumps(request),
                         headers={"Content-Type": "application/json"})
    groups = json.loads(answer.get_data())["sessionGroups"]
    assert groups[0]["hparams"]["rate"] == 0.5, groups


def theirs(folder):
    writer = EventFileWriter(str(folder))
    for step in range(5):
        value = summary_pb2.Summary.Value(tag="old", simple_value=step / 4)
        writer.add_event(event_pb2.Event(wall_time=12.5, step=step, summary=summary_pb2.Summary(value=[value])))
        writer.add_event(event_pb2.Event(wall_time=13.5, step=step, summary=scalar.scalar_pb("new", step / 8)))
    writer.close()
    lines = subprocess.run([PROGRAM, "read", str(folder)], check=True, capture_output=True, text=True).stdout.split("\n")
    old = [line.split() for line in lines if line.startswith("old ")]
    new = [line.split() for line in lines if line.startswith("new")]
    assert [(int(f[1]), float(f[2]), float(f[3])) for f in old] == [(s, s / 4, 12.5) for s in range(5)], lines
    assert [(int(f[1]), float(f[2])) for f in new] == [(s, s / 8) for s in range(5)], lines


with tempfile.TemporaryDirectory() as root:
    ours(pathlib.Path(root) / "logs" / "run")
    server(pathlib.Path(root) / "logs" / "run")
    theirs(pathlib.Path(root) / "theirs")
print("tensorboard: passed")
