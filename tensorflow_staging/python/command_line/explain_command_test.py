# SPDX-License-Identifier: Apache-2.0
"""`python -m tensorflow.staging explain` reports on graphs in files, and says in one line why it cannot."""

import os
import subprocess
import sys

import pytest
import tensorflow as tf

from tensorflow_staging.python.command_line import main
from tensorflow_staging.python.testing import report_graphs
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util


@pytest.fixture
def model(tmp_path):
  """The path of a MetaGraph file with a model, and its report."""
  report_graphs.model()
  path = tmp_path / "model.meta"
  tf.train.export_meta_graph(str(path))
  return path, tf.staging.explain(config=smart_stage_sessions.smart_stage_config())


def _error(capsys, *arguments) -> str:
  """Runs a command that must be refused, and returns the line that says why."""
  try:
    status = main.main([str(argument) for argument in arguments])
  except SystemExit as error:
    status = error.code
  assert status == 2
  output = capsys.readouterr()
  assert output.out == ""
  line, = output.err.splitlines()
  assert line.startswith("python -m tensorflow.staging explain: error: ")
  return line


@pytest.mark.parametrize("suffix", [".meta", ".pb", ".pbtxt"])
def test_the_report_of_a_file_is_that_of_its_graph(tmp_path, capsys, model, suffix, graph):
  path, report = model
  if suffix != ".meta":
    path = tmp_path / f"model{suffix}"
    tf.io.write_graph(graph, str(tmp_path), path.name, as_text=suffix == ".pbtxt")
  assert main.main(["explain", str(path)]) == 0
  output = capsys.readouterr()
  assert output.out == f"{report}\n"
  assert output.err == ""


def test_several_graphs_give_a_report_each(tmp_path, capsys, model):
  path, report = model
  other = tmp_path / "other.pbtxt"
  other.write_text('node { name: "a" op: "NoOp" }')
  assert main.main(["explain", str(path), str(other)]) == 0
  output = capsys.readouterr().out
  assert output.startswith(f"== {path} ==\n{report}\n\n== {other} ==\nSmartStage is on: nothing can run ahead")


def test_no_report_comes_before_a_graph_that_cannot_be_read(tmp_path, capsys, model):
  assert "'missing.meta' cannot be read" in _error(capsys, "explain", model[0], "missing.meta")


@pytest.mark.parametrize("option", ["--html", "--svg"])
def test_a_page_is_for_one_graph(tmp_path, capsys, model, option):
  message = _error(capsys, "explain", model[0], model[0], f"{option}={tmp_path / 'report'}")
  assert f"{option} is for one graph, got 2" in message


def test_the_page_and_the_picture_are_those_of_the_report(tmp_path, capsys, model):
  path, report = model
  page = tmp_path / "report.html"
  picture = tmp_path / "report.svg"
  assert main.main(["explain", str(path), f"--html={page}", f"--svg={picture}"]) == 0
  assert page.read_text() == report.to_html()
  assert "</svg>" in picture.read_text()


def test_marked_nodes_of_the_file_stay_marked_and_others_can_be_marked(tmp_path, capsys):
  record = tf.identity(test_util.dataset_record(3), name="first")
  tf.train.mark_target_node(tf.identity(tf.identity(record, name="second"), name="third"))
  tf.train.export_meta_graph(str(tmp_path / "model.meta"))
  assert main.main(["explain", str(tmp_path / "model.meta")]) == 0
  assert "3 nodes, all" in capsys.readouterr().out
  assert main.main(["explain", str(tmp_path / "model.meta"), "--target_nodes=second,first:0"]) == 0
  assert "1 node, the only one" in capsys.readouterr().out


def test_the_options_of_the_stages(capsys, model):
  path, _ = model
  assert main.main(["explain", str(path), "--name=ahead", "--no_carry_elements"]) == 0
  output = capsys.readouterr().out
  assert "Stage 'ahead'" in output
  assert "also keeps" not in output


def test_lookups_that_run_ahead(tmp_path, capsys):
  tf.train.GradientDescentOptimizer(0.1).minimize(report_graphs.model())
  path = tmp_path / "model.meta"
  tf.train.export_meta_graph(str(path))
  capsys.readouterr()
  arguments = ["explain", str(path), "--async_embedding"]
  assert main.main([*arguments, "--async_embedding_capacity=3", "--async_embedding_threads=2"]) == 0
  assert "May miss the updates of the last 5 steps in the variables:\n    'embedding'" in capsys.readouterr().out
  assert main.main(arguments) == 0
  assert "May miss the updates of the last 2 steps" in capsys.readouterr().out


