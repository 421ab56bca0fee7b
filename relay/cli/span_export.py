"""Where a command's spans go: to a collector of OpenTelemetry, or into a file.

Source: OpenTelemetry, on OTLP; ``docs/design/introspect.md``, "Spans".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from syndicate.errors import AddressError, TracingMissing
from syndicate.introspect.spans import traced
from syndicate.introspect.story import new_file

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

_MISSING = 'traces need OpenTelemetry: install it with: pip install "syndicate-dataspace[trace]"'


@contextmanager
def exported(where: str, service: str, *, every: int = 1) -> Iterator[None]:
    """Follow the actor systems that are opened within, as :func:`~syndicate.introspect.spans.traced` does, and send
    their spans to *where*: ``http://HOST:PORT`` of a collector (OTLP over HTTP), or else a new file, a line of
    JSON each.

    Raises :class:`~syndicate.errors.TracingMissing`, :class:`~syndicate.errors.AddressError` for what is no such
    address, and :class:`~syndicate.errors.RecordingError` for a file that cannot be written.
    """
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise TracingMissing(_MISSING) from None
    with ExitStack() as after:
        exporter = _collector(where) if where.startswith(("http:", "https:")) else _file(where, after)
        provider = TracerProvider(resource=Resource.create({"service.name": service}))
        provider.add_span_processor(BatchSpanProcessor(exporter))
        after.callback(provider.shutdown)
        with traced(provider=provider, every=every):
            yield


def _collector(where: str) -> SpanExporter:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise TracingMissing(_MISSING) from None
    parts = urlsplit(where)
    if not parts.hostname:
        raise AddressError(f"{where!r} is no address of a collector: write http://HOST:PORT")
    path = parts.path.rstrip("/") or "/v1/traces"
    return OTLPSpanExporter(endpoint=f"{parts.scheme}://{parts.netloc}{path}")


def _file(where: str, after: ExitStack) -> SpanExporter:
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter

    file = after.enter_context(new_file(where))
    return ConsoleSpanExporter(out=file, formatter=lambda span: span.to_json(indent=None) + "\n")
