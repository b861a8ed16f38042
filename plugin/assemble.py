# SPDX-License-Identifier: Apache-2.0
"""Assembles the wheel tensorflow-staging from the plugin's library and the Python files that it needs."""

import argparse
import email.message
import pathlib
import re
import sys
import zipfile

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT / "wheel"))

import platform_tag  # noqa: E402  # pylint: disable=g-import-not-at-top,wrong-import-position
import record  # noqa: E402

_NAME = "tensorflow_staging"
_SUMMARY = "Pipeline staging for TensorFlow: input that runs ahead of the training step."
_DESCRIPTION = """\
# Pipeline staging for TensorFlow

Runs the part of a training step that needs no variable, such as lookups and hashing, ahead of it, on its own threads.

```python
import tensorflow_staging

model.fit(data, callbacks=[tensorflow_staging.SmartStage()])  # Keras
step = tensorflow_staging.ahead(step)  # a tf.function that reads a tf.data.Iterator
```

Each version is for one minor version of the official TensorFlow. It is not a release by the TensorFlow Authors.
"""

# What the package's modules import where they need it, by name.
_IMPORTED_LATER = (
    "tensorflow_staging.python.ahead.callback_class",
    "tensorflow_staging.python.automatic.fit_callbacks",
    "tensorflow_staging.python.backup.callback_class",
    "tensorflow_staging.python.command_line.compare_command",
    "tensorflow_staging.python.command_line.doctor_command",
    "tensorflow_staging.python.command_line.plugin_installation",
    "tensorflow_staging.python.command_line.run_command",
    "tensorflow_staging.python.stats.ended_stages",
)
# Modules of the package that are generated in the fork, and their places in the wheel.
_GENERATED = {"gen_tensor_buffer_ops.py": f"{_NAME}/python/stages/gen_tensor_buffer_ops.py"}
# What messages.py reads.
_MESSAGES = _ROOT / "tensorflow_staging/core/protobuf/staging_fields.proto"
# What Python runs at its start, and the line that makes it do so.
_AT_START = f"{_NAME}_at_start"
_PTH = (
    'import os; (os.environ.get("TF_STAGING_SMART_STAGE", "") not in ("", "off")'
    ' or "TF_STAGING_COMPARE" in os.environ)'
    f' and __import__("{_AT_START}")\n')
_IMPORT = re.compile(r"^from (tensorflow_staging[\w.]*) import (\w+)", re.MULTILINE)
# Files of the wheel get the earliest time that a zip file can have, so that equal contents make equal wheels.
_TIME = (1980, 1, 1, 0, 0, 0)
_OLDEST_GLIBC = (2, 17)


def python_files() -> dict[str, pathlib.Path]:
  """Returns the Python files of the wheel by their paths in it: the package, and the modules that it imports."""
  files = {f"{_NAME}/{path.name}": path for path in (_ROOT / "plugin/package").glob("*.py")}
  to_visit = [*_IMPORTED_LATER]
  for path in files.values():
    to_visit += _modules_of(path)
  files[f"{_AT_START}.py"] = files.pop(f"{_NAME}/at_start.py")
  for name, place in _GENERATED.items():
    files[place] = files.pop(f"{_NAME}/{name}")
  while to_visit:
    module = _ROOT / to_visit.pop().replace(".", "/")
    path = module / "__init__.py" if module.is_dir() else module.with_name(module.name + ".py")
    name = str(path.relative_to(_ROOT))
    if name in files or not path.exists():
      continue
    files[name] = path
    for package in path.relative_to(_ROOT).parents:
      if (init := _ROOT / package / "__init__.py").exists():
        files[f"{package}/__init__.py"] = init
    to_visit += _modules_of(path)
  return files


def _modules_of(path: pathlib.Path) -> list[str]:
  """Returns the modules that a file imports when it is imported itself."""
  found = []
  for package, name in _IMPORT.findall(path.read_text()):
    found += [package, f"{package}.{name}"]
  return found


def _metadata(version: str, tensorflow: str, python: str) -> str:
  minor = _minor(tensorflow)
  major, _, last = minor.partition(".")
  metadata = email.message.Message()
  metadata["Metadata-Version"] = "2.1"
  metadata["Name"] = "tensorflow-staging"
  metadata["Version"] = version
  metadata["Summary"] = _SUMMARY
  metadata["License"] = "Apache-2.0"
  metadata["Requires-Python"] = f"=={python}.*"
  metadata["Requires-Dist"] = f"tensorflow>={minor},<{major}.{int(last) + 1}"
  metadata["Description-Content-Type"] = "text/markdown"
  metadata.set_payload(_DESCRIPTION)
  return metadata.as_string()


def _minor(version: str) -> str:
  return ".".join(version.split(".")[:2])


def assemble(library: pathlib.Path, tensorflow: str, staging: str, folder: pathlib.Path) -> pathlib.Path:
  """Writes the wheel and returns its path.

  Args:
    library: The plugin's library.
    tensorflow: The version of TensorFlow that it was built for.
    staging: The last part of the wheel's version; the first ones are those of TensorFlow.
    folder: Where to write the wheel.
  """
  version = f"{_minor(tensorflow)}.{staging}"
  python = f"{sys.version_info.major}.{sys.version_info.minor}"
  tag = f"cp{python.replace('.', '')}"
  tag = f"{tag}-{tag}-{platform_tag.tag_of([library], _OLDEST_GLIBC)}"
  info = f"{_NAME}-{version}.dist-info"
  contents = {name: path.read_bytes() for name, path in python_files().items()}
  contents[f"{_NAME}/built_for.py"] = (
      "# SPDX-License-Identifier: Apache-2.0\n"
      f'"""What the plugin was built for."""\n\nTENSORFLOW = "{tensorflow}"\nPLUGIN = "{version}"\n').encode()
  contents[f"{_NAME}/{_MESSAGES.name}"] = _MESSAGES.read_bytes()
  contents[f"{_NAME}/{library.name}"] = library.read_bytes()
  contents[f"{_AT_START}.pth"] = _PTH.encode()
  contents[f"{info}/METADATA"] = _metadata(version, tensorflow, python).encode()
  contents[f"{info}/WHEEL"] = (
      f"Wheel-Version: 1.0\nGenerator: plugin/assemble.py\nRoot-Is-Purelib: false\nTag: {tag}\n").encode()
  contents[f"{info}/LICENSE"] = (_ROOT / "LICENSE").read_bytes()
  own = f"{info}/RECORD"
  contents[own] = record.render({name: record.entry_of(data) for name, data in contents.items()}, own).encode()
  wheel = folder / f"{_NAME}-{version}-{tag}.whl"
  with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
    for name in sorted(contents):
      member = zipfile.ZipInfo(name, _TIME)
      member.compress_type = zipfile.ZIP_DEFLATED
      member.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
      archive.writestr(member, contents[name])
  return wheel


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--library", type=pathlib.Path, required=True)
  parser.add_argument("--tensorflow", required=True, help="the version of TensorFlow that the library was built for")
  parser.add_argument("--staging", required=True, help="the last part of the wheel's version")
  parser.add_argument("folder", type=pathlib.Path, help="where to write the wheel")
  args = parser.parse_args()
  print(assemble(args.library, args.tensorflow, args.staging, args.folder))


if __name__ == "__main__":
  main()
