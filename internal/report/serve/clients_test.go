package serve

import (
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/scores"
)

var (
	clientRows  = flag.Int("client-rows", 2_000, "the number of scores of the largest run that TestManyClients serves")
	clientTable = flag.String("client-table", "", "the JSON file for the latencies of TestManyClients, which the documents' tables are made from")
)

// clients is the number of clients that TestManyClients runs at once, each with its own connection.
const clients = 200

// rounds is how often each client of TestManyClients opens each address.
const rounds = 3

// TestManyClients checks that 200 clients at once get the same answers as a single client, from a
// server of several runs. It logs the latencies, and does not check them. newFolder creates a run
// with two cells for each named model: a cell is one measure of one model under one value of a
// transformation. finish writes their scores, and ids returns the ids of runs by name.
func TestManyClients(t *testing.T) { // not parallel: other tests would change the latencies
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		newFolder(t, filepath.Join(dir, name), "net", "other").finish()
	}
	newFolder(t, filepath.Join(dir, "unfinished"), "net").finishCell(0)
	large := newFolder(t, filepath.Join(dir, "large"), "net")
	// The first cell, and its copies under other transformations, get 202 scores: two for each of 101
	// layers.
	many := large.cells[0]
	for i := range 100 {
		many.Layers = append(many.Layers, scores.Layer{Name: fmt.Sprint("layer", i), Depth: i, Scores: many.Layers[0].Scores})
	}
	for i := range *clientRows / 202 {
		next := many
		next.Transform, next.Parameter = fmt.Sprint("angle", i%50), fmt.Sprint(i/50)
		large.cells = append(large.cells, next)
		large.record.Keys = append(large.record.Keys, fmt.Sprintf("%08d", len(large.cells)))
	}
	large.record.Cells = len(large.cells)
	large.finish()

	s, err := New(Options{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	web := httptest.NewServer(s.Handler("127.0.0.1:0"))
	defer web.Close()
	found := ids(t, web.URL, "")
	base := filepath.Base(dir)
	id := found[base+"/large"]
	paths := []string{"/", "/runs/" + id, "/runs/" + id + "/report", "/runs/" + found[base+"/a"], "/runs/" + found[base+"/unfinished"] + "/report",
		"/compare?run=" + found[base+"/a"] + "&run=" + found[base+"/b"], "/assets/serve.js", "/api/v1/runs", "/api/v1/runs/" + id,
		"/api/v1/runs/" + id + "/scores", "/api/v1/runs/" + id + "/scores.csv", "/api/v1/runs/" + id + "/scores?transform=angle1"}

	start := time.Now()
	want := map[string]string{}
	for _, path := range paths {
		want[path] = open(t, http.DefaultClient, web.URL+path)
	}
	t.Logf("one client, %d addresses for the first time: %v", len(paths), time.Since(start).Round(time.Millisecond))
	times := make([][]time.Duration, clients)
	var wait sync.WaitGroup
	for c := range clients {
		wait.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
			defer client.CloseIdleConnections()
			for i := range rounds * len(paths) {
				path := paths[(i+c)%len(paths)]
				start := time.Now()
				got := open(t, client, web.URL+path)
				times[c] = append(times[c], time.Since(start))
				if got != want[path] {
					t.Errorf("client %d: %s differs from the answer to a single client", c, path)
				}
			}
		})
	}
	wait.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(times...)))
	at := func(fraction float64) time.Duration {
		return all[min(int(fraction*float64(len(all))), len(all)-1)].Round(time.Millisecond)
	}
	t.Logf("%d clients, %d requests: median %v, p99 %v, longest %v", clients, len(all), at(0.5), at(0.99), at(1))
	if *clientTable == "" {
		return
	}
	type cell struct{ Value string } // of the documents' table
	table := map[string]any{
		"Columns": []string{"clients at once", "scores of the largest run", "requests", "median", "p99", "longest"},
		"Rows": []map[string]cell{{"clients at once": {fmt.Sprint(clients)}, "scores of the largest run": {fmt.Sprint(*clientRows)}, "requests": {fmt.Sprint(len(all))},
			"median": {at(0.5).String()}, "p99": {at(0.99).String()}, "longest": {at(1).String()}}},
		"Date": time.Now().UTC().Format(time.DateOnly), "Machine": fmt.Sprintf("%d cores, clients included", runtime.NumCPU()),
	}
	raw, err := json.MarshalIndent(table, "", " ")
	if err == nil {
		err = atomicfile.Write(*clientTable, append(raw, '\n'))
	}
	if err != nil {
		t.Error(err)
	}
}

// open returns the body of an answer after it has checked the status. It asks for compressed
// answers, as browsers do, and leaves them compressed: decompression by 200 clients would take more
// time than the server needs for its answers.
func open(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || len(body) == 0 {
		t.Errorf("%s: status %s with %d bytes, want 200 with some; error %v", url, answer.Status, len(body), err)
	}
	return string(body)
}

// TestAnswersWithoutCompression checks that a client that accepts no compression gets the same text
// as one that does.
func TestAnswersWithoutCompression(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newFolder(t, dir, "small", "large").finish()
	url := startServer(t, Options{Dirs: []string{dir}})
	address := url + "/api/v1/runs/" + ids(t, url, "")[filepath.Base(dir)] + "/scores.csv"
	ask := func(accept string) (encoding, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", accept)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		raw, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Header.Get("Content-Encoding"), string(raw)
	}
	for _, accept := range []string{"identity", "br, gzip;q=0", "deflate"} {
		if encoding, body := ask(accept); encoding != "" || !strings.HasPrefix(body, "study,") {
			t.Errorf("Accept-Encoding %q: encoding %q, want none; text %.20q", accept, encoding, body)
		}
	}
	_, plain := ask("identity")
	for _, accept := range []string{"gzip", "br, gzip; q=0.5"} {
		encoding, body := ask(accept)
		z, err := gzip.NewReader(strings.NewReader(body))
		if err != nil || encoding != "gzip" {
			t.Fatalf("Accept-Encoding %q: encoding %q, want gzip; error %v", accept, encoding, err)
		}
		if raw, err := io.ReadAll(z); err != nil || string(raw) != plain {
			t.Errorf("Accept-Encoding %q: the text of %d bytes is not the plain one of %d bytes; error %v", accept, len(raw), len(plain), err)
		}
	}
}

// TestRemaining checks the text for the remaining time of a run, whose halves are rounded up, as
// the page's script does.
func TestRemaining(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]string{0: "", 119: "about 119 s left", 150: "about 3 min left", 7199: "about 120 min left", 9000: "about 3 h left"} {
		if got := (Progress{State: running, Left: seconds}).Remaining(); got != want {
			t.Errorf("%d s: %q, want %q", seconds, got, want)
		}
	}
}
