package mlflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A server is a mock of MLflow's tracking server. It checks requests against MLflow's published
// REST API (version 2.0): paths, methods, content types, fields and their types, names, and the
// largest lengths of names and values and sizes of batches that the API allows.
type server struct {
	t           *testing.T
	experiments map[string]string     // ID by name
	runs        map[string]*storedRun // by ID
	uri         string                // artifact URI of a run; %s stands for its ID
}

// A storedRun is a run as the server keeps it.
type storedRun struct {
	experiment, name, parent, status string
	params, tags                     map[string]string
	metrics                          []Metric
	files                            map[string]string // contents of the artifacts, by path
	batches                          int               // number of log-batch requests
}

// newServer starts a server that numbers experiments from 7, and returns it with a client.
func newServer(t *testing.T) (*server, *Client) {
	s := &server{t: t, experiments: map[string]string{}, runs: map[string]*storedRun{}, uri: "mlflow-artifacts:/7/%s/artifacts"}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	c, err := New(web.URL+"/", Credentials{User: "ada", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

var (
	validName = regexp.MustCompile(`^[/\w.\- ]*$`)
	validRun  = regexp.MustCompile(`^[a-zA-Z0-9][\w\-]{0,255}$`)
)

// refuse answers with an error.
func (s *server) refuse(w http.ResponseWriter, status int, code, format string, args ...any) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error_code": code, "message": fmt.Sprintf(format, args...)})
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if user, password, ok := r.BasicAuth(); !ok || user != "ada" || password != "secret" {
		s.refuse(w, 401, "UNAUTHENTICATED", "wrong user or password")
		return
	}
	if file, ok := strings.CutPrefix(r.URL.Path, "/api/2.0/mlflow-artifacts/artifacts/"); ok {
		s.artifact(w, r, file)
		return
	}
	call, ok := strings.CutPrefix(r.URL.Path, "/api/2.0/mlflow/")
	if !ok {
		s.t.Errorf("a request for %s", r.URL.Path)
		w.WriteHeader(404)
		return
	}
	if call == "experiments/get-by-name" && r.Method == http.MethodGet {
		name := r.URL.Query().Get("experiment_name")
		if s.experiments[name] == "" {
			s.refuse(w, 404, "RESOURCE_DOES_NOT_EXIST", "Could not find experiment with name %s", name)
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"experiment": map[string]any{"experiment_id": s.experiments[name], "name": name, "lifecycle_stage": "active"}})
		return
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("%s %s with content type %q", r.Method, call, r.Header.Get("Content-Type"))
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil || len(raw) > 1e6 {
		s.t.Errorf("%s: %d bytes, %v", call, len(raw), err)
	}
	s.post(w, call, raw)
}

// read decodes a request. A field that the API does not have is an error.
func (s *server) read(raw []byte, to any) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		s.t.Errorf("%v in %.200s", err, raw)
	}
}

func (s *server) post(w http.ResponseWriter, call string, raw []byte) {
	switch call {
	case "experiments/create":
		var q struct {
			Name string `json:"name"`
		}
		s.read(raw, &q)
		if q.Name == "" || len(q.Name) > 500 {
			s.t.Errorf("an experiment named %q", q.Name)
		}
		s.experiments[q.Name] = fmt.Sprint(len(s.experiments) + 7)
		json.NewEncoder(w).Encode(map[string]string{"experiment_id": s.experiments[q.Name]})
	case "runs/create":
		var q struct {
			Experiment string `json:"experiment_id"`
			Name       string `json:"run_name"`
			Start      int64  `json:"start_time"`
			Tags       []pair `json:"tags"`
		}
		s.read(raw, &q)
		run := &storedRun{experiment: q.Experiment, name: q.Name, status: "RUNNING", params: map[string]string{}, tags: map[string]string{}, files: map[string]string{}}
		for _, t := range q.Tags {
			s.checkPair(t, 5000)
			if t.Key == "mlflow.parentRunId" {
				run.parent = t.Value
			}
		}
		if q.Start < 1e12 {
			s.t.Errorf("start_time %d is not in milliseconds", q.Start)
		}
		id := fmt.Sprintf("run%d", len(s.runs))
		s.runs[id] = run
		json.NewEncoder(w).Encode(map[string]any{"run": map[string]any{"info": map[string]any{
			"run_id": id, "experiment_id": q.Experiment, "status": "RUNNING", "artifact_uri": fmt.Sprintf(s.uri, id)}, "data": map[string]any{}}})
	case "runs/log-batch":
		s.batch(raw)
		io.WriteString(w, "{}")
	case "runs/update":
		var q struct {
			Run    string `json:"run_id"`
			Status string `json:"status"`
			End    int64  `json:"end_time"`
		}
		s.read(raw, &q)
		if q.Status != "FINISHED" && q.Status != "FAILED" {
			s.t.Errorf("status %q", q.Status)
		}
		s.runs[q.Run].status = q.Status
		io.WriteString(w, `{"run_info": {}}`)
	default:
		s.t.Errorf("a request for %s", call)
		w.WriteHeader(404)
	}
}

