package spec_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
)

// TestResolvedPaths checks that all paths in a study are found and made absolute. A run stores the
// study with these paths in its folder, so that it can be read from there.
func TestResolvedPaths(t *testing.T) {
	t.Parallel()
	s, err := catalog.Parse("/studies/s.yaml", []byte(`name: paths
data:
  - {name: a, sound: {folder: fsdd, labels: l.csv}}
  - {name: b, librispeech: corpus}
  - {name: c, join: {one: {images: photos}, two: {cifar10: [x.bin, y.bin]}}}
  - {name: d, video: clips}
models: [{name: m, onnx: m.onnx}]
measures: accuracy
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`/studies/\S+`).FindAllString(text, -1)
	want := []string{"/studies/fsdd", "/studies/l.csv", "/studies/corpus", "/studies/photos", "/studies/x.bin", "/studies/y.bin", "/studies/clips", "/studies/m.onnx"}
	if !slices.Equal(got, want) {
		t.Errorf("the paths are %q, want %q in\n%s", got, want, text)
	}
}
