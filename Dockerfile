# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel with the project's own scripts, then a slim image that has Python, the wheel and what it requires, all
# pinned:
#
#   docker build --tag tensorflow-staging .
#   docker run --rm tensorflow-staging                          # the doctor's report
#   docker run --rm --volume "$PWD:/work" tensorflow-staging python train.py
#
# --build-arg OPTIONS=--config=v2 is for ci/build_wheel.sh, as in CONTRIBUTING.md. --target wheel --output type=local,dest=dist
# gives the wheel alone.

FROM debian:bookworm-slim AS build
WORKDIR /src
# Apart from the sources, so that a change of them does not install the packages again. apt's lists stay: they say which of
# its mirrors is Debian's, where the build gets TensorFlow's sources.
COPY ci/install_deps.sh ci/steps.sh ci/
COPY third_party/versions.bzl third_party/
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates \
    && ci/install_deps.sh
COPY . .
ARG OPTIONS=
RUN ci/build_wheel.sh $OPTIONS && bazel shutdown

FROM scratch AS wheel
COPY --from=build /src/dist/ /

FROM python:3.11-slim-bookworm
COPY third_party/python/requirements.txt /tmp/
# The wheel is mounted: copied, it would stay in a layer of the image.
RUN --mount=type=bind,from=wheel,target=/tmp/dist \
    pip install --no-cache-dir --require-hashes --only-binary=:all: --requirement /tmp/requirements.txt \
    && pip install --no-cache-dir --no-index --no-deps /tmp/dist/*.whl \
    && rm /tmp/requirements.txt \
    && python -m tensorflow.staging doctor
RUN useradd --create-home user
USER user
WORKDIR /work
CMD ["python", "-m", "tensorflow.staging", "doctor"]
