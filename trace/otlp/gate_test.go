package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/wirewait/wirewait/trace"
)

// collect keeps all spans that it's given.
type collect struct {
	mu  sync.Mutex
	all []sdktrace.ReadOnlySpan
}

func (c *collect) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, spans...)
	return nil
}

func (*collect) Shutdown(context.Context) error { return nil }

// byLink counts spans by their root's link.
func (c *collect) byLink() map[string]int {
	links := make(map[string]string)
	for _, s := range c.all {
		for _, kv := range s.Attributes() {
			if kv.Key == keyLink {
				links[s.SpanContext().TraceID().String()] = kv.Value.AsString()
			}
		}
	}
	counts := make(map[string]int)
	for _, s := range c.all {
		counts[links[s.SpanContext().TraceID().String()]]++
	}
	return counts
}

// exporterFunc is an exporter that does one thing.
type exporterFunc func(context.Context, []sdktrace.ReadOnlySpan) error

func (f exporterFunc) ExportSpans(ctx context.Context, s []sdktrace.ReadOnlySpan) error {
	return f(ctx, s)
}
func (exporterFunc) Shutdown(context.Context) error { return nil }

// one is a finished write with one span.
func one() *trace.Finished {
	f := fixtures()[1]
	return &trace.Finished{Exchange: f.x, Conn: f.conn, Waits: trace.Split(f.x)}
}

func setup(t *testing.T, o Options) *Exporter {
	t.Helper()
	e, err := Setup(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestGate_FullQueueDropsWholeWritesAndCounts(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		spans := &collect{}
		e := setup(t, Options{Children: ChildrenAlways, SpanExporter: exporterFunc(
			func(ctx context.Context, s []sdktrace.ReadOnlySpan) error {
				<-release
				return spans.ExportSpans(ctx, s)
			})})
		for range 6 {
			e.Consume(one()) // four spans each: two fit
		}
		synctest.Wait()
		if e.Dropped() != 16 {
			t.Errorf("%d dropped, want the 16 spans of 4 writes", e.Dropped())
		}
		close(release)
		if err := e.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if len(spans.all) != 8 || e.Exported() != 8 || e.Dropped() != 16 {
			t.Errorf("%d spans arrived, %d exported, %d dropped; want 8, 8, 16", len(spans.all), e.Exported(), e.Dropped())
		}
	})
}

// An exporter that hangs costs neither the worker's time nor more than the
// deadline at the end; what it held is counted as lost.
func TestGate_HangingExporter(t *testing.T) {
	for name, obeys := range map[string]bool{"ends with its context": true, "ends never": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				never := make(chan struct{})
				e := setup(t, Options{SpanExporter: exporterFunc(
					func(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
						if obeys {
							<-ctx.Done()
							return ctx.Err()
						}
						<-never
						return nil
					})})
				start := time.Now()
				const writes = 3 * defaultQueue
				f := one()
				for range writes {
					e.Consume(f)
				}
				if d := time.Since(start); d != 0 {
					t.Errorf("the worker waited %v for the exporter", d)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
				if err := e.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Shutdown said %v, want that its time was over", err)
				}
				if d := time.Since(start); d != 2*time.Second {
					t.Errorf("Shutdown took %v, want its 2s", d)
				}
				if e.Exported() != 0 || e.Dropped() != writes {
					t.Errorf("%d exported, %d dropped, want 0 and all %d", e.Exported(), e.Dropped(), writes)
				}
				close(never)
			})
		})
	}
}

func TestGate_FailuresAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		e := setup(t, Options{
			Log: slog.New(slog.NewTextHandler(&log, nil)),
			SpanExporter: exporterFunc(func(context.Context, []sdktrace.ReadOnlySpan) error {
				return errors.New("no receiver")
			}),
		})
		for range 13 { // one batch every 5 s
			e.Consume(one())
			time.Sleep(5 * time.Second) // of the fake clock: it's when an unfinished batch goes
			synctest.Wait()
		}
		e.Shutdown(context.Background())
		if n := strings.Count(log.String(), "no receiver"); n != 2 {
			t.Errorf("%d lines in 65 s, want 2:\n%s", n, log.String())
		}
		if !strings.Contains(log.String(), "spans=12") {
			t.Errorf("the second line doesn't count the spans since the first:\n%s", log.String())
		}
		if e.Dropped() != 13 {
			t.Errorf("%d dropped, want 13", e.Dropped())
		}
	})
}

