# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of the repository rules, and stops the build where one fails."""

def execute_or_fail(rctx, arguments, what, advice = "", timeout = 600):
    """Runs a command that has to succeed.

    rctx.execute() itself does not fail: a rule that ignores its result goes on with half an archive.
    ignored_results_test.py finds such rules.

    Args:
      rctx: the repository context.
      arguments: the command, as for rctx.execute().
      what: what the command does, as a phrase that follows "Could not".
      advice: a sentence that says what the user can do about a failure.
      timeout: after how many seconds Bazel stops the command.

    Returns:
      The result of rctx.execute(). Its return code is 0.
    """
    result = rctx.execute(arguments, timeout = timeout)
    if result.return_code != 0:
        fail("\n".join([text for text in [
            "Could not {}.".format(what),
            "Command: " + " ".join([str(argument) for argument in arguments]),
            "Exit code: {}".format(result.return_code),
            result.stdout.strip(),
            result.stderr.strip(),
            advice,
        ] if text]))
    return result

def unzip(rctx, archive):
    """Unpacks a zip file, such as a wheel, into the repository.

    Args:
      rctx: the repository context.
      archive: the file's path in the repository.
    """
    execute_or_fail(rctx, ["unzip", "-q", archive], "unpack " + archive)
