"""The same spans in every format that traces are kept in, as the tools of those formats write them."""

import json
from io import BytesIO

from google.adk.telemetry._web_ui import ui_telemetry_from_otel
from google.adk.telemetry.sqlite_span_exporter import SqliteSpanExporter
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evaltui.traces.reading import documents_in, read_document
from evaltui.traces.span import Recorded


def read_bytes(data):
    recorded = Recorded()
    for document in documents_in(BytesIO(data), recorded.warnings):
        recorded.add(read_document(document))
    return recorded


def _value(value):
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case None:
            return {}
        case dict():
            return {"kvlistValue": {"values": attributes_of(value)}}
    return {"arrayValue": {"values": [_value(one) for one in value]}}


def attributes_of(given):
    return [{"key": key, "value": _value(value)} for key, value in (given or {}).items()]


def otlp_span(span):
    events = [
        {"name": one.name, "timeUnixNano": str(one.timestamp), "attributes": attributes_of(one.attributes)}
        for one in span.events
    ]
    return {
        "traceId": format(span.context.trace_id, "032x"),
        "spanId": format(span.context.span_id, "016x"),
        "parentSpanId": format(span.parent.span_id, "016x") if span.parent else "",
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": attributes_of(span.attributes),
        "events": events,
        "status": {"code": span.status.status_code.value, "message": span.status.description or ""},
    }


def _otlp_log(log):
    record = log.log_record
    return {
        "timeUnixNano": str(record.timestamp or record.observed_timestamp),
        "traceId": format(record.trace_id, "032x"),
        "spanId": format(record.span_id, "016x"),
        "eventName": record.event_name,
        "attributes": attributes_of(record.attributes),
        "body": _value(record.body),
    }


def _group(spans, key="scopeSpans", scope="scope"):
    named = {"name": "gcp.vertex.agent", "version": "2.13.0"}
    resource = {"attributes": attributes_of({"service.name": "shop"})}
    return {"resource": resource, key: [{scope: named, "spans": spans}]}


def otlp_spans(told):
    return {"resourceSpans": [_group([otlp_span(one) for one in told.spans])]}


def otlp_logs(told):
    scoped = [{"scope": {"name": "gcp.vertex.agent"}, "logRecords": [_otlp_log(one) for one in told.logs]}]
    return {"resourceLogs": [{"scopeLogs": scoped}]}


def otlp(told):
    return otlp_spans(told) | otlp_logs(told)


def otlp_json(told):
    return json.dumps(otlp(told)).encode()


def otlp_snake_case(told):
    text = json.dumps(otlp(told))
    names = {
        "resourceSpans": "resource_spans",
        "resourceLogs": "resource_logs",
        "scopeSpans": "scope_spans",
        "scopeLogs": "scope_logs",
        "logRecords": "log_records",
        "traceId": "trace_id",
        "spanId": "span_id",
        "parentSpanId": "parent_span_id",
        "startTimeUnixNano": "start_time_unix_nano",
        "endTimeUnixNano": "end_time_unix_nano",
        "timeUnixNano": "time_unix_nano",
        "eventName": "event_name",
        "stringValue": "string_value",
        "intValue": "int_value",
        "boolValue": "bool_value",
        "arrayValue": "array_value",
        "kvlistValue": "kvlist_value",
    }
    for camel, snake in names.items():
        text = text.replace(f'"{camel}"', f'"{snake}"')
    return text.encode()


def collector_lines(told):
    """A document per batch, spans and log records mixed, the last line torn."""
    spans = [otlp_span(one) for one in told.spans]
    lines = [json.dumps(otlp_logs(told))]
    lines += [json.dumps({"resourceSpans": [_group([one])]}) for one in spans[::-1]]
    return "\n".join(lines).encode() + b'\n{"resourceSpans": [{"resou'


def tempo_1(told):
    group = _group(
        [otlp_span(one) for one in told.spans], "instrumentationLibrarySpans", "instrumentationLibrary"
    )
    return json.dumps({"batches": [group]}).encode()


