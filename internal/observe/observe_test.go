package observe

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel"
	collector_pb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/internal/study"
)

// get returns the body of the answer to a GET request, whose status must be 200.
func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s, error %v; want status 200", url, r.Status, err)
	}
	return string(body)
}

// TestMetricsAndProfilesAreServed serves the counters of a study that has not started: samples
// planned, and seconds spent on stages such as the engine, that is, ONNX Runtime.
func TestMetricsAndProfilesAreServed(t *testing.T) {
	t.Parallel()
	s, err := Serve("localhost:0", &study.Stats{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text := get(t, "http://"+s.Address+"/metrics")
	for _, want := range []string{`noether_samples{state="planned"} 0`, `noether_stage_seconds_total{stage="engine"} 0`, "process_resident_memory_bytes", "go_goroutines"} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if !strings.Contains(get(t, "http://"+s.Address+"/debug/pprof/goroutine?debug=1"), "goroutine profile") {
		t.Error("there is no profile of goroutines")
	}
	if get(t, "http://"+s.Address+"/healthz") != "ok\n" {
		t.Error("/healthz did not answer ok")
	}
	r, err := http.NewRequest(http.MethodGet, "http://"+s.Address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	if res, err := http.DefaultClient.Do(r); err != nil || res.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a request with Host evil.example was not refused: %v, %v", res, err)
	}
	if _, err := Serve(s.Address, &study.Stats{}); err == nil || !strings.Contains(err.Error(), s.Address) {
		t.Errorf("Serve at an address in use: %v, want an error with the address", err)
	}
	if problems, err := testutil.CollectAndLint(&collector{&study.Stats{}}); err != nil || len(problems) > 0 {
		t.Errorf("problems in the names and help of the metrics: %v, error %v; want none", problems, err)
	}
}

// TestLogs checks that the logger writes JSON lines and leaves out messages below its level.
func TestLogs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := NewLogger(&out, "json", "warn")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("below the level")
	log.Warn("at the level", "model", "a\nb")
	var line struct{ Level, Msg, Model string }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Level != "WARN" || line.Msg != "at the level" || line.Model != "a\nb" {
		t.Errorf("the log is %q, read as %+v, error %v; want the warning alone", out.String(), line, err)
	}
	for _, bad := range [][2]string{{"yaml", "info"}, {"json", "loud"}} {
		if _, err := NewLogger(&out, bad[0], bad[1]); err == nil {
			t.Errorf("NewLogger accepts the format and level %q, want an error", bad)
		}
	}
}

// TestTracesArrive checks that spans reach an OTLP server, that another protocol is an error, and
// that Trace warns once, not for each error, when the server cannot be reached.
func TestTracesArrive(t *testing.T) {
	var spans atomic.Int64
	var service atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var got collector_pb.ExportTraceServiceRequest
		if r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &got) != nil {
			http.Error(w, "not an OTLP trace", http.StatusBadRequest)
			return
		}
		for _, rs := range got.ResourceSpans {
			for _, a := range rs.Resource.Attributes {
				if a.Key == "service.name" {
					service.Store(a.Value.GetStringValue())
				}
			}
			for _, ss := range rs.ScopeSpans {
				spans.Add(int64(len(ss.Spans)))
			}
		}
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	// The argument "1" is the program's version.
	stop, err := Trace(t.Context(), "1", func(text string) { t.Error(text) })
	if err != nil {
		t.Fatal(err)
	}
	_, span := otel.Tracer("test").Start(t.Context(), "pass")
	span.End()
	stop()
	if spans.Load() != 1 || service.Load() != "noether" {
		t.Errorf("%d spans of the service %v arrived, want one of noether", spans.Load(), service.Load())
	}

	server.Close() // the next span cannot be sent
	var warned atomic.Int64
	stop, err = Trace(t.Context(), "1", func(string) { warned.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	if _, err := Trace(t.Context(), "1", nil); err == nil || !strings.Contains(err.Error(), "http/protobuf") {
		t.Errorf("grpc: error %v, want one with %q", err, "http/protobuf")
	}
	_, span = otel.Tracer("test").Start(t.Context(), "pass")
	span.End()
	var group sync.WaitGroup
	for range 64 { // the exporter reports errors from several goroutines
		group.Go(func() { otel.Handle(errors.New("lost")) })
	}
	group.Wait()
	stop()
	if warned.Load() != 1 {
		t.Errorf("%d warnings of lost traces, want 1", warned.Load())
	}
}
