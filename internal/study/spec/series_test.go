package spec

import (
	"archive/tar"
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/fetch"
	"github.com/noether-ml/noether/internal/hubtest"
)

// TestExpandRanges checks the expansion of braces in the name of a series of files: {08..11} stands
// for numbers and {a,b} for alternatives.
func TestExpandRanges(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"a.tar":              {"a.tar"},
		"v-{08..11}.tar":     {"v-08.tar", "v-09.tar", "v-10.tar", "v-11.tar"},
		"{a,b}/{0..1}":       {"a/0", "a/1", "b/0", "b/1"},
		"x{3..3}":            {"x3"},
		"https://h/{1..2}?q": {"https://h/1?q", "https://h/2?q"},
	} {
		if got, err := expandRanges(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"a{1..2": "no closing brace", "a{5..2}": "not a range", "a{x..y}": "not a range", "a{0..99999999}": "more than", "{0..999}{0..999}": "more than",
	} {
		if _, err := expandRanges(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not contain %q", name, err, want)
		}
	}
}

// TestFindFiles checks that folders and patterns stand for their .tar files in order, and that
// characters of patterns in the name of an existing folder have no special meaning.
func TestFindFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a [b]")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"2.tar", "1.tar", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	both := []string{filepath.Join(dir, "1.tar"), filepath.Join(dir, "2.tar")}
	s := &Study{}
	for path, want := range map[string][]string{
		dir:                         both,
		filepath.Join(dir, "2.tar"): both[1:],
		filepath.Join(filepath.Dir(dir), "a*", "?.tar"): both,
	} {
		if got, err := s.findFiles(t.Context(), Path{text: path}, ".tar"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
}

// TestShardsOfTheHub checks that shards (.tar files in the WebDataset format) of a data set on the
// Hugging Face hub are read, and that the resolved study, which a run stores in its folder, names
// the commit of the data set. hubtest is a server in place of the hub.
func TestShardsOfTheHub(t *testing.T) {
	t.Parallel()
	var picture, shard bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(&shard)
	if err := w.WriteHeader(&tar.Header{Name: "1.png", Size: int64(picture.Len())}); err != nil {
		t.Fatal(err)
	}
	w.Write(picture.Bytes())
	w.Close()
	h := hubtest.New(t, map[string][]byte{"val/0.tar": shard.Bytes(), "val/1.tar": shard.Bytes(), "README.md": nil})
	h.Kind = "datasets"
	s, err := Parse("s.yaml", []byte(`name: hub
data: {name: val, webdataset: hf://datasets/org/net/val}
models: {name: m, onnx: m.onnx}
measures: [accuracy]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.UseCache(&fetch.Cache{Dir: t.TempDir(), Hub: &fetch.Hub{Address: h.URL, Dir: t.TempDir()}})
	src, err := s.OpenData(t.Context(), s.Data[0])
	if err != nil || src.Len() != 2 {
		t.Fatalf("opening the two shards: %v, error %v; want two samples", src, err)
	}
	if got, want := s.absolute("hf://datasets/org/net/val"), "hf://datasets/org/net@"+hubtest.Commit+"/val"; got != want {
		t.Errorf("resolved: %s, want %s", got, want)
	}
}
