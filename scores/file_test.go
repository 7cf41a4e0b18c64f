package scores_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// equal returns how two values differ, or "", with NaN equal to NaN and nil equal to an empty
// slice.
func equal(a, b any) string { return cmp.Diff(a, b, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()) }

// text generates names. The csv package reads \r\n as \n, so they have no \r\n.
var text = rapid.StringMatching(`[a-zé "',;=0-9\n/:-]{0,8}`)

// number, anyRow, anyScore and anyCell generate random values for the tests of all formats.
// Replicates are the values of a score without one group of samples, for a jackknife, and Left is
// the size of the group.
var number = rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 0.1, 1e-300, math.NaN(), math.Inf(1), math.Inf(-1)}))

var anyRow = rapid.Custom(func(t *rapid.T) scores.Row {
	s := func(name string) string { return text.Draw(t, name) }
	v := func(name string) float64 { return number.Draw(t, name) }
	return scores.Row{
		Study: s("study"), Model: s("model"), Layer: s("layer"), Depth: rapid.IntRange(-1, 99).Draw(t, "depth"),
		OtherModel: s("other model"), OtherLayer: s("other layer"), Data: s("data"), Transform: s("transform"), Parameter: s("parameter"),
		Trial: rapid.IntRange(-1, 5).Draw(t, "trial"), Measure: s("measure"), Variant: s("variant"), Factor: s("factor"),
		Statistic: s("statistic"), Value: v("value"), Low: v("low"), High: v("high"), Null: v("null"),
		N: rapid.IntRange(0, 1<<40).Draw(t, "n"), Warning: s("warning"),
	}
})

var anyScore = rapid.Custom(func(t *rapid.T) measure.Score {
	v := func(name string) float64 { return number.Draw(t, name) }
	s := measure.Score{
		Statistic: "s" + text.Draw(t, "statistic"), Variant: text.Draw(t, "variant"), Parameter: text.Draw(t, "parameter"), Factor: text.Draw(t, "factor"),
		Value: v("value"), Low: v("low"), High: v("high"), Null: v("null"), Min: v("min"), Max: v("max"),
		N: rapid.IntRange(0, 1<<40).Draw(t, "n"), Warnings: rapid.SliceOfN(text, 0, 2).Draw(t, "warnings"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "replicates") {
		s.Replicates = append(s.Replicates, measure.Replicate{Value: v("replicate"), Left: rapid.IntRange(0, 99).Draw(t, "left")})
	}
	return s
})

var anyCell = rapid.Custom(func(t *rapid.T) scores.Cell {
	c := scores.Cell{
		Model: "m" + text.Draw(t, "model"), OtherModel: text.Draw(t, "other"), Data: "d" + text.Draw(t, "data"),
		Transform: text.Draw(t, "transform"), Parameter: text.Draw(t, "parameter"), Trial: rapid.IntRange(-1, 9).Draw(t, "trial"),
		Measure: "m" + text.Draw(t, "measure"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "layers") {
		c.Layers = append(c.Layers, scores.Layer{
			Name: text.Draw(t, "layer"), Depth: rapid.IntRange(-1, 99).Draw(t, "depth"), Other: text.Draw(t, "other layer"),
			Scores: rapid.SliceOfN(anyScore, 0, 3).Draw(t, "scores"),
		})
	}
	return c
})

func TestCSVRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(anyRow, 0, 5).Draw(t, "rows")
		var b bytes.Buffer
		if err := scores.WriteCSV(&b, rows); err != nil {
			t.Fatal(err)
		}
		got, err := scores.ReadCSV(&b)
		if err != nil {
			t.Fatal(err)
		}
		if d := equal(rows, got); d != "" {
			t.Fatal(d)
		}
	})
}

