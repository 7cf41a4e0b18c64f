# The command with ONNX Runtime and OpenBLAS:
#
#   docker build -t noether --build-arg COMMIT="$(git rev-parse --short=12 HEAD)" .
#   docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" noether run study.yaml

FROM golang:1.26-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends nodejs npm
WORKDIR /src
COPY . .
ARG COMMIT=
RUN make release COMMIT="$COMMIT"
RUN mkdir /out && tar -xzf dist/noether-*.tar.gz -C /out --strip-components=1

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates libopenblas0-pthread libstdc++6 && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --create-home noether && mkdir /work && chown noether /work
COPY --from=build /out /opt/noether
RUN ln -s /opt/noether/noether /usr/local/bin/noether
# Downloads and what Hugging Face has, also where the container runs as another user than its own.
ENV NOETHER_CACHE=/tmp/noether HF_HOME=/tmp/huggingface
USER noether
WORKDIR /work
ENTRYPOINT ["noether"]
