# SPDX-License-Identifier: Apache-2.0
"""The rule that compiles the GPU code of the official wheel for the chips that --define=chips names."""

def _native_code_impl(ctx):
    chips = ctx.var.get("chips")
    if not chips:
        fail("--define=native_code=true needs --define=chips=sm_90, or several chips with commas between them")
    out = ctx.actions.declare_file(ctx.label.name + ".zip")
    lz4 = ctx.files._lz4[0].path.rpartition("/lz4/")[0]
    ctx.actions.run(
        executable = ctx.executable._python,
        arguments = [
            "-B",
            "-s",
            ctx.file._program.path,
            "--wheel=" + ctx.file.base_wheel.path,
            "--ptxas=" + ctx.executable._ptxas.path,
            "--chips=" + chips,
            "--out=" + out.path,
        ],
        inputs = depset([ctx.file._program, ctx.file.base_wheel, ctx.executable._ptxas] + ctx.files._lz4 + ctx.files._modules),
        outputs = [out],
        env = {"PYTHONPATH": lz4},
        mnemonic = "CompileGpuCode",
        progress_message = "Compiling GPU code for " + chips,
    )
    return [DefaultInfo(files = depset([out]))]

native_code = rule(
    implementation = _native_code_impl,
    attrs = {
        "base_wheel": attr.label(mandatory = True, allow_single_file = True, doc = "the official wheel, packed"),
        "_python": attr.label(default = "@python//:python3", allow_single_file = True, executable = True, cfg = "host"),
        "_program": attr.label(default = "//gpu_kit:native_code.py", allow_single_file = True),
        "_modules": attr.label(default = "//gpu_kit:native_code_modules"),
        "_ptxas": attr.label(default = "@native_code_tools//:nvidia/cuda_nvcc/bin/ptxas", allow_single_file = True, executable = True, cfg = "host"),
        "_lz4": attr.label(default = "@native_code_tools//:lz4"),
    },
    doc = "Builds NAME.zip with the libraries that have GPU code for the chips, under their names in the wheel.",
)
