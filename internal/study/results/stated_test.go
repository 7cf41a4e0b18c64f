package results

import (
	"os"
	"path/filepath"
	"testing"
)

func TestParseAccuracy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"0.8": 0.8, "80": 0.8, " 80.5 %": 0.805, "1": 1, "0.5%": 0.005, "": 0, "high": 0, "-1": 0, "0": 0, "101": 0} {
		if got, ok := parseAccuracy(text); ok != (want > 0) || ok && got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, ok, want)
		}
	}
}

func TestAccuracyOfCard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want float64
	}{
		"results": {"---\nlicense: mit\nmodel-index:\n- name: net\n  results:\n  - task: {type: image-classification}\n    metrics:\n" +
			"    - {type: loss, value: 0.3}\n    - name: Accuracy\n      type: accuracy\n      value: 0.8125\n---\n# Net\n", 0.8125},
		"no head":    {"# Net\naccuracy: 0.9\n", 0},
		"no results": {"---\nlicense: mit\n---\n", 0},
		"no YAML":    {"---\n: [\n---\n", 0},
	} {
		path := filepath.Join(t.TempDir(), "README.md")
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		if got, ok := accuracyOfCard(path); got != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %v, %v; want %v", name, got, ok, c.want)
		}
	}
}
