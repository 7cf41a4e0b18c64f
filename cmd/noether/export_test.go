package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// finishedRun returns the folder of a finished run of a small study. A smallStudy without mistakes
// is a valid study of good.onnx, the valid model in brokenFolder.
func finishedRun(t *testing.T) string {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(smallStudy{measures: "accuracy, effective-invariance, distance"}.text()))
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	return run
}

func TestExport(t *testing.T) {
	run := finishedRun(t)
	want, err := os.ReadFile(filepath.Join(run, "scores.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := output(t, "export", run, "--csv"); err != nil || got != string(want) {
		t.Errorf("CSV is not scores.csv: %v", err)
	}
	rows, err := scores.ReadCSV(strings.NewReader(string(want)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := output(t, "export", run, "--json")
	var asJSON []map[string]any
	if err != nil || json.Unmarshal([]byte(text), &asJSON) != nil || len(asJSON) != len(rows) {
		t.Errorf("JSON has %d rows, want %d: %v", len(asJSON), len(rows), err)
	}
	byExtension := filepath.Join(t.TempDir(), "x.json")
	if message, code := errorOutput(t, "export", run, "-o", byExtension); code != 0 || message != "noether: wrote "+byExtension+"\n" {
		t.Errorf("export -o: exit %d, %q, want 0 and the name of the file", code, message)
	}
	if raw, err := os.ReadFile(byExtension); err != nil || string(raw) != text {
		t.Errorf("the format by extension: %v, %d bytes, want %d", err, len(raw), len(text))
	}
	file := filepath.Join(t.TempDir(), "x.parquet")
	if code, message := call(t, "export", run, "--parquet", "-o", file); code != 0 {
		t.Fatal(message)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	if got, err := parquetfile.Read(f, info.Size()); err != nil || len(got) != len(rows) {
		t.Errorf("Parquet has %d rows, want %d: %v", len(got), len(rows), err)
	}
	// These tables leave out scores of layers, such as the cosine, if there are scores of whole
	// models.
	for format, want := range map[string]string{"--latex": `\begin{tabular}`, "--markdown": "| model |"} {
		if got, err := output(t, "export", run, format); err != nil || !strings.Contains(got, want) || strings.Contains(got, "cosine") {
			t.Errorf("%s prints %q, error %v; want %q and no cosine", format, got, err, want)
		}
	}
	if got, err := output(t, "export", run, "--csv", "--wide", "--measure", "distance"); err != nil || !strings.Contains(got, "cosine distance") {
		t.Errorf("the wide table is %q, want a column cosine distance; error %v", got, err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{run}, 2, "give one format"},
		{[]string{run, "--csv", "--json"}, 2, "give one format"},
		{[]string{run, "--csv", "--statistic", "eii"}, 1, `no score has the statistic "eii"`},
		{[]string{run, "--mlflow", "somewhere"}, 2, "no address"},
		{[]string{filepath.Dir(run), "--csv"}, 1, "not a run folder"},
	} {
		if code, message := call(t, append([]string{"export"}, c.args...)...); code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args, code, message, c.code, c.want)
		}
	}
}

// TestExportForSpreadsheets checks that names which a spreadsheet takes for formulas are written
// with an apostrophe before them with --csv-safe, and unchanged without.
func TestExportForSpreadsheets(t *testing.T) {
	dir := t.TempDir()
	testmodel.Write(t, dir, "good", testmodel.Options{})
	study := write(t, dir, "study.yaml", []byte(`name: "+study"
data: [{name: "@data", shapes: {n: 40, size: 16}}]
models: [{name: "=HYPERLINK(\"http://example.com\")", onnx: good.onnx, layers: [conv]}]
transforms: [{name: "-turn", rotate: {values: [-15]}}]
measures: [distance]
`))
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	firstRow := func(args ...string) scores.Row {
		t.Helper()
		text, err := output(t, append([]string{"export", run}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := scores.ReadCSV(strings.NewReader(text))
		if err != nil || len(rows) == 0 {
			t.Fatalf("%d rows, want some; error %v", len(rows), err)
		}
		return rows[0]
	}
	plain, safe := firstRow("--csv"), firstRow("--csv-safe")
	for _, c := range []struct{ plain, safe, want string }{
		{plain.Study, safe.Study, "+study"},
		{plain.Model, safe.Model, `=HYPERLINK("http://example.com")`},
		{plain.Data, safe.Data, "@data"},
		{plain.Transform, safe.Transform, "-turn"},
	} {
		if c.plain != c.want || c.safe != "'"+c.want {
			t.Errorf("%q without --csv-safe and %q with it, want %q, and with it an apostrophe before", c.plain, c.safe, c.want)
		}
	}
	if safe.Parameter != "-15" || safe.Value != plain.Value {
		t.Errorf("the row is %+v, want the parameter -15 and the value %v as without --csv-safe", safe, plain.Value)
	}
	if wide, err := output(t, "export", run, "--csv-safe", "--wide"); err != nil || strings.Contains(wide, "\n=") || strings.Contains(wide, "\n\"=") || !strings.Contains(wide, "'=HYPERLINK") {
		t.Errorf("--csv-safe --wide prints %s, error %v; want names without formulas", wide, err)
	}
	file := filepath.Join(dir, "safe.csv")
	if code, message := call(t, "export", run, "--csv-safe", "-o", file); code != 0 {
		t.Fatal(message)
	}
	if raw, err := os.ReadFile(file); err != nil || !strings.Contains(string(raw), "'=HYPERLINK") {
		t.Errorf("the file holds %s, error %v; want names without formulas", raw, err)
	}
	if code, message := call(t, "export", run, "--csv-safe", "--json"); code != 2 || !strings.Contains(message, "cannot be combined") {
		t.Errorf("exit %d: %s, want exit 2 and a message with %q", code, message, "cannot be combined")
	}
}

// TestExportToMLflow checks the values that are logged for a run, in an MLflow run and a child run
// of it. Package mlflow tests the format of the requests.
func TestExportToMLflow(t *testing.T) {
	run := finishedRun(t)
	var mutex sync.Mutex
	seen, runs := map[string]string{}, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		mutex.Lock()
		defer mutex.Unlock()
		seen[r.URL.Path] += string(raw)
		switch {
		case strings.HasSuffix(r.URL.Path, "get-by-name"):
			io.WriteString(w, `{"experiment": {"experiment_id": "3"}}`)
		case strings.HasSuffix(r.URL.Path, "runs/create"):
			runs++
			fmt.Fprintf(w, `{"run": {"info": {"run_id": "r%d", "artifact_uri": "mlflow-artifacts:/3/r%d/artifacts"}}}`, runs, runs)
		default:
			io.WriteString(w, "{}")
		}
	}))
	defer server.Close()
	if code, message := call(t, "export", run, "--mlflow", server.URL); code != 0 {
		t.Fatal(message)
	}
	for _, file := range []string{"study.yaml", "run.json", "scores.csv", "scores.parquet", "report.html", "figures/depth.pdf", "figures/bars.png"} {
		if seen["/api/2.0/mlflow-artifacts/artifacts/3/r1/artifacts/"+file] == "" {
			t.Errorf("%s is not uploaded", file)
		}
	}
	logged := seen["/api/2.0/mlflow/runs/log-batch"]
	for _, want := range []string{`"effective-invariance.ei/`, `"accuracy.clean/`, `"sha256"`, `"seed"`} {
		if !strings.Contains(logged, want) {
			t.Errorf("%s is not logged in %.500s", want, logged)
		}
	}
	if runs != 2 || !strings.Contains(seen["/api/2.0/mlflow/runs/create"], `"mlflow.parentRunId","value":"r1"`) || strings.Count(seen["/api/2.0/mlflow/runs/update"], "FINISHED") != 2 {
		t.Errorf("%d runs, want 2, of which one is a child, and both are finished: %s, %s", runs, seen["/api/2.0/mlflow/runs/create"], seen["/api/2.0/mlflow/runs/update"])
	}
}
