package open_test

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/open"
)

func TestCorruptExpands(t *testing.T) {
	t.Parallel()
	const text = `
name: s
data:
  - {name: plain, shapes: {n: 4}}
  - {name: c, shapes: {n: 4}, corrupt: {kinds: [fog, pixelate], severities: [1, 3, 5]}}
  - {name: all, shapes: {n: 4}, corrupt: all}
  - {name: one, shapes: {n: 4}, corrupt: {kinds: fog, severities: 2}}
models: [{name: m, onnx: m.onnx}]
measures: [accuracy]
`
	s, err := study.Parse("s.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	// The entry corrupt applies the corruptions of ImageNet-C. Data sets: plain, kinds by
	// severities of c and of all (15 kinds at 5 severities), and one
	if len(s.Data) != 1+2*3+15*5+1 {
		t.Fatalf("%d data sets", len(s.Data))
	}
	if d := s.Data[5]; d.Name != "c/pixelate-3" || d.Corrupt.Kinds[0] != "pixelate" || d.Corrupt.Severities[0] != 3 {
		t.Errorf("%s %+v", d.Name, d.Corrupt)
	}
	if d := s.Data[82]; d.Name != "one" {
		t.Errorf("%s: a single corruption keeps the name", d.Name)
	}
	// want is part of the error: a position, or the values or the key that would be right.
	for bad, want := range map[string]string{
		"corrupt: {kinds: rain}":                          "s.yaml:3:",
		"corrupt: {kinds: fog, severities: 6}":            "1 to 5",
		"corrupt: {severities: 2}":                        "kinds",
		"corrupt: {kinds: [fog, all]}":                    "use all alone",
		"corrupt: {kinds: []}":                            "kinds is empty",
		"corrupt: {kinds: fog, severity: 6}":              "severit",
		"corrupt: {kinds: fog, severities: 1}, idx: a.gz": "one kind of source",
	} {
		s, err := study.Parse("s.yaml", []byte("name: s\ndata:\n  - {name: a, shapes: {n: 4}, "+bad+"}\nmodels: [{name: m, onnx: m.onnx}]\nmeasures: [accuracy]\n"), nil)
		if err == nil {
			_, err = open.New(s, open.Options{}).Data(t.Context(), s.Data[0])
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", bad, err, want)
		}
	}
}
