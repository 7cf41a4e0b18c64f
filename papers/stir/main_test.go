package main

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/scores"
)

// row returns the STIR (similarity through inverted representations) of a pair of networks with
// names of the form KIND-SEED. The images that it compares in the other network are inversions:
// they have the same representation in the reference. The kinds are plain training, at (adversarial
// training), and the defences trades and mart. A trial is a repetition with other random draws.
func row(reference, other string, trial int, value float64) scores.Row {
	return scores.Row{Model: reference, OtherModel: other, Layer: "Flatten", Trial: trial, Measure: "stir", Statistic: "stir", Value: value, Null: math.NaN()}
}

// TestPairs checks that a pair's value is the mean over trials and, of networks of one kind, over
// directions (which network is the reference). The row of the mean over trials, which a run also
// has, does not count again. A group is two kinds and a layer.
func TestPairs(t *testing.T) {
	g := groups{}
	err := g.add([]scores.Row{
		row("plain-1", "plain-2", 0, 0.2), row("plain-1", "plain-2", 1, 0.4), row("plain-1", "plain-2", scores.MeanOverTrials, 0.3),
		row("plain-2", "plain-1", 0, 0.6), row("plain-2", "plain-1", 1, 0.8), row("plain-3", "plain-4", 0, 0.9),
		row("at-1", "plain-2", 0, 0.1), row("plain-2", "at-1", 0, 0.7),
	})
	if err != nil {
		t.Fatal(err)
	}
	k := group{reference: "plain", other: "plain", layer: "Flatten"}
	if v := g[k].values(tables.Columns["stir"]); len(v) != 2 || math.Abs(v[0]-0.5) > 1e-12 || v[1] != 0.9 {
		t.Errorf("two pairs have the values %v, want 0.5 and 0.9", v)
	}
	if v := g[group{reference: "at", other: "plain", layer: "Flatten"}].values(tables.Columns["stir"]); len(v) != 1 || v[0] != 0.1 {
		t.Errorf("the pair of at, the reference, and plain has the values %v, want 0.1", v)
	}
	if len(g) != 3 {
		t.Errorf("%d groups, want 3", len(g))
	}
}

// TestSingle checks the table and the finding of scores of single networks, which have no other: the
// i-th of one kind is compared with the i-th of the other.
func TestSingle(t *testing.T) {
	g := groups{}
	var rows []scores.Row
	for i, name := range []string{"at-1", "at-3", "at-5", "one-7", "one-8", "one-9"} {
		r := scores.Row{Model: name, Measure: "robust-accuracy", Statistic: "robust", Value: 0.3 - 0.1*float64(i/3), Null: math.NaN()}
		r.Value += 0.001 * float64(i) // differences of 0.097
		rows = append(rows, r)
	}
	if err := g.add(rows); err != nil {
		t.Fatal(err)
	}
	e := tables.Experiments[slices.IndexFunc(tables.Experiments, func(e experiment) bool { return e.Single })]
	want := [][]string{
		{"networks", "statistic", "value", "low", "high"},
		{"AT", "robust accuracy", "0.301", "0.299", "0.303"},
		{"AT, 1 step", "robust accuracy", "0.204", "0.202", "0.206"},
	}
	if got := e.rows(g); !reflect.DeepEqual(got, want) {
		t.Errorf("the table is %q, want %q", got, want)
	}
	for _, r := range findingRows(map[string]groups{e.Name: g}, nil) {
		if strings.HasPrefix(r[1], "under one attack") && r[2] == "difference" && (r[3] != "+0.097" || r[4] != "0.097") {
			t.Errorf("the difference is %q, want 0.097", r)
		}
	}
}

// TestSharedNetwork checks that two pairs with a network in common are an error: they are not
// independent.
func TestSharedNetwork(t *testing.T) {
	err := groups{}.add([]scores.Row{row("plain-1", "plain-2", 0, 0.2), row("plain-2", "plain-3", 0, 0.4)})
	if err == nil || !strings.Contains(err.Error(), "plain-2") {
		t.Errorf("the error is %v, want one that names plain-2", err)
	}
}

