package otlprecv

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // a client may ask for it
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Requested reports that this process was started to be a receiver.
func Requested() bool { return os.Getenv(variable) != "" }

// Main is the receiver's whole life. It does not return.
func Main() {
	if err := run(os.Stdin, os.Stdout, os.Getenv(variableDump)); err != nil {
		fmt.Fprintln(os.Stderr, "otlp receiver:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(in io.Reader, out io.Writer, dump string) error {
	r := &receiver{}
	if dump != "" {
		f, err := os.OpenFile(dump, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return fmt.Errorf("open the dump: %w", err)
		}
		defer f.Close()
		r.dump = f
	}
	over, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for gRPC: %w", err)
	}
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for HTTP: %w", err)
	}
	rpc := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage))
	tracepb.RegisterTraceServiceServer(rpc, traces{receiver: r})
	metricspb.RegisterMetricsServiceServer(rpc, metrics{receiver: r})
	go rpc.Serve(over)
	defer rpc.GracefulStop()
	go http.Serve(web, r.mux())

	say := json.NewEncoder(out)
	if err := say.Encode(Addresses{GRPC: over.Addr().String(), HTTP: web.Addr().String()}); err != nil {
		return err
	}
	for asked := bufio.NewScanner(in); asked.Scan(); {
		if err := say.Encode(r.counts()); err != nil {
			return err
		}
	}
	return nil
}

const maxMessage = 64 << 20

// receiver counts. It is safe for concurrent use.
type receiver struct {
	requests, spans, metrics, bytes atomic.Uint64

	mu   sync.Mutex
	dump io.Writer // nil: none
}

func (r *receiver) counts() Counts {
	return Counts{
		Requests: r.requests.Load(), Spans: r.spans.Load(),
		Metrics: r.metrics.Load(), Bytes: r.bytes.Load(),
	}
}

func (r *receiver) traces(m *tracepb.ExportTraceServiceRequest) error {
	for _, rs := range m.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			r.spans.Add(uint64(len(ss.Spans)))
		}
	}
	r.count(m)
	if r.dump == nil {
		return nil
	}
	line, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.dump.Write(append(line, '\n'))
	return err
}

func (r *receiver) metric(m *metricspb.ExportMetricsServiceRequest) {
	for _, rm := range m.ResourceMetrics {
		for _, sm := range rm.ScopeMetrics {
			r.metrics.Add(uint64(len(sm.Metrics)))
		}
	}
	r.count(m)
}

func (r *receiver) count(m proto.Message) {
	r.requests.Add(1)
	r.bytes.Add(uint64(proto.Size(m)))
}

type traces struct {
	tracepb.UnimplementedTraceServiceServer
	*receiver
}

func (t traces) Export(_ context.Context, m *tracepb.ExportTraceServiceRequest) (*tracepb.ExportTraceServiceResponse, error) {
	return &tracepb.ExportTraceServiceResponse{}, t.traces(m)
}

type metrics struct {
	metricspb.UnimplementedMetricsServiceServer
	*receiver
}

func (t metrics) Export(_ context.Context, m *metricspb.ExportMetricsServiceRequest) (*metricspb.ExportMetricsServiceResponse, error) {
	t.metric(m)
	return &metricspb.ExportMetricsServiceResponse{}, nil
}

func (r *receiver) mux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, q *http.Request) {
		var m tracepb.ExportTraceServiceRequest
		if !readBody(w, q, &m) {
			return
		}
		if err := r.traces(&m); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		reply(w, &tracepb.ExportTraceServiceResponse{})
	})
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, q *http.Request) {
		var m metricspb.ExportMetricsServiceRequest
		if readBody(w, q, &m) {
			r.metric(&m)
			reply(w, &metricspb.ExportMetricsServiceResponse{})
		}
	})
	return mux
}

// readBody decodes a request's protobuf, gzipped or not, or answers 400.
func readBody(w http.ResponseWriter, q *http.Request, m proto.Message) bool {
	var body io.Reader = http.MaxBytesReader(w, q.Body, maxMessage)
	if q.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return false
		}
		body = io.LimitReader(unzipped, maxMessage)
	}
	b, err := io.ReadAll(body)
	if err == nil {
		err = proto.Unmarshal(b, m)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

func reply(w http.ResponseWriter, m proto.Message) {
	b, err := proto.Marshal(m)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(b)
}
