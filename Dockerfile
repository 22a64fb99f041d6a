# Images of Quasi. Targets: server, worker, client.
#
#   docker build --target server -t quasi-server .
#   docker build --target client -t quasi-client .
#   docker build --target worker -t quasi-worker .                       # CPU slots
#   docker build --target worker -t quasi-worker-cuda \
#     --build-arg BUILD_BASE=nvidia/cuda:13.0.1-devel-ubuntu24.04 \
#     --build-arg RUNTIME_BASE=nvidia/cuda:13.0.1-runtime-ubuntu24.04 \
#     --build-arg QUASI_CUDA=ON .
#
# Pin the bases by digest where builds must be repeatable: --build-arg BUILD_BASE=debian@sha256:…
ARG BUILD_BASE=debian:12
ARG RUNTIME_BASE=debian:12-slim

FROM ${BUILD_BASE} AS build
ARG QUASI_CUDA=AUTO
ARG CUDA_ARCHITECTURES=80;90;100
ARG CPU_ARCH=x86-64-v3
WORKDIR /src
COPY deploy/dependencies.txt deploy/install-dependencies deploy/
RUN deploy/install-dependencies && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake -S . -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUASI_TESTS=OFF -DQUASI_BENCH=OFF \
      -DQUASI_MPI=OFF -DQUASI_CUDA=${QUASI_CUDA} \
      "-DCMAKE_CUDA_ARCHITECTURES=${CUDA_ARCHITECTURES}" \
      -DQUASI_CPU_ARCH=${CPU_ARCH} \
 && cmake --build /build \
 && cmake --install /build --prefix /opt/quasi --strip \
 # Each image gets exactly the shared libraries its programs need, from the build's own system.
 && deploy/collect-libraries /opt/quasi/bin/quasi-server /opt/libs/server \
 && deploy/collect-libraries /opt/quasi/bin/quasi /opt/libs/client \
 && deploy/collect-libraries /opt/quasi/bin/quasi-engine /opt/libs/client \
 && deploy/collect-libraries /opt/quasi/bin/quasi-worker /opt/libs/worker \
 && deploy/collect-libraries /opt/quasi/bin/quasi-cage /opt/libs/worker \
 && deploy/collect-libraries /opt/quasi/bin/quasi-engine /opt/libs/worker \
 # The engine loads libxc when a job needs it, so that the linker does not list it.
 && cp -nL /usr/lib/*/libxc.so.9 /opt/libs/client/ && cp -nL /usr/lib/*/libxc.so.9 /opt/libs/worker/

FROM ${RUNTIME_BASE} AS runtime
RUN groupadd --system --gid 970 quasi \
 && useradd --system --uid 970 --gid quasi --no-create-home quasi \
 && install -d -o quasi -g quasi /var/lib/quasi /run/quasi
ENV LD_LIBRARY_PATH=/opt/quasi/lib
USER quasi

FROM runtime AS server
COPY --from=build /opt/libs/server /opt/quasi/lib
COPY --from=build /opt/quasi/bin/quasi-server /usr/local/bin/
VOLUME /var/lib/quasi
# Settings are in the environment, so that further flags can be given and the probe asks the same
# address.
ENV QUASI_SERVER_DATA_DIRECTORY=/var/lib/quasi QUASI_SERVER_LISTEN=unix:/run/quasi/server.sock
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s CMD ["quasi-server", "--probe"]
ENTRYPOINT ["quasi-server"]

FROM runtime AS worker
COPY --from=build /opt/libs/worker /opt/quasi/lib
COPY --from=build /opt/quasi/bin/quasi-worker /opt/quasi/bin/quasi-engine \
     /opt/quasi/bin/quasi-cage /usr/local/bin/
VOLUME /var/lib/quasi
ENV QUASI_WORKER_STATE_DIRECTORY=/var/lib/quasi QUASI_WORKER_SERVER=unix:/run/quasi/server.sock
STOPSIGNAL SIGTERM
ENTRYPOINT ["quasi-worker"]

FROM runtime AS client
COPY --from=build /opt/libs/client /opt/quasi/lib
# The engine checks decks before they are sent.
COPY --from=build /opt/quasi/bin/quasi /opt/quasi/bin/quasi-engine /usr/local/bin/
# The client notes a submission in its home until it is answered. The group 970 may use the socket.
#   docker run --rm -v SOCKET_VOLUME:/run/quasi -v "$PWD:/work" --user "$(id -u):970" \
#     quasi-client list
RUN install -d -m 1777 /tmp/quasi
ENV QUASI_SERVER=unix:/run/quasi/server.sock QUASI_STATE=/tmp/quasi
WORKDIR /work
ENTRYPOINT ["quasi"]
CMD ["help"]
