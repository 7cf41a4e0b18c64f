package serve

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study/store"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A folder is the folder of a run whose cells are finished one by one. A cell holds the scores of
// one measure for a model, a data set and a transformation.
type folder struct {
	t      *testing.T
	dir    string
	record scores.Record
	cells  []scores.Cell // record.Keys holds their keys (names of their files), in the same order
}

// newFolder creates the folder of a run with a model for each name and two cells for each model. No
// cell is finished.
func newFolder(t *testing.T, dir string, models ...string) *folder {
	t.Helper()
	f := &folder{t: t, dir: dir, record: scores.Record{Study: "study of " + filepath.Base(dir), Seed: 1, Noether: "test",
		Started: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), Data: []scores.DataRecord{{Name: "d", Kind: "shapes", N: 100, Fingerprint: "f"}}}}
	for i, m := range models {
		f.record.Models = append(f.record.Models, scores.ModelRecord{Name: m, Path: m + ".onnx", SHA256: fmt.Sprint("hash", i), Tags: map[string]string{"family": "net"}})
		for j, transform := range []string{"gray", "tilt"} {
			f.record.Keys = append(f.record.Keys, fmt.Sprintf("%08d", 2*i+j))
			f.cells = append(f.cells, cell(m, transform, 0.5+0.1*float64(i)+0.01*float64(j)))
		}
	}
	f.record.Cells = len(f.cells)
	// cells is for the scores of finished cells, states for the saved progress of unfinished ones.
	for _, sub := range []string{"cells", "states"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	f.write("study.yaml", "name: x\n")
	f.saveRecord()
	return f
}

// cell returns a cell with two scores: "ei" (effective invariance), with jackknife replicates that
// leave out one of ten groups of samples, so that differences have intervals; and "odd", which is
// NaN.
func cell(model, transform string, value float64) scores.Cell {
	s := measure.Score{Statistic: "ei", Value: value, Low: value - 0.02, High: value + 0.02, Null: 0.1, N: 100}
	for g := range 10 {
		s.Replicates = append(s.Replicates, measure.Replicate{Value: value + 0.001*float64(g-5), Left: 10})
	}
	return scores.Cell{Model: model, Data: "d", Transform: transform, Measure: "effective-invariance",
		Layers: []scores.Layer{{Depth: scores.NoDepth, Scores: []measure.Score{s, {Statistic: "odd", Value: math.NaN(), Low: math.NaN(), High: math.NaN(), Null: math.NaN(), N: 100}}}}}
}

// write writes a file of the folder.
func (f *folder) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o666); err != nil {
		f.t.Fatal(err)
	}
}

// saveRecord writes the record of the run.
func (f *folder) saveRecord() {
	f.t.Helper()
	if err := scores.WriteRecord(filepath.Join(f.dir, "run.json"), f.record); err != nil {
		f.t.Fatal(err)
	}
}

// finishCell writes the scores of cell i.
func (f *folder) finishCell(i int) {
	f.t.Helper()
	body, err := f.cells[i].MarshalJSON()
	if err == nil {
		err = store.New(filepath.Join(f.dir, "cells"), store.Options{}).Put(store.Record{Key: f.record.Keys[i], Body: body})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// finish finishes all cells and records the end of the run.
func (f *folder) finish() *folder {
	f.t.Helper()
	for i := range f.cells {
		f.finishCell(i)
	}
	var b strings.Builder
	if err := scores.WriteCSV(&b, scores.Table(f.record.Study, f.cells)); err != nil {
		f.t.Fatal(err)
	}
	f.write("scores.csv", b.String())
	now := f.record.Started.Add(time.Minute)
	f.record.Finished, f.record.Done = &now, f.record.Cells
	f.saveRecord()
	return f
}

// startServer serves folders and returns the address of the server, which looks for changed files
// every 10 ms.
func startServer(t *testing.T, o Options) string {
	t.Helper()
	o.Every = 10 * time.Millisecond
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler("127.0.0.1:0"))
	t.Cleanup(func() { web.Close(); s.Close() })
	return web.URL
}

// get returns the status, the body and the header of a response. It does not follow redirects.
func get(t *testing.T, url string) (int, string, http.Header) {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body), r.Header
}

// getPage returns the text of the page at url. The test fails unless the status is 200.
func getPage(t *testing.T, url string) string {
	t.Helper()
	status, body, _ := get(t, url)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %.300s, want %d", url, status, body, http.StatusOK)
	}
	return body
}
