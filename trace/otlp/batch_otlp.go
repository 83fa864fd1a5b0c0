package otlp

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
)

// toOTLP leads to a receiver of OTLP, by the SDK's own clients: endpoint,
// headers, TLS, compression, time-outs and retries are theirs and the
// environment's. Only what they would make of each span is ours: bytes.
type toOTLP struct {
	client otlptrace.Client
	// resource and scope begin every request, encoded once.
	resource, scope []byte
	headroom        int
}

// newToOTLP is for the protocol that describeOTLP found, grpc or http/protobuf.
func newToOTLP(ctx context.Context, protocol string, res *resource.Resource, version string) (*toOTLP, error) {
	var client otlptrace.Client
	if protocol == "grpc" {
		client = otlptracegrpc.NewClient()
	} else {
		client = otlptracehttp.NewClient()
	}
	if err := client.Start(ctx); err != nil {
		return nil, fmt.Errorf("set up the exporter of traces: %w", err)
	}
	return toClient(client, res, version), nil
}

// toClient prepares what stands around the spans of a request:
//
//	ResourceSpans  1 resource {1 attributes}  2 scope_spans  3 schema_url
//	ScopeSpans     1 scope {1 name 2 version}  3 schema_url  2 spans, repeated
func toClient(client otlptrace.Client, res *resource.Resource, version string) *toOTLP {
	t := &toOTLP{client: client}
	t.resource = appendNested(nil, 1, appendAttributes(nil, 1, res.Attributes()))
	if url := res.SchemaURL(); url != "" {
		t.resource = appendText(t.resource, 3, url)
	}
	t.scope = appendNested(nil, 1, appendText(appendText(nil, 1, scope), 2, version))
	t.scope = appendText(t.scope, 3, semconv.SchemaURL)
	const tag, longest = 1, 10 // of ScopeSpans: its tag, and its length as a varint
	t.headroom = len(t.resource) + tag + longest + len(t.scope)
	return t
}

func appendNested(b []byte, field byte, message []byte) []byte {
	return protowire.AppendBytes(append(b, field<<3|kindBytes), message)
}

func (t *toOTLP) shutdown(ctx context.Context) error { return t.client.Stop(ctx) }

func (t *toOTLP) newBatch() batch {
	return &otlpBatch{to: t, bytes: make([]byte, t.headroom)}
}

// otlpBatch is the spans of one request as they go over the wire, behind room
// for what comes before them and is known last: their length.
type otlpBatch struct {
	to      *toOTLP
	bytes   []byte
	scratch []byte // one span, whose length comes before it
	n       int
}

func (b *otlpBatch) add(r *record) {
	b.scratch = appendSpan(b.scratch[:0], r)
	b.bytes = appendNested(b.bytes, 2, b.scratch)
	b.n++
}

func (b *otlpBatch) len() int { return b.n }

func (b *otlpBatch) reset() { b.bytes, b.n = b.bytes[:b.to.headroom], 0 }

// export hands the bytes to the client as fields that it doesn't know, which
// it must copy as they are.
func (b *otlpBatch) export(ctx context.Context) error {
	rs := &tracepb.ResourceSpans{}
	rs.ProtoReflect().SetUnknown(b.message())
	return b.to.client.UploadTraces(ctx, []*tracepb.ResourceSpans{rs})
}

// message is the ResourceSpans with all of the batch.
func (b *otlpBatch) message() []byte {
	t := b.to
	spans := len(b.bytes) - t.headroom
	head := make([]byte, 0, t.headroom)
	head = append(head, t.resource...)
	head = append(head, 2<<3|kindBytes)
	head = protowire.AppendVarint(head, uint64(len(t.scope)+spans))
	head = append(head, t.scope...)
	start := t.headroom - len(head)
	copy(b.bytes[start:], head)
	return b.bytes[start:]
}