func (s *server) batch(raw []byte) {
	var q struct {
		Run     string   `json:"run_id"`
		Metrics []Metric `json:"metrics"`
		Params  []pair   `json:"params"`
		Tags    []pair   `json:"tags"`
	}
	s.read(raw, &q)
	run := s.runs[q.Run]
	if !validRun.MatchString(q.Run) || run == nil {
		s.t.Fatalf("no run %q", q.Run)
	}
	run.batches++
	if len(q.Metrics) > 1000 || len(q.Params) > 100 || len(q.Tags) > 100 || len(q.Metrics)+len(q.Params)+len(q.Tags) > 1000 {
		s.t.Errorf("a batch of %d metrics, %d params, %d tags, want 1000, 100, 100 and 1000 in all at most", len(q.Metrics), len(q.Params), len(q.Tags))
	}
	for _, m := range q.Metrics {
		s.checkName(m.Key)
		if m.Time < 0 {
			s.t.Errorf("timestamp %d", m.Time)
		}
		run.metrics = append(run.metrics, m)
	}
	for _, p := range q.Params {
		s.checkPair(p, 6000)
		if old, known := run.params[p.Key]; known && old != p.Value {
			s.t.Errorf("param %s changes from %s to %s", p.Key, old, p.Value)
		}
		run.params[p.Key] = p.Value
	}
	for _, t := range q.Tags {
		s.checkPair(t, 5000)
		run.tags[t.Key] = t.Value
	}
}

func (s *server) checkName(name string) {
	clean := path.Clean(name)
	if name == "" || len(name) > 250 || !validName.MatchString(name) || clean != name || clean == "." || strings.HasPrefix(clean, "..") || strings.HasPrefix(clean, "/") {
		s.t.Errorf("the name %q is not allowed", name)
	}
}

func (s *server) checkPair(p pair, most int) {
	s.checkName(p.Key)
	if len(p.Value) > most {
		s.t.Errorf("%s has %d characters, want %d at most", p.Key, len(p.Value), most)
	}
}

func (s *server) artifact(w http.ResponseWriter, r *http.Request, file string) {
	if r.Method != http.MethodPut {
		s.t.Errorf("%s of an artifact", r.Method)
	}
	parts := strings.SplitN(file, "/", 4) // experiment, run, artifacts, path
	if len(parts) != 4 || parts[0] != "7" || s.runs[parts[1]] == nil || parts[2] != "artifacts" {
		s.t.Fatalf("an artifact at %s", file)
	}
	raw, _ := io.ReadAll(r.Body)
	s.runs[parts[1]].files[parts[3]] = string(raw)
	io.WriteString(w, "{}")
}

