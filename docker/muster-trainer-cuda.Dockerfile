# A replica of a job with spec.training that computes on GPUs: the trainer under the supervisor that starts it again in place, and
# the libraries that both name, as docker/build lays them out in the context's root/.
FROM scratch
ARG VERSION
LABEL org.opencontainers.image.title="muster-trainer-cuda" \
      org.opencontainers.image.description="Trains as one replica of a TrainingJob, on NVIDIA GPUs" \
      org.opencontainers.image.version="$VERSION"
COPY root/ /
# Where relative paths of a job's data start: the examples' is there.
WORKDIR /usr/share/muster
# The driver's libraries that NVIDIA's container runtime puts into the container.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 65532:65532
ENTRYPOINT ["/usr/bin/muster-supervisor", "/usr/bin/muster-trainer"]