// The format of the file is public and must not change. NaN and the trial -1 are empty.
func TestCSVFormat(t *testing.T) {
	t.Parallel()
	row := scores.Row{
		Study: "s", Model: "net", Layer: "conv1", Depth: 1, Data: "cifar10", Transform: "turn", Parameter: "90", Trial: -1,
		Measure: "distance", Factor: "class=cat", Statistic: "cosine", Value: 0.1, Low: math.NaN(), High: math.Inf(1), Null: 1e-7, N: 100,
		Warning: "one, two", P: 0.001, PAdjusted: 0.25,
	}
	var b bytes.Buffer
	if err := scores.WriteCSV(&b, []scores.Row{row}); err != nil {
		t.Fatal(err)
	}
	want := `study,model,layer,depth,other_model,other_layer,data,transform,parameter,trial,measure,variant,factor,statistic,value,low,high,null,n,warning,p,p_adjusted
s,net,conv1,1,,,cifar10,turn,90,,distance,,class=cat,cosine,0.1,,inf,1e-07,100,"one, two",0.001,0.25
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// TestCSVOfEarlierVersions checks that tables without p-values are read, with and without quotes.
func TestCSVOfEarlierVersions(t *testing.T) {
	t.Parallel()
	head := strings.Join(scores.Columns[:len(scores.Columns)-2], ",") + "\n"
	line := "s,m,,,,,d,t,,0,accuracy,,,clean,1,0.5,1,,5,few\n"
	rows, err := scores.ReadCSV(strings.NewReader(head + line + strings.Replace(line, "few", "\"few, and so on\"", 1)))
	if err != nil || len(rows) != 2 || rows[0].Warning != "few" || rows[1].Warning != "few, and so on" || rows[0].P != 0 || rows[1].PAdjusted != 0 {
		t.Errorf("%+v, %v; want two rows without p-values", rows, err)
	}
}

func TestCSVErrors(t *testing.T) {
	t.Parallel()
	head := strings.Join(scores.Columns, ",") + "\n"
	good := "s,m,,,,,d,t,,0,accuracy,,,clean,1,,,,5,,,\n"
	cases := map[string]struct{ file, want string }{
		"empty":          {"", "the header line with the column names is missing"},
		"another file":   {"a,b\n1,2\n", "line 1: not the header of a scores file"},
		"truncated":      {head + good + "s,m,,", "line 3"},
		"not a number":   {head + good + strings.Replace(good, ",1,", ",one,", 1), `line 3: column value: "one" is not a number`},
		"after quoted":   {head + good + strings.Replace(good, "clean", "\"cl,ean\"", 1) + strings.Replace(good, ",1,", ",one,", 1), `line 4: column value: "one" is not a number`},
		"misquoted":      {head + good + "s,m,\"x", "line 3"},
		"no p-value":     {head + strings.Replace(good, "5,,,", "5,,2,", 1), `line 2: column p: "2" is not a p-value`},
		"not an integer": {head + strings.Replace(good, ",5,", ",5.5,", 1), `line 2: column n: "5.5" is not an integer`},
	}
	for name, c := range cases {
		if _, err := scores.ReadCSV(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func FuzzReadCSV(f *testing.F) {
	head := strings.Join(scores.Columns, ",") + "\n"
	f.Add(head + "s,m,,,,,d,t,,0,accuracy,,,clean,1,,inf,,5,,0.5,\n")
	f.Add(head + "\"")
	f.Fuzz(func(t *testing.T, file string) {
		rows, err := scores.ReadCSV(strings.NewReader(file))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := scores.WriteCSV(&b, rows); err != nil {
			t.Fatal(err)
		}
		again, err := scores.ReadCSV(&b)
		if err != nil || len(again) != len(rows) {
			t.Fatalf("%d rows read back as %d (%v)", len(rows), len(again), err)
		}
	})
}

func TestCellRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := anyCell.Draw(t, "cell")
		data, err := want.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var got scores.Cell
		if err := got.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		if d := equal(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// exampleCell returns a cell with NaN, infinity, a warning and replicates.
func exampleCell() scores.Cell {
	nan := math.NaN()
	return scores.Cell{Model: "m", Data: "d", Transform: "turn", Parameter: "90", Measure: "distance", Layers: []scores.Layer{{
		Name: "conv1", Depth: 1, Scores: []measure.Score{{
			Statistic: "l2", Value: 2, Low: nan, High: nan, Null: 3, Max: math.Inf(1), N: 40, Warnings: []string{"w"},
			Replicates: []measure.Replicate{{Value: 1.5, Left: 20}, {Value: 2.5, Left: 20}},
		}},
	}}}
}

func TestDamagedCellIsAnError(t *testing.T) {
	t.Parallel()
	data, err := exampleCell().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	checkError := func(name, content, want string) {
		t.Helper()
		if _, err := scores.ParseCell([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", name, err, want)
		}
	}
	whole := string(data)
	for n := range len(whole) {
		checkError("truncated", whole[:n], "truncated")
	}
	checkError("zeros", strings.Repeat("\x00", len(whole)), "invalid character")
	checkError("two cells", whole+whole, "unexpected data after the end")
	checkError("an empty object", "{}", "format 0")
	checkError("null", "null", "format 0")
	checkError("another format", strings.Replace(whole, `"format":1`, `"format":2`, 1), "format 2; this version reads format 1")
	checkError("no model", strings.Replace(whole, `"model":"m"`, `"model":""`, 1), "incomplete cell: its measure")
	checkError("no layers", `{"format":1,"measure":"distance","model":"m","data":"d","trial":0}`, "incomplete cell: its measure")
	checkError("unknown key", strings.Replace(whole, `"value"`, `"valu"`, 1), `unknown field "valu"`)
	checkError("missing value", strings.Replace(whole, `"value":2,`, ``, 1), `layer "conv1", statistic "l2": missing number`)
	checkError("text for a number", strings.Replace(whole, `"value":2`, `"value":"2"`, 1), "cannot unmarshal")
	checkError("two replicates, one count", strings.Replace(whole, `"left":[20,20]`, `"left":[20]`, 1), "count or replicates")
}

// TestRecord writes and reads the record of a run, which says what was measured, and how.
func TestRecord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.json")
	finished := time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC)
	want := scores.Record{
		Study: "s", Noether: "0.1", Started: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Finished: &finished, Cells: 3, Done: 2,
		Models: []scores.ModelRecord{{Name: "m", Opset: 13, Layers: []scores.LayerRecord{{Name: "l", Shape: []int{2, 3}, Axes: "NCHW"}}, Tags: map[string]string{"a": "b"}}},
		Data:   []scores.DataRecord{{Name: "d", N: 5}}, Skipped: []scores.Skip{{Model: "m", Measure: "seis", Why: "no space"}},
	}
	if err := scores.WriteRecord(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := scores.ReadRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := equal(want, got); d != "" {
		t.Error(d)
	}
	for name, content := range map[string]string{"truncated": `{"study": "s"`, "another file": `{"name": "s"}`, "no study": `{}`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := scores.ReadRecord(path); err == nil || !strings.Contains(err.Error(), "reading "+path) {
			t.Errorf("%s: the error is %v, want one that names %s", name, err, path)
		}
	}
}