// TestLogRun logs a run with one child. MLflow does not permit some of the names, which Log
// replaces, nor params as long as the first, which Log truncates. Log leaves out the metric that is
// NaN. Metrics are named by a measure, here seis, and its statistic.
func TestLogRun(t *testing.T) {
	t.Parallel()
	s, c := newServer(t)
	ctx := t.Context()
	id, err := c.Experiment(ctx, "rotation & colour")
	if err != nil || id != "7" {
		t.Fatal(id, err)
	}
	if again, err := c.Experiment(ctx, "rotation & colour"); err != nil || again != id {
		t.Fatal(again, err)
	}
	parent, err := c.Start(ctx, id, "first", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	child, err := c.Start(ctx, id, "resnet", parent.ID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	params, metrics := map[string]string{"../../etc": strings.Repeat("ü", 4000), "": "empty"}, []Metric{{Key: "bad", Value: math.NaN()}}
	for i := range 230 {
		params[fmt.Sprint("p", i)] = "v"
	}
	for i := range 2500 {
		metrics = append(metrics, Metric{Key: "seis.equivariance/<script>", Value: float64(i), Step: int64(i)})
	}
	metrics = append(metrics, Metric{Key: "seis.equivariance/*script*", Value: 1})
	if err := child.Log(ctx, params, map[string]string{"family": "resnet"}, metrics); err != nil {
		t.Fatal(err)
	}
	if err := child.Artifact(ctx, "figures/depth curve.png", strings.NewReader("picture")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(child.End(ctx, true, time.Now()), parent.End(ctx, false, time.Now())); err != nil {
		t.Fatal(err)
	}
	got := s.runs[child.ID]
	if len(got.metrics) != 2501 || len(got.params) != 232 || got.tags["family"] != "resnet" || got.parent != parent.ID || got.batches < 3 {
		t.Errorf("%d metrics, %d params, tags %v, parent %s, %d batches; want 2501, 232, the family, %s and at least 3",
			len(got.metrics), len(got.params), got.tags, got.parent, got.batches, parent.ID)
	}
	if got.metrics[2500].Key == got.metrics[0].Key {
		t.Error("two metrics became one")
	}
	if got.files["figures/depth curve.png"] != "picture" || got.status != "FINISHED" || s.runs[parent.ID].status != "FAILED" {
		t.Errorf("files %v, status %s; want the figure, FINISHED, and FAILED for the parent", got.files, got.status)
	}
}

// TestNoUploadToOtherServers checks that artifacts whose URI names another server, which would
// receive the credentials, or a file system are not uploaded.
func TestNoUploadToOtherServers(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"s3://bucket/%s", "file:///srv/mlruns/%s", "mlflow-artifacts://evil.example:80/7/%s/artifacts", ""} {
		s, c := newServer(t)
		s.uri = strings.Replace(uri, "%s", "x", 1) + "%.0s" // %.0s takes the run ID and prints nothing
		run, err := c.Start(t.Context(), "7", "n", "", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Artifact(t.Context(), "a", strings.NewReader("")); !errors.Is(err, ErrArtifacts) {
			t.Errorf("artifacts at %s: the error is %v, want ErrArtifacts", uri, err)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "localhost:5000", "ftp://x", "http://", "::"} {
		if _, err := New(address, Credentials{}); err == nil {
			t.Errorf("New accepts the address %q", address)
		}
	}
	_, c := newServer(t)
	c.password = "wrong"
	if _, err := c.Experiment(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "401 UNAUTHENTICATED") {
		t.Errorf("wrong password: error %v, want one with %q", err, "401 UNAUTHENTICATED")
	}
	notMLflow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "create") {
			http.Redirect(w, r, "http://evil.example/", http.StatusFound)
			return
		}
		io.WriteString(w, "<html>hello</html>")
	}))
	defer notMLflow.Close()
	other, _ := New(notMLflow.URL, Credentials{Token: "t"})
	if _, err := other.Experiment(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "is it an MLflow server?") {
		t.Errorf("not an MLflow server: error %v, want one with %q", err, "is it an MLflow server?")
	}
	if _, err := other.Start(t.Context(), "1", "n", "", time.Now()); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("a redirect: error %v, want one with %q", err, "302")
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Experiment(stopped, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: error %v, want context.Canceled", err)
	}
}

// TestNamesAreValid checks that paramName returns a name that MLflow permits for any key.
func TestNamesAreValid(t *testing.T) {
	t.Parallel()
	s := &server{t: t}
	rapid.Check(t, func(t *rapid.T) { s.checkName(paramName(rapid.String().Draw(t, "key"))) })
	for key, want := range map[string]string{"/../a//b/": "a/b", "ei@rotation": "ei_rotation", "..": "_", "a b": "a b"} {
		if got := paramName(key); got != want {
			t.Errorf("paramName(%q) = %q, want %q", key, got, want)
		}
	}
}
