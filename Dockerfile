# The decision service. Other machines reach it, so it needs a key before it starts: see docs/do/serve.md.
FROM python:3.13-slim

RUN useradd --create-home --uid 1000 bandit && install -d -o bandit /data
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir '.[service]' && rm -rf /build

USER bandit
WORKDIR /data
VOLUME /data
ENV DRIFTBANDIT_STORE=sqlite:////data/decisions.db OPENBLAS_NUM_THREADS=1
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s CMD ["python", "-c", \
  "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["driftbandit"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8080"]
