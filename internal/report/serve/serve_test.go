package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// ids returns the ids of the runs that match a search, by the names of the runs.
func ids(t *testing.T, url, query string) map[string]string {
	t.Helper()
	var list struct{ Runs []runJSON }
	if err := json.Unmarshal([]byte(getPage(t, url+"/api/v1/runs?q="+query)), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range list.Runs {
		out[r.Name] = r.ID
	}
	return out
}

// TestAnswersMeetTheirSchema checks responses against the OpenAPI document. newFolder creates a run
// with two cells for each named model: a cell is one measure of one model under one transformation.
// finishCell writes the scores of one cell, finish those of all.
func TestAnswersMeetTheirSchema(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "runs")
	newFolder(t, filepath.Join(dir, "first"), "small", "large").finish()
	newFolder(t, filepath.Join(dir, "deep", "second"), "small").finishCell(0)
	url := startServer(t, Options{Dirs: []string{dir}})
	found := ids(t, url, "")
	if len(found) != 2 || found["runs/first"] == "" || found["runs/deep/second"] == "" {
		t.Fatalf("the runs are %v, want runs/first and runs/deep/second", found)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(getPage(t, url+"/api/v1/openapi.json"))))
	if err != nil {
		t.Fatal(err)
	}
	paths := document.(map[string]any)["paths"].(map[string]any)
	id := found["runs/first"]
	// The search LARGE+family:net is for two words: the name of a model and a tag.
	for call, schema := range map[string]string{
		"/runs": "Runs", "/runs?q=LARGE+family:net": "Runs", "/runs/" + id: "Run", "/runs/" + found["runs/deep/second"]: "Run",
		"/runs/" + id + "/scores": "Scores", "/runs/" + id + "/scores?statistic=ei&limit=1&offset=1": "Scores", "/runs/nobody": "Error", "/runs/" + id + "/scores?limit=x": "Error",
		"/compare?run=" + id + "&run=" + found["runs/deep/second"] + "&all=1": "Comparisons", "/compare?run=" + id + "&model=small&model=large": "Comparisons",
		"/compare": "Error", "/compare?run=" + id + "&model=small&model=nobody": "Error",
	} {
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource("openapi.json", document); err != nil {
			t.Fatal(err)
		}
		want, err := c.Compile("openapi.json#/components/schemas/" + schema)
		if err != nil {
			t.Fatal(err)
		}
		status, body, header := get(t, url+"/api/v1"+call)
		if (status == http.StatusOK) == (schema == "Error") || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: status %d and content type %s, want an answer in JSON of schema %s", call, status, header.Get("Content-Type"), schema)
		}
		got, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err == nil {
			err = want.Validate(got)
		}
		if err != nil {
			t.Errorf("%s: %v in %.300s", call, err, body)
		}
	}
	for _, p := range []string{"/api/v1/runs", "/api/v1/runs/{id}", "/api/v1/runs/{id}/scores", "/api/v1/runs/{id}/scores.csv", "/api/v1/runs/{id}/scores.parquet", "/api/v1/compare", "/api/v1/events"} {
		if paths[p] == nil {
			t.Errorf("%s is not documented", p)
		}
	}
}

// TestDownloads reads the scores of a run as CSV, and those of one of two models as Parquet.
func TestDownloads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := newFolder(t, dir, "small", "large").finish()
	url := startServer(t, Options{Dirs: []string{dir}})
	id := ids(t, url, "")[filepath.Base(dir)]
	want := scores.Table(f.record.Study, f.cells)
	csv, err := scores.ReadCSV(strings.NewReader(getPage(t, url+"/api/v1/runs/"+id+"/scores.csv")))
	if err != nil || len(csv) != len(want) {
		t.Errorf("CSV: %d rows and error %v, want %d rows", len(csv), err, len(want))
	}
	raw := getPage(t, url+"/api/v1/runs/"+id+"/scores.parquet?model=small")
	parquet, err := parquetfile.Read(strings.NewReader(raw), int64(len(raw)))
	if err != nil || len(parquet) != len(want)/2 || parquet[0].Model != "small" {
		t.Errorf("Parquet: %d rows and error %v, want %d rows of small", len(parquet), err, len(want)/2)
	}
}

