package fetch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/fetch/uri"
	"github.com/noether-ml/noether/internal/hubtest"
)

// dataRepository returns the files of a data set with two splits: train in one file, test in two.
func dataRepository() map[string][]byte {
	return map[string][]byte{
		"README.md": []byte("#"), "data/train-00000-of-00001.parquet": []byte("train"),
		"data/test-00001-of-00002.parquet": []byte("second"), "data/test-00000-of-00002.parquet": []byte("first"),
	}
}

// TestDataOfTheHub checks which files of a data set on the Hugging Face hub an address names:
// online, offline (from the cache alone) and without a connection. newHubCache returns an empty
// cache that reads from the server h.
func TestDataOfTheHub(t *testing.T) {
	t.Parallel()
	h := hubtest.New(t, dataRepository())
	h.Kind = "datasets"
	c := newHubCache(t, h, "")
	// want fetches the .parquet files of an address, compares their contents and returns their
	// paths.
	want := func(address string, contents ...string) []string {
		t.Helper()
		files, err := c.DataFiles(t.Context(), address, ".parquet")
		if err != nil || len(files) != len(contents) {
			t.Fatalf("%s: %q, %v; want %d files", address, files, err, len(contents))
		}
		for i, file := range files {
			if got, err := os.ReadFile(file); err != nil || string(got) != contents[i] {
				t.Errorf("%s: %s holds %q, %v; want %q", address, file, got, err, contents[i])
			}
		}
		return files
	}
	wantError := func(address, text string) {
		t.Helper()
		if _, err := c.DataFiles(t.Context(), address, ".parquet"); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v does not contain %q", address, err, text)
		}
	}
	files := want("hf://datasets/org/net/data/test-*.parquet", "first", "second")
	if in := filepath.Join(c.Hub.Dir, "datasets--org--net", "snapshots", hubtest.Commit, "data"); filepath.Dir(files[0]) != in {
		t.Errorf("files are in %s, want %s", filepath.Dir(files[0]), in)
	}
	// Pinned returns the address with the commit of the downloaded file as the revision.
	if got := uri.Pinned("hf://datasets/org/net/data/test-*.parquet", files[0]); got != "hf://datasets/org/net@"+hubtest.Commit+"/data/test-*.parquet" {
		t.Errorf("pinned: %s, want %s", got, "hf://datasets/org/net@"+hubtest.Commit+"/data/test-*.parquet")
	}
	wantError("hf://datasets/org/net", "several splits: data/test-*.parquet, data/train-*.parquet; add one to the address")
	wantError("hf://datasets/org/net/data", "several splits")
	wantError("hf://datasets/org/net/val", "no file val; there are data/test-00000-of-00002.parquet")
	wantError("hf://datasets/org/net/data/[", "not a pattern")
	wantError("hf://org/net", "is a model, not a data set")
	wantError("hf://datasets/org", "names no data set")
	// Shards are the parts of a data set in the format WebDataset, tar files.
	if _, err := c.DataFiles(t.Context(), "hf://datasets/org/net", ".tar"); err == nil || !strings.Contains(err.Error(), "no file with the extension .tar") {
		t.Errorf("shards of a repository without any: error %v, want one with %q", err, "no file with the extension .tar")
	}
	if _, err := c.Model(t.Context(), "hf://datasets/org/net", "", noWeights); err == nil || !strings.Contains(err.Error(), "is a data set, not a model") {
		t.Errorf("a data set as a model: error %v, want one with %q", err, "is a data set, not a model")
	}
	c.Hub.Offline = true
	want("hf://datasets/org/net/data/test-*.parquet", "first", "second")
	want("hf://datasets/org/net", "first", "second") // offline, only test is known: it is in the cache
	wantError("hf://datasets/org/net/data/train-*.parquet", "HF_HUB_OFFLINE is set")
	if err := os.Remove(files[1]); err != nil { // the cache now has one of the two files of test
		t.Fatal(err)
	}
	wantError("hf://datasets/org/net/data", "1 of 00002 files of data/test-*.parquet are there")
	c.Hub.Offline = false
	want("hf://datasets/org/net/data/test-*.parquet", "first", "second")
	h.Close()      // without a connection, the files in the cache are used
	c.Retries = -1 // none
	want("hf://datasets/org/net/data/test-*.parquet", "first", "second")
}
