# The base is an argument, so that a mirror or a hardened image can stand in. It names Debian's
# release, which decides the major of PostgreSQL's client programs: docs/backup.md.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS python
# The base has no bytecode of the standard library, and every start would compile it anew. Python
# takes bytecode as it is, whatever happens to the files' times.
RUN python3 -m compileall -q -f -j 0 --invalidation-mode unchecked-hash \
        -x '/(idlelib|lib2to3|site-packages|dist-packages|test|tkinter|turtledemo)/' \
        "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"

# What installs and builds, and the wheel.
FROM python AS build
WORKDIR /src
COPY requirements-pip.lock requirements-build.lock ./
RUN python3 -m venv /opt/build \
    && /opt/build/bin/python -m pip install --no-cache-dir --no-input --disable-pip-version-check \
        --require-hashes -r requirements-pip.lock \
    && /opt/build/bin/python -m pip install --no-cache-dir --no-input --disable-pip-version-check \
        --require-hashes -r requirements-build.lock
COPY requirements.lock pyproject.toml README.md LICENSE ./
COPY gateway gateway
COPY adapters adapters
COPY runtime runtime
COPY workspace_template workspace_template
RUN /opt/build/bin/python -m pip wheel --no-cache-dir --no-input --disable-pip-version-check \
        --no-deps --no-build-isolation --wheel-dir /dist .

FROM python
# bubblewrap confines commands where the engine allows namespaces; elsewhere Landlock does.
# git and make are what an agent's commands need most. `gatehouse backup` runs pg_dump and pg_restore.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        bubblewrap git make postgresql-client \
    && rm -rf /var/lib/apt/lists/*
# Installed by a pip that is only borrowed, so none is in the image.
RUN --mount=type=bind,from=build,source=/opt/build,target=/opt/build \
    --mount=type=bind,from=build,source=/src,target=/src \
    python3 -m venv --without-pip /opt/gatehouse \
    && /opt/build/bin/python -m pip --python /opt/gatehouse/bin/python install \
        --no-cache-dir --no-input --disable-pip-version-check \
        --no-compile --require-hashes -r /src/requirements.lock \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/gatehouse/lib
RUN --mount=type=bind,from=build,source=/opt/build,target=/opt/build \
    --mount=type=bind,from=build,source=/dist,target=/dist \
    /opt/build/bin/python -m pip --python /opt/gatehouse/bin/python install \
        --no-cache-dir --no-input --disable-pip-version-check \
        --no-compile --no-deps --no-index /dist/gatehouse-*.whl \
    && cd /opt/gatehouse/lib/python3*/site-packages \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash \
        "$PWD/adapters" "$PWD/gateway" "$PWD/runtime"
RUN mkdir -p /data && chown 10001:10001 /data
# Everything that is written goes to the volume; the rest of the file system may be read-only.
ENV PATH=/opt/gatehouse/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/data \
    GATEHOUSE_HOME=/data \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('GATEHOUSE_HTTP__PORT', '8080') + '/readyz', timeout=4)"]
ENTRYPOINT ["gatehouse"]
CMD ["serve"]
