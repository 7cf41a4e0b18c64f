# The command with ONNX Runtime, OpenBLAS, libjpeg-turbo and libwebp:
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
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates libopenblas0-pthread libturbojpeg0 libwebp7 libstdc++6 && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --create-home noether && mkdir /work && chown noether /work
COPY --from=build /out /opt/noether
RUN ln -s /opt/noether/noether /usr/local/bin/noether
# The caches of downloads. With --user the container runs as a user that owns no folder in it, so any
# user may write to these.
RUN mkdir -m 1777 /var/cache/noether /var/cache/huggingface
ENV NOETHER_CACHE=/var/cache/noether HF_HOME=/var/cache/huggingface
USER noether
WORKDIR /work
ENTRYPOINT ["noether"]
