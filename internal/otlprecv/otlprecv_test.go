package otlprecv

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) {
	if Requested() {
		Main()
	}
	os.Exit(m.Run())
}

func TestReceiver(t *testing.T) {
	t.Parallel()
	dump := filepath.Join(t.TempDir(), "dump.json")
	p, err := Start(dump)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	if p.Pid() == os.Getpid() {
		t.Error("the receiver is this process")
	}
	body, err := proto.Marshal(&tracepb.ExportTraceServiceRequest{ResourceSpans: []*spanpb.ResourceSpans{{
		ScopeSpans: []*spanpb.ScopeSpans{{Spans: []*spanpb.Span{{Name: "one"}, {Name: "two"}}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(body)
	z.Close()
	for _, tt := range []struct {
		body     []byte
		encoding string
		want     int
	}{
		{body, "", http.StatusOK},
		{zipped.Bytes(), "gzip", http.StatusOK},
		{[]byte("not protobuf"), "", http.StatusBadRequest},
		{body, "gzip", http.StatusBadRequest},
	} {
		if got := post(t, "http://"+p.HTTP+"/v1/traces", tt.body, tt.encoding); got != tt.want {
			t.Errorf("%d bytes, encoding %q: status %d, want %d", len(tt.body), tt.encoding, got, tt.want)
		}
	}
	want := Counts{Requests: 2, Spans: 4, Bytes: 2 * uint64(len(body))}
	if got, err := p.Counts(); err != nil || got != want {
		t.Errorf("counted %+v (%v), want %+v", got, err, want)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	text, err := os.ReadFile(dump)
	if err != nil || bytes.Count(text, []byte("\n")) != 2 || bytes.Count(text, []byte(`"two"`)) != 2 {
		t.Errorf("the dump is %q (%v)", text, err)
	}
	if _, err := p.Counts(); err == nil {
		t.Error("a receiver that ended still counts")
	}
}

func post(t *testing.T, url string, body []byte, encoding string) int {
	t.Helper()
	q, err := http.NewRequest("POST", url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/x-protobuf")
	if encoding != "" {
		q.Header.Set("Content-Encoding", encoding)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode
}