// What a receiver answers is not for the log; where to look is.
func TestGate_FailureIsOneShortLine(t *testing.T) {
	const page = "<html>\n<p>the spans that you sent</p>\n"
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, strings.Repeat(page, 1000))
	}))
	defer receiver.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	var log bytes.Buffer
	e := setup(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	e.Consume(one())
	_ = e.Shutdown(context.Background())
	got := log.String()
	if strings.Count(got, "\n") != 1 || len(got) > 600 || strings.Contains(got, "html") {
		t.Errorf("the log has %d bytes: %.1000s", len(got), got)
	}
	for _, want := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", receiver.URL + "/v1/traces: 403 Forbidden", "spans=1"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

func TestBrief(t *testing.T) {
	for _, c := range []struct{ err, want string }{
		{"dial tcp 127.0.0.1:4318: connect: connection refused", "dial tcp 127.0.0.1:4318: connect: connection refused"},
		{"first\nsecond", "first"},
		{"404 Not Found (body: 404 page not found)", "404 Not Found"},
		{strings.Repeat("e", 300), strings.Repeat("e", briefly) + "..."},
		{strings.Repeat("e", briefly-1) + "\u00e4b", strings.Repeat("e", briefly-1) + "..."},
	} {
		if got := brief(errors.New(c.err)); got != c.want {
			t.Errorf("%.30q is logged as %q, want %q", c.err, got, c.want)
		}
	}
}

// A receiver that isn't there, or accepts and says nothing.
func TestDeadReceiver(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		for name, listens := range map[string]bool{"down": false, "hangs": true} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				if listens {
					defer l.Close()
				} else {
					l.Close()
				}
				t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+l.Addr().String())
				e := setup(t, Options{})
				for range 1000 {
					e.Consume(one())
				}
				ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
				defer cancel()
				start := time.Now()
				err = e.Shutdown(ctx)
				// OTLP's own time-out is 10 s: this is far from both.
				if d := time.Since(start); d > 5*time.Second {
					t.Errorf("Shutdown took %v of its 200ms", d)
				}
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Shutdown said %v", err)
				}
				if e.Exported() != 0 || e.Dropped() != 1000 {
					t.Errorf("%d exported, %d dropped, want 0 and all 1000", e.Exported(), e.Dropped())
				}
			})
		}
	}
}

func TestDescribe(t *testing.T) {
	for _, tt := range []struct{ env, want, err string }{
		{"", "traces: off (set OTEL_EXPORTER_OTLP_ENDPOINT)", ""},
		{"OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318", "traces: off (OTEL_TRACES_EXPORTER=none)", ""},
		{"OTEL_SDK_DISABLED=true OTEL_TRACES_EXPORTER=otlp", "traces: off (OTEL_SDK_DISABLED is set)", ""},
		{"OTEL_TRACES_EXPORTER=console", "traces: to standard output", ""},
		{"OTEL_TRACES_EXPORTER=otlp", "traces: http://localhost:4318/v1/traces (http/protobuf)", ""},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "traces: http://localhost:4317 (grpc)", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://u:secret@h:4318/base?key=secret", "traces: http://h:4318/base/v1/traces (http/protobuf)", ""},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://h/x", "traces: https://h/x (http/protobuf)", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4317", "", "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=127.0.0.1:4317", "", "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=tcp://h:4317", "", "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL"},
		{"OTEL_TRACES_EXPORTER=zipkin", "", "use otlp, console or none"},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "", "use grpc or http/protobuf"},
	} {
		t.Run(tt.env, func(t *testing.T) {
			for kv := range strings.FieldsSeq(tt.env) {
				name, value, _ := strings.Cut(kv, "=")
				t.Setenv(name, value)
			}
			e, err := Setup(t.Context(), Options{})
			if err == nil {
				defer e.Shutdown(t.Context())
			}
			switch {
			case tt.err == "" && err != nil:
				t.Error(err)
			case tt.err == "" && e.Describe() != tt.want:
				t.Errorf("got %q, want %q", e.Describe(), tt.want)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("got error %v, want one that says %q", err, tt.err)
			case err != nil && strings.Contains(fmt.Sprint(err), "secret"):
				t.Errorf("the error tells secrets: %v", err)
			}
		})
	}
}