@pytest.mark.parametrize("name, content, message", [
    ("model.txt", b"", "has the suffix '.txt'; allowed are a MetaGraph (.meta) and a GraphDef (.pb, "),
    ("model.meta", b"\xff\xff", "model.meta' holds no graph in the format of its suffix; allowed are"),
    ("model.pb", b"\xff\xff", "model.pb' holds no graph in the format of its suffix; allowed are"),
    ("model.pbtxt", b"node: 3", "model.pbtxt' holds no graph in the format of its suffix; allowed are"),
    ("model.pbtxt", b"\xff\xff", "model.pbtxt' holds no graph in the format of its suffix; allowed are"),
    ("model.pb", b"", "model.pb' holds no node of a graph; allowed are"),
    ("model.pbtxt", b"node { name: 'a' op: 'NoSuchOp' }", "Op type not registered 'NoSuchOp'"),
    ("model.pbtxt", b"node { name: 'a' op: 'Identity' input: 'b' }", "is no graph that can be loaded"),
])
def test_files_without_a_graph(tmp_path, capsys, name, content, message):
  (tmp_path / name).write_bytes(content)
  assert message in _error(capsys, "explain", tmp_path / name)


def test_a_metagraph_in_a_file_of_a_graph_def(tmp_path, capsys, model):
  path, _ = model
  path = path.rename(tmp_path / "model.pb")
  assert "model.pb' holds no" in _error(capsys, "explain", path)


@pytest.mark.parametrize("arguments, message", [
    (["--target_nodes=hash/bucket,none"], "--target_nodes: the graph has no node 'none'; allowed are names of its"),
    (["--target_nodes=a b"], "--target_nodes: the graph has no node 'a b'"),
    (["--name=a name"], "--name: name must be a name scope that begins with"),
    (["--async_embedding", "--async_embedding_capacity=0"], "'0' must be an integer from 1 to 2147483647"),
    (["--async_embedding_threads=x"], "--async_embedding_threads: 'x' must be an integer from 1 to 2147483647"),
    (["--html=/no/such/folder/report.html"], "'/no/such/folder/report.html' cannot be written: No such file"),
    (["--op_library=/no/library.so"], "--op_library: '/no/library.so' cannot be loaded"),
])
def test_arguments_that_cannot_be_used(capsys, model, arguments, message):
  path, _ = model
  assert message in _error(capsys, "explain", path, *arguments)


@pytest.mark.parametrize("flag", ["--html", "--svg"])
def test_a_report_does_not_replace_the_graph(capsys, model, flag):
  path, _ = model
  content = path.read_bytes()
  same = path.parent / ".." / path.parent.name / path.name
  assert f"{flag}: '{same}' is the file of the graph" in _error(capsys, "explain", path, f"{flag}={same}")
  assert path.read_bytes() == content


def test_a_report_does_not_replace_the_other(capsys, model, tmp_path):
  path, _ = model
  report = tmp_path / "report"
  assert "--svg: '" in (message := _error(capsys, "explain", path, f"--html={report}", f"--svg={report}"))
  assert "is the file of --html" in message
  assert not report.exists()


def test_a_reason_of_tensorflow_is_a_sentence(tmp_path, capsys):
  path = tmp_path / "graph.pbtxt"
  path.write_text('node { name: "a" op: "NoOp" } node { name: "a" op: "NoOp" }')
  assert _error(capsys, "explain", path).endswith("Node 'a' is not unique. Ops of libraries need --op_library.")


def test_a_library_in_the_current_folder(tmp_path, capsys, model, monkeypatch):
  path, _ = model
  (tmp_path / "ops.so").write_text("no library")
  monkeypatch.chdir(tmp_path)
  # The loader has found the file, and says what is wrong with it.
  assert "No such file" not in _error(capsys, "explain", path, "--op_library=ops.so")


def test_a_file_that_does_not_exist(tmp_path, capsys):
  assert "model.pb' cannot be read: No such file or directory." in _error(capsys, "explain", tmp_path / "model.pb")


@pytest.mark.parametrize("api", ["1", "2"])
def test_the_program_prints_the_report_and_nothing_else(tmp_path, model, api):
  path, report = model
  environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_CPP_")}
  done = subprocess.run(
      [sys.executable, "-m", "tensorflow.staging", "explain", path], cwd=tmp_path, capture_output=True, text=True,
      env={**environment, "TF_API_VERSION": api}, timeout=test_util.PROGRAM_SECONDS, check=False)
  assert (done.returncode, done.stdout, done.stderr) == (0, f"{report}\n", "")