// TestMissed checks the verdict on a finding, a statement of the paper. It is open if inversions
// missed (did not reach the representation of) more than a tenth of the images.
func TestMissed(t *testing.T) {
	for want, fraction := range map[string]float64{"seen": 0.05, "open: missed": 0.2} {
		g := groups{}
		var rows []scores.Row
		for _, pair := range [][2]string{{"1", "2"}, {"3", "4"}} {
			missedRow := row("at-"+pair[0], "at-"+pair[1], 0, fraction)
			missedRow.Statistic = "missed"
			rows = append(rows, missedRow, row("at-"+pair[0], "at-"+pair[1], 0, 0.9), row("plain-"+pair[0], "plain-"+pair[1], 0, 0.4))
		}
		if err := g.add(rows); err != nil {
			t.Fatal(err)
		}
		// The rows are the header, the difference and the verdict.
		if got := findingRows(map[string]groups{"stir-seeds": g}, nil)[2][3]; got != want {
			t.Errorf("%v of the images missed: %q, want %q", fraction, got, want)
		}
	}
}

// TestVerdict checks that the verdict on a difference follows from its interval over pairs of
// networks: seen if the interval is above 0, not seen if it is below 0, open if it contains 0.
func TestVerdict(t *testing.T) {
	for want, at := range map[string][]float64{"seen": {0.61, 0.62, 0.63}, "not seen": {0.11, 0.12, 0.13}, "open": {0.1, 0.4, 0.9}} {
		g := groups{}
		var rows []scores.Row
		for i, pair := range [][2]string{{"1", "2"}, {"3", "4"}, {"5", "6"}} {
			rows = append(rows, row("plain-"+pair[0], "plain-"+pair[1], 0, 0.4), row("at-"+pair[0], "at-"+pair[1], 0, at[i]))
		}
		if err := g.add(rows); err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, r := range findingRows(map[string]groups{"stir-seeds": g}, nil) {
			if r[1] == "two seeds: STIR is larger with AT than plain" && r[2] == "verdict" {
				found = r[3]
			}
		}
		if found != want {
			t.Errorf("AT %v against plain 0.4: %q, want %q", at, found, want)
		}
	}
}

// TestMissingGroup checks that the mean over two groups of pairs does not exist if a run has only
// one of them.
func TestMissingGroup(t *testing.T) {
	g := groups{}
	if err := g.add([]scores.Row{row("at-1", "trades-2", 0, 0.8)}); err != nil {
		t.Fatal(err)
	}
	if v := (side{"stir", [][]string{{"at", "trades"}, {"at", "mart"}}}).values(g); v != nil {
		t.Errorf("without scores of at and mart the mean is %v, want none", v)
	}
}

// TestNames checks that the tables name existing columns, experiments and kinds.
func TestNames(t *testing.T) {
	for name, c := range tables.Columns {
		if _, ok := tables.Columns[c.Missed]; c.Missed != "" && !ok {
			t.Errorf("column %s: no column %q", name, c.Missed)
		}
	}
	experiments := map[string]bool{}
	for _, e := range tables.Experiments {
		experiments[e.Name] = true
		for _, c := range e.Columns {
			if _, ok := tables.Columns[c]; !ok {
				t.Errorf("%s: no column %q", e.Name, c)
			}
		}
	}
	for _, f := range tables.Findings {
		if !experiments[f.Table] || f.OtherTable != "" && !experiments[f.OtherTable] {
			t.Errorf("%s: no experiment %q or %q", f.Text, f.Table, f.OtherTable)
		}
		for _, s := range []side{f.Larger, f.Less} {
			if _, ok := tables.Columns[s.Of]; !ok || len(s.Groups) == 0 {
				t.Errorf("%s: no column %q, or no groups", f.Text, s.Of)
			}
			for _, g := range s.Groups {
				if len(g) == 0 || rank(g[0]) < 0 || len(g) > 1 && rank(g[1]) < 0 {
					t.Errorf("%s: %q, want a kind of networks, or two and perhaps a layer", f.Text, g)
				}
			}
		}
	}
}