// TestCompare checks which scores of two runs differ, and which by more than the interval of the
// difference. Each run has two scores for each of the transformations gray and tilt. One score of
// gray differs; the parameter all=1 asks for all scores. The interval of a paired difference is
// computed from the replicates: the values of both scores without the same group of samples.
func TestCompare(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newFolder(t, filepath.Join(dir, "a"), "net").finish()
	b := newFolder(t, filepath.Join(dir, "b"), "net2")
	b.cells[0].Layers[0].Scores[0].Value += 0.3
	for i := range b.cells[0].Layers[0].Scores[0].Replicates {
		b.cells[0].Layers[0].Scores[0].Replicates[i].Value += 0.3
	}
	b.finish()
	url := startServer(t, Options{Dirs: []string{dir}})
	found := ids(t, url, "")
	base := filepath.Base(dir)
	query := "?run=" + found[base+"/a"] + "&run=" + found[base+"/b"]
	var got struct {
		Comparisons []struct {
			Compared, Beyond int // scores compared; those that differ by more than the interval
			Differences      []struct {
				Value, Low, High *float64
				Paired           bool
			}
		}
	}
	if err := json.Unmarshal([]byte(getPage(t, url+"/api/v1/compare"+query)), &got); err != nil {
		t.Fatal(err)
	}
	c := got.Comparisons[0]
	if c.Compared != 4 || c.Beyond != 1 || len(c.Differences) != 1 || !c.Differences[0].Paired || *c.Differences[0].Value < 0.299 || *c.Differences[0].Low < 0.29 {
		t.Errorf("comparison %+v, want one of four, a paired difference of 0.3 that exceeds its interval", c)
	}
	page := getPage(t, url+"/compare"+query)
	if !strings.Contains(page, "1 of 4 scores differ beyond chance") || !strings.Contains(page, "&#43;0.300") || strings.Contains(page, "tilt") {
		t.Errorf("want one of four scores, +0.300, and no tilt on the page: %s", page)
	}
	if page = getPage(t, url+"/compare"+query+"&all=1"); !strings.Contains(page, "tilt") {
		t.Error("the page does not have every score")
	}
	if report := getPage(t, url+"/compare/report"+query); !strings.Contains(report, "net2") {
		t.Error("the report of both runs lacks one of them")
	}
}

// TestReportOfTwoRunsSeparatesModels checks that models with the same name in two runs stay
// separate in a report of both.
func TestReportOfTwoRunsSeparatesModels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newFolder(t, filepath.Join(dir, "a"), "net").finish()
	newFolder(t, filepath.Join(dir, "b"), "net").finish()
	url := startServer(t, Options{Dirs: []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}})
	found := ids(t, url, "")
	report := getPage(t, url+"/compare/report?run="+found["a"]+"&run="+found["b"])
	for _, want := range []string{"net (a)", "net (b)"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report of both runs lacks %q", want)
		}
	}
}

// TestListAndSearch checks that new runs appear in the list and are found by a search.
func TestListAndSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newFolder(t, filepath.Join(dir, "one"), "resnet").finish()
	url := startServer(t, Options{Dirs: []string{dir}})
	if page := getPage(t, url+"/?q=resnet+one"); !strings.Contains(page, "/one</a>") || !strings.Contains(page, "1 of 1 runs") {
		t.Errorf("want run one of 1 in the list: %s", page)
	}
	if page := getPage(t, url+"/?q=vgg"); !strings.Contains(page, "No run has all of these words") {
		t.Errorf("want no run in the list: %s", page)
	}
	id := ids(t, url, "")[filepath.Base(dir)+"/one"]
	if page := getPage(t, url+"/runs/"+id); !strings.Contains(page, "finished, 2 of 2 cells") || !strings.Contains(page, ">Findings<") {
		t.Errorf("want 2 of 2 cells, finished, and findings of the run: %s", page)
	}
	if page := getPage(t, url+"/runs/"+id+"/report"); !strings.Contains(page, "Noether report") {
		t.Error("the page of the report is not a report")
	}
	cut := newFolder(t, filepath.Join(dir, "cut"), "vgg")
	cut.write("run.json", `{"study": "x"`)
	if page := getPage(t, startServer(t, Options{Dirs: []string{dir}})); !strings.Contains(page, "1 of 1 runs") || !strings.Contains(page, "/cut: run.json: the file is truncated") {
		t.Errorf("want run one, and that the record of cut cannot be read: %s", page)
	}
	if empty := getPage(t, startServer(t, Options{Dirs: []string{t.TempDir()}})); !strings.Contains(empty, "There is no run") {
		t.Errorf("want no run of an empty folder: %s", empty)
	}
}

