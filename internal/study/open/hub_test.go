package open_test

import (
	"archive/tar"
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/fetch"
	"github.com/noether-ml/noether/internal/hubtest"
	"github.com/noether-ml/noether/internal/study/open"
)

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
	s, err := catalog.Parse("s.yaml", []byte(`name: hub
data: {name: val, webdataset: hf://datasets/org/net/val}
models: {name: m, onnx: m.onnx}
measures: [accuracy]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	cache := &fetch.Cache{Dir: t.TempDir(), Hub: &fetch.Hub{Address: h.URL, Dir: t.TempDir()}}
	src, err := open.New(s, open.Options{Cache: cache}).Data(t.Context(), s.Data[0])
	if err != nil || src.Len() != 2 {
		t.Fatalf("opening the two shards: %v, error %v; want two samples", src, err)
	}
	text, err := s.Resolved()
	if want := "hf://datasets/org/net@" + hubtest.Commit + "/val"; err != nil || !strings.Contains(text, want) {
		t.Errorf("resolved: error %v, want %s in\n%s", err, want, text)
	}
}
