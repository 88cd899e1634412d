# The course in a container, for a machine that cannot run it itself:
#     docker build -t course .
#     docker run --rm -it --init --shm-size 1g -p 127.0.0.1:8888:8888 -v course:/home/learner course
# The course is in the image, in /opt/course, and belongs to root. The volume holds the learner's copy of the notebooks, which
# each start brings up to date. To have emulated links, such as on a Mac or under Windows, add what they need:
#     docker run --rm -it --init --shm-size 1g -p 127.0.0.1:8888:8888 -v course:/home/learner \
#         --cap-add NET_ADMIN --cap-add SYS_ADMIN --security-opt apparmor=unconfined course
# The base is one image for all processors, of September 2026, with Python 3.13.15 on Debian 13.6. To take a newer one, put the
# digest here that `docker buildx imagetools inspect python:3.13-slim-trixie` prints, and into apptainer.def.
ARG BASE=python:3.13-slim-trixie@sha256:bb2988715db2cf7ace7b53f38f3cffbef7c7046a656bee66245eb0ed386e2e81
FROM ${BASE} AS machine
# Debian's packages have no version here: a stable Debian changes them for security alone, and removes the older ones.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git iproute2 make procps \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --shell /bin/bash --uid 1000 learner

FROM machine
WORKDIR /opt/course
COPY . .
# docker build --build-arg TORCH=cu126 … takes a torch for GPUs.
ARG TORCH=auto
RUN PYTHON=python3 PIP_NO_CACHE_DIR=1 make setup \
    && chmod -R a+rX,go-w . \
    && chmod 1777 /home/learner
# Whoever runs it has this home: `--user 12345` and OpenShift bring users without a name and without a home.
ENV HOME=/home/learner USER=learner COURSE_COPY=/home/learner/course PATH=/opt/course/.venv/bin:$PATH
USER learner
EXPOSE 8888
HEALTHCHECK --start-period=60s --timeout=5s CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8888/api')"]
CMD ["make", "lab", "ADDRESS=0.0.0.0"]
