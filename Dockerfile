# The course in a container, for a machine that cannot run it itself, or to have emulated links on a Mac or under Windows:
#     docker build -t course .
#     docker run --rm -it --init --shm-size 1g -p 127.0.0.1:8888:8888 -v course:/home/learner \
#         --cap-add NET_ADMIN --cap-add SYS_ADMIN --security-opt apparmor=unconfined course
# The two capabilities and the last option are for emulated links; without them the course says that it has none.
FROM python:3.13-slim-trixie AS machine
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git iproute2 make procps \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --shell /bin/bash --uid 1000 learner \
    && install --directory --owner learner --group learner /home/learner/course
USER learner

FROM machine
WORKDIR /home/learner/course
COPY --chown=learner . .
# docker build --build-arg TORCH=cu126 … takes a torch for GPUs.
ARG TORCH=auto
RUN PYTHON=python3 PIP_NO_CACHE_DIR=1 make setup
EXPOSE 8888
CMD ["make", "lab", "ADDRESS=0.0.0.0"]