def in_base64(document):
    import base64

    def changed(item):
        if isinstance(item, list):
            return [changed(one) for one in item]
        if not isinstance(item, dict):
            return item
        return {
            key: base64.b64encode(bytes.fromhex(value)).decode()
            if key in ("traceId", "spanId", "parentSpanId") and value
            else changed(value)
            for key, value in item.items()
        }

    return changed(document)


def tempo_2(told):
    return json.dumps({"trace": in_base64(otlp_spans(told))}).encode()


def jaeger(told):
    traces = {}
    for span in told.spans:
        trace_id = format(span.context.trace_id, "032x")
        status = span.status.status_code.name
        tags = {
            **span.attributes,
            "span.kind": "internal",
            "otel.scope.name": "gcp.vertex.agent",
            **({"otel.status_code": status, "error": True} if status == "ERROR" else {}),
        }
        written = {
            "traceID": trace_id,
            "spanID": format(span.context.span_id, "016x"),
            "operationName": span.name,
            "references": [
                {"refType": "CHILD_OF", "traceID": trace_id, "spanID": format(one.span_id, "016x")}
                for one in [span.parent]
                if one
            ],
            "startTime": span.start_time // 1000,
            "duration": (span.end_time - span.start_time) // 1000,
            "tags": [_tag(key, value) for key, value in tags.items()],
            "logs": [
                {
                    "timestamp": one.timestamp // 1000,
                    "fields": [_tag("event", one.name), *(_tag(*pair) for pair in one.attributes.items())],
                }
                for one in span.events
            ],
            "processID": "p1",
        }
        traces.setdefault(trace_id, []).append(written)
    processes = {"p1": {"serviceName": "shop", "tags": []}}
    data = [{"traceID": key, "spans": spans[::-1], "processes": processes} for key, spans in traces.items()]
    return json.dumps({"data": data}).encode()


def _tag(key, value):
    if isinstance(value, list | tuple):
        return {"key": key, "type": "string", "value": json.dumps(list(value))}
    kinds = {bool: "bool", int: "int64", float: "float64"}
    return {"key": key, "type": kinds.get(type(value), "string"), "value": value}


def console(told):
    return "\n".join(one.to_json() for one in told.spans).encode()


def bare_list(told):
    return json.dumps([otlp_span(one) for one in told.spans]).encode()


def bare_lines(told):
    return "\n".join(json.dumps(otlp_span(one)) for one in told.spans).encode()


def wrapped(told):
    """As other tools for evaluation store a session."""
    spans = [otlp_span(one) for one in told.spans]
    for one in spans:
        one["start_time"] = int(one.pop("startTimeUnixNano"))
        one["end_time"] = int(one.pop("endTimeUnixNano"))
    return json.dumps({"session_id": "s1", "span_count": len(spans), "spans": spans}).encode()


def dev_server(told):
    served = ui_telemetry_from_otel(told.spans, told.logs)
    return json.dumps([one.model_dump(mode="json") for one in served]).encode()


def protobuf(told):
    return ParseDict(in_base64(otlp_spans(told)), ExportTraceServiceRequest()).SerializeToString()


def protobuf_logs(told):
    return ParseDict(in_base64(otlp_logs(told)), ExportLogsServiceRequest()).SerializeToString()


def protobuf_behind_lengths(told):
    messages = [protobuf_logs(told), protobuf(told)]
    return b"".join(len(one).to_bytes(4, "big") + one for one in messages)


def sqlite(told, path):
    exporter = SqliteSpanExporter(db_path=str(path))
    exporter.export(told.spans)
    exporter.shutdown()


WITH_EVENTS = (otlp_json, otlp_snake_case, collector_lines, dev_server, protobuf_behind_lengths)
"""Formats that keep log records, too."""
FORMATS = (*WITH_EVENTS, tempo_1, tempo_2, jaeger, console, bare_list, bare_lines, wrapped, protobuf)