// TestLinksAndNames checks that a report and the page of an error 404 link to the list of runs, and
// that runs of the same name in two folders get different names.
func TestLinksAndNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, parent := range []string{"x", "y"} {
		newFolder(t, filepath.Join(dir, parent, "runs", "first"), "net").finish()
	}
	url := startServer(t, Options{Dirs: []string{filepath.Join(dir, "x", "runs"), filepath.Join(dir, "y", "runs")}})
	found := ids(t, url, "")
	if len(found) != 2 || found["x/runs/first"] == "" || found["y/runs/first"] == "" {
		t.Errorf("the runs are %v, want x/runs/first and y/runs/first", found)
	}
	const back = `<a href="/">`
	pair := "/compare/report?run=" + found["x/runs/first"] + "&run=" + found["y/runs/first"]
	for _, page := range []string{"/runs/" + found["x/runs/first"] + "/report", pair} {
		if text := getPage(t, url+page); !strings.Contains(text, back+"All runs</a>") {
			t.Errorf("%s has no way back to the list", page)
		}
	}
	for _, page := range []string{"/nothing", "/runs/0123", "/runs/0123/report"} {
		status, text, header := get(t, url+page)
		if status != http.StatusNotFound || !strings.Contains(text, back+"Noether runs</a>") || !strings.Contains(text, "not found") && !strings.Contains(text, "there is no page /nothing") || header.Get("Content-Type") != htmlType {
			t.Errorf("%s: status %d, want 404 and a page with a link to the runs: %s", page, status, text)
		}
	}
}

// TestProgressIsStreamed checks that the progress of a run in another process, which shows in its
// files, is sent as a stream of server-sent events. A cell is what a run computes and saves at
// once: the scores of one measure for a model, data and a transformation.
func TestProgressIsStreamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := newFolder(t, dir, "net")
	url := startServer(t, Options{Dirs: []string{dir}})
	if page := getPage(t, url); !strings.Contains(page, "running, 0 of 2 cells") || !strings.Contains(page, "data-live") {
		t.Fatalf("want a running run without finished cells in the list: %s", page)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the events have error %v and the response %+v, want an event stream", err, res)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	var seen []Progress
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || text == "{}" { // {}: the data of the last event, end
			continue
		}
		var p Progress
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, p)
		switch p.Done {
		case 0:
			f.finishCell(0)
		case 1:
			f.finish()
		}
	}
	if len(seen) == 0 {
		t.Fatal("nothing is streamed: ", lines.Err())
	}
	last := seen[len(seen)-1]
	if seen[0].Done != 0 || seen[0].State != running || last.Done != 2 || last.State != finished {
		t.Errorf("the progress was %+v, want a running run with 0 cells first, and a finished one with 2 last", seen)
	}
	if !slices.ContainsFunc(seen, func(p Progress) bool { return p.Done == 1 && p.State == running }) {
		t.Errorf("the progress was %+v, want a running run with 1 cell in between", seen)
	}
}

