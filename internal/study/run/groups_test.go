package run_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/pictures"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

const groupsText = `name: groups
seed: 3
data: [{name: shapes, shapes: {n: 600, size: 16, seed: 2}}]
models: [{name: one, onnx: one.onnx, layers: output}]
transforms:
  - {name: quarter, rotate: {values: [20, 180]}}
measures:
  - accuracy: {per-class: true}
  - effective-invariance: {per-class: true}
  - distance: {per-class: true}
by: [label, hue, brightness]
trials: 2
`

// TestScoresByGroup checks that the scores by label are those of the setting per-class, which
// accumulators compute: of single values, of means over values and over trials. It checks that
// other groups divide all samples, that the gap is the worst group's distance from the rest, and
// that failures.csv agrees with the accuracy.
func TestScoresByGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	run := filepath.Join(dir, "run")
	r := studytest.Run(t, studytest.Parse(t, dir, groupsText), run, studytest.Options(t))
	type key struct {
		parameter, factor, statistic string
		trial                        int
	}
	found := map[key]scores.Row{}
	gaps := map[key]scores.Row{}
	for _, row := range r.Rows {
		k := key{row.Parameter, row.Factor, row.Measure + "." + row.Statistic, row.Trial}
		if row.Variant == scores.Gap {
			column, _, _ := strings.Cut(row.Factor, "=")
			k.factor = column
			gaps[k] = row
		} else {
			found[k] = row
		}
	}
	classes := 0
	for k, want := range found {
		class, ok := strings.CutPrefix(k.factor, "class=")
		if !ok {
			continue
		}
		classes++
		k.factor = "label=" + class
		if got := found[k]; math.Abs(got.Value-want.Value) > 1e-6 || got.N != want.N || got.Layer != want.Layer || !(got.Low <= got.Value && got.Value <= got.High) {
			t.Errorf("%+v: %v of %d [%v, %v], want %v of %d", k, got.Value, got.N, got.Low, got.High, want.Value, want.N)
		}
	}
	if want := 8 * (3 + 1 + 4) * 9; classes != want { // classes, statistics, values and trials with their means
		t.Errorf("%d scores of classes, want %d", classes, want)
	}
	for _, column := range []string{"label", "hue", "brightness"} {
		k := key{"20", "", "accuracy.moved", 0}
		all := found[k]
		sum, n, worst := 0.0, 0, math.Inf(1)
		for other, row := range found {
			if other.parameter == k.parameter && other.statistic == k.statistic && other.trial == 0 && strings.HasPrefix(other.factor, column+"=") {
				sum += row.Value * float64(row.N)
				n += row.N
				rest := (all.Value*float64(all.N) - row.Value*float64(row.N)) / float64(all.N-row.N)
				worst = min(worst, row.Value-rest)
			}
		}
		k.factor = column
		if math.Abs(sum/float64(n)-all.Value) > 1e-9 || n != all.N || math.Abs(gaps[k].Value-worst) > 1e-9 || !(gaps[k].Low < worst && worst < gaps[k].High) {
			t.Errorf("%s: mean %v of %d and gap %+v, want %v of %d and %v", column, sum/float64(n), n, gaps[k], all.Value, all.N, worst)
		}
	}

	file, err := os.Open(filepath.Join(run, "failures.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	mistakes, err := scores.ReadMistakes(file)
	if err != nil {
		t.Fatal(err)
	}
	broken, wrong := 0, 0
	for i, m := range mistakes {
		switch m.Kind {
		case scores.Broken:
			if m.Parameter == "20" && m.Trial == 0 {
				broken++
			}
			if m.Label != m.Clean || m.Label == m.Moved || m.Cost != m.MovedConfidence || m.Groups["brightness"] == "" || m.Groups["hue"] == "" {
				t.Errorf("broken: %+v", m)
			}
		case scores.Wrong:
			wrong++
			if m.Label == m.Clean || m.Transform != "" || m.Moved != "" {
				t.Errorf("wrong: %+v", m)
			}
		}
		if i > 0 && mistakes[i-1].Kind == m.Kind && mistakes[i-1].Cost < m.Cost {
			t.Errorf("mistake %d costs more than the one before", i)
		}
	}
	clean, moved := found[key{"20", "", "accuracy.clean", 0}], found[key{"20", "", "accuracy.moved", 0}]
	if want := int(math.Round(float64(clean.N) * (1 - clean.Value))); wrong != want || want == 0 {
		t.Errorf("%d samples are wrong, want %d", wrong, want)
	}
	// Samples that become right are not listed.
	if least := int(math.Round(float64(clean.N) * (clean.Value - moved.Value))); broken < least || broken == 0 {
		t.Errorf("%d samples are broken, at least %d are", broken, least)
	}
	groups, err := os.ReadFile(filepath.Join(run, "failure-groups.csv"))
	if err != nil || !strings.Contains(string(groups), scores.ClassPair) || !strings.Contains(string(groups), ",brightness,") {
		t.Errorf("failure-groups.csv: %s %v", groups, err)
	}
	set, err := pictures.Open(os.DirFS(run))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if names, err := set.Glob("pictures/failures/*.png"); err != nil || len(names) == 0 {
		t.Errorf("no contact sheets of failures (%v)", err)
	}

	// A run of the same study writes nothing, and one without by has none of the groups.
	if again := studytest.Run(t, studytest.Parse(t, dir, groupsText), run, studytest.Options(t)); len(again.Rows) != len(r.Rows) {
		t.Errorf("%d rows again, want %d", len(again.Rows), len(r.Rows))
	}
	without := studytest.Run(t, studytest.Parse(t, dir, strings.Replace(groupsText, "by: [label, hue, brightness]\n", "", 1)), filepath.Join(dir, "without"), studytest.Options(t))
	if slices.ContainsFunc(without.Rows, func(r scores.Row) bool { return strings.HasPrefix(r.Factor, "label=") }) {
		t.Error("a study without by has scores by label")
	}
	if _, err := os.Stat(filepath.Join(dir, "without", "groups.csv")); err == nil {
		t.Error("a study without by has groups.csv")
	}
}

// TestUnknownGroups checks the errors of the key by.
func TestUnknownGroups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	for by, want := range map[string]string{"[hues]": `"hues": use one of`, "[hue, hue]": "hue is listed twice"} {
		s := studytest.Parse(t, dir, strings.Replace(groupsText, "[label, hue, brightness]", by, 1))
		if _, err := study.Run(t.Context(), s, filepath.Join(dir, "run"), studytest.Options(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("by: %s: error %v, want %q", by, err, want)
		}
	}
}
