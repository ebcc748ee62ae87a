# The base is an argument, so that a mirror or a hardened image can stand in. It names Debian's
# release, which decides the major of PostgreSQL's client programs: docs/backup.md.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
WORKDIR /src
RUN python3 -m venv /opt/gatehouse
COPY requirements.lock requirements-build.lock ./
RUN /opt/gatehouse/bin/python -m pip install --no-cache-dir --no-input --disable-pip-version-check \
        --require-hashes -r requirements.lock \
    && python3 -m venv /opt/build \
    && /opt/build/bin/python -m pip install --no-cache-dir --no-input --disable-pip-version-check \
        --require-hashes -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY gateway gateway
COPY adapters adapters
COPY runtime runtime
COPY workspace_template workspace_template
RUN /opt/build/bin/python -m pip wheel --no-cache-dir --no-input --disable-pip-version-check \
        --no-deps --no-build-isolation --wheel-dir /dist . \
    && /opt/gatehouse/bin/python -m pip install --no-cache-dir --no-input --disable-pip-version-check \
        --no-deps --no-index /dist/gatehouse-*.whl \
    && /opt/gatehouse/bin/python -m pip uninstall --yes --quiet pip setuptools wheel

FROM ${BASE}
# `gatehouse backup` runs pg_dump and pg_restore.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        postgresql-client \
    && rm -rf /var/lib/apt/lists/*
RUN mkdir -p /data && chown 10001:10001 /data
COPY --from=build /opt/gatehouse /opt/gatehouse
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