// TestUnfinishedRun checks the page and the report of an unfinished run that has stopped: its files
// have not changed for more than stoppedAfter.
func TestUnfinishedRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := newFolder(t, dir, "net")
	f.finishCell(1)
	old := time.Now().Add(-time.Hour)
	logs, _ := filepath.Glob(filepath.Join(dir, "cells", "*"))
	for _, name := range append(logs, filepath.Join(dir, "run.json"), filepath.Join(dir, "cells"), filepath.Join(dir, "states")) {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	url := startServer(t, Options{Dirs: []string{dir}})
	id := ids(t, url, "")[filepath.Base(dir)]
	if page := getPage(t, url+"/runs/"+id); !strings.Contains(page, "stopped, 1 of 2 cells") {
		t.Errorf("want a stopped run with 1 of 2 cells: %s", page)
	}
	if report := getPage(t, url+"/runs/"+id+"/report"); !strings.Contains(report, "tilt") {
		t.Error("the report lacks the finished cell")
	}
}

// TestStopsGracefully checks that Serve returns without an error when its context is cancelled
// while a client reads a stream of events.
func TestStopsGracefully(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newFolder(t, dir, "net")
	s, err := New(Options{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l, l.Addr().String()) }()
	res, err := http.Get("http://" + l.Addr().String() + "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the server ended with error %v, want none", err)
		}
	case <-time.After(testTimeout):
		t.Fatal("the server does not stop")
	}
}

// TestForest checks the forest plot of a comparison: differences are in descending order of their
// magnitude divided by half the width of their interval, those of single classes and of statistics
// that cannot be compared between models are left out, and layers are matched by relative depth.
func TestForest(t *testing.T) {
	t.Parallel()
	difference := func(value, half float64) scores.Difference {
		return scores.Difference{A: scores.Row{Measure: "m", Statistic: "s"}, Value: value, Low: value - half, High: value + half}
	}
	lines := forest([]scores.Difference{difference(0.4, 0.4), difference(-0.1, 0.01), difference(0.2, 0.1)}, nil)
	if lines[0].Value != -0.1 || lines[1].Value != 0.2 || lines[2].Value != 0.4 {
		t.Errorf("the order is %g, %g, %g, want -0.1, 0.2, 0.4", lines[0].Value, lines[1].Value, lines[2].Value)
	}
	// Coordinates are in per cent of the plot's width: 0 is at 50, and the largest bound, 0.8, at
	// 98.
	if lines[2].Low100 != 50 || lines[2].High100 != 98 || lines[2].At100 != 74 {
		t.Errorf("the widest line spans %g to %g around %g, want 50 to 98 around 74", lines[2].Low100, lines[2].High100, lines[2].At100)
	}
	kept := overviewOnly([]scores.Difference{
		{A: scores.Row{Measure: "distance", Statistic: "l2", Layer: "a"}}, {A: scores.Row{Measure: "distance", Statistic: "cosine", Layer: "a"}},
		{A: scores.Row{Measure: "distance", Statistic: "cosine", Layer: "a", Factor: "class=1"}},
	}, reporttest.Measures())
	if len(kept) != 1 || kept[0].A.Statistic != "cosine" || kept[0].A.Factor != "" {
		t.Errorf("kept %+v, want the row of cosine alone", kept)
	}
	// With branch, the second layer is in a branch: a side path of the network. No layer of the
	// other model matches it.
	record := func(branch bool, names ...string) (m scores.ModelRecord) {
		for i, n := range names {
			m.Layers = append(m.Layers, scores.LayerRecord{Name: n, Op: "Relu", Depth: i, Branch: branch && i == 1})
		}
		return m
	}
	cell := scores.Cell{Layers: []scores.Layer{{Name: "p"}, {Name: "q"}, {Name: "r"}, {Name: "s"}, {Name: "t"}}}
	cells, original := matchLayers(record(false, "a", "b", "c"), record(true, "p", "q", "r", "s", "t"), []scores.Cell{cell})
	var names []string
	for _, l := range cells[0].Layers {
		names = append(names, l.Name)
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) || original["b"] != "r" || original["c"] != "t" {
		t.Errorf("the layers are %q with the original names %v, want a, b and c, of which b was r and c was t", names, original)
	}
	if cells, original = matchLayers(record(false, "a"), record(false, "a"), []scores.Cell{cell}); original != nil || len(cells[0].Layers) != 5 {
		t.Error("layers of the same names are renamed")
	}
}