// TestStored checks that findings and networks without runs keep the rows of the stored table, and
// that a stored finding that is no longer in the list findings is dropped.
func TestStored(t *testing.T) {
	f := tables.Findings[0]
	kept := []string{f.Item, f.Text, "verdict", "seen", "", ""}
	got := findingRows(nil, [][]string{kept, {f.Item, "no longer a finding", "verdict", "seen", "", ""}})
	if len(got) != 2 || !slices.Equal(got[1], kept) {
		t.Errorf("the findings are %q, want the header and %q", got, kept)
	}
	kept = []string{"stir.yaml", "ResNet-18, plain", "seeds", "6", "", ""}
	got, err := networkRows(t.TempDir(), [][]string{kept})
	if err != nil || len(got) != 2 || !slices.Equal(got[1], kept) {
		t.Errorf("the networks are %q and the error %v, want the header and %q", got, err, kept)
	}
}

// TestOneObservation checks that a table has no interval for a single observation: a network, a
// pair of networks, or a difference. The rows end with a value and the bounds of its interval.
func TestOneObservation(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "stir"), 0o755); err != nil {
		t.Fatal(err)
	}
	runs := "run,adversarial,network,seed,epochs,test_accuracy,test_robust_accuracy\n" +
		"a,plain,resnet18,1,5,0.4,\nb,plain,resnet18,2,5,0.5,\nc,at,resnet18,1,5,0.3,0.2\n"
	if err := os.WriteFile(filepath.Join(folder, "stir", "runs.csv"), []byte(runs), 0o644); err != nil {
		t.Fatal(err)
	}
	networks, err := networkRows(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := groups{}
	if err := g.add([]scores.Row{row("plain-1", "plain-2", 0, 0.4), row("at-1", "at-2", 0, 0.9)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		rows [][]string
		row  string
	}{
		{networks, "stir.yaml,ResNet-18, AT,test accuracy,0.300,,"},
		{networks, "stir.yaml,ResNet-18, AT,robust accuracy,0.200,,"},
		{networks, "stir.yaml,ResNet-18, plain,test accuracy,0.450,0.000,1.000"},
		{tables.Experiments[0].rows(g), "AT,AT,STIR,0.900,,"},
		{findingRows(map[string]groups{"stir-seeds": g}, nil), "Table 1,two seeds: STIR is larger with AT than plain,difference,+0.500,,"},
		{findingRows(map[string]groups{"stir-seeds": g}, nil), "Table 1,two seeds: STIR is larger with AT than plain,verdict,open,,"},
	} {
		if !slices.ContainsFunc(want.rows, func(r []string) bool { return strings.Join(r, ",") == want.row }) {
			t.Errorf("no row %q in %q", want.row, want.rows)
		}
	}
}

// TestOtherImages checks that a finding is open if its two sides are of runs with other numbers of
// images, whatever their difference.
func TestOtherImages(t *testing.T) {
	stirs, worst := groups{}, groups{}
	var a, b []scores.Row
	for _, pair := range [][2]string{{"1", "2"}, {"3", "4"}, {"5", "6"}} {
		adversarial := row("plain-"+pair[0], "plain-"+pair[1], 0, 0.1)
		adversarial.Statistic = "stir-adversarial"
		a, b = append(a, row("plain-"+pair[0], "plain-"+pair[1], 0, 0.9)), append(b, adversarial)
	}
	if err := errors.Join(stirs.add(a), worst.add(b)); err != nil {
		t.Fatal(err)
	}
	for _, r := range findingRows(map[string]groups{"stir-seeds": stirs, "stir-adversarial": worst}, nil) {
		if r[1] == "plain, two seeds: STIR is larger than adversarial STIR" && r[2] == "verdict" {
			if r[3] != "open: other images" {
				t.Errorf("the verdict is %q", r[3])
			}
			return
		}
	}
	t.Error("the finding has no verdict")
}
