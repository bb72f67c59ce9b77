# The operator, alone: its binary and the libraries that it names, as docker/build lays them out in the
# context's root/. No shell, no package manager, no certificates of strangers (a pod is given its cluster's).
FROM scratch
ARG VERSION
LABEL org.opencontainers.image.title="muster-operator" \
      org.opencontainers.image.description="Turns TrainingJobs into replicas and watches over them" \
      org.opencontainers.image.version="$VERSION"
COPY root/ /
USER 65532:65532
ENTRYPOINT ["/usr/bin/muster-operator"]
