package scores_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// TestCellIsPlainJSON checks that the text of a cell is valid JSON that encoding/json would write in
// the same way, and that ParseCell reads it. anyCell draws a random cell; equal returns how two
// cells differ.
func TestCellIsPlainJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := anyCell.Draw(t, "cell")
		want.PeakMemory = rapid.Int64Range(0, 1<<40).Draw(t, "peak memory")
		data, err := want.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(json.RawMessage(data)); err != nil || !bytes.Equal(again, data) {
			t.Fatalf("encoding/json writes %s (error %v), want %s", again, err, data)
		}
		got, err := scores.ParseCell(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := equal(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// TestCellLayout checks the text of a cell: its order, NaN and infinities, and what is left out.
func TestCellLayout(t *testing.T) {
	t.Parallel()
	c := scores.Cell{Model: "net<1>", Data: "images", Parameter: "45", Trial: -1, Measure: "distance", PeakMemory: 7,
		Layers: []scores.Layer{{Name: "conv", Depth: 1, Other: "fc", Scores: []measure.Score{{
			Statistic: "l2", Variant: "slp", Factor: "hue", Value: 1e-7, Low: math.Inf(-1), High: 1e21,
			Null: math.NaN(), Max: math.Inf(1), N: 2000, Warnings: []string{"a \"b\""},
			Replicates: []measure.Replicate{{Value: 0.5, Left: 3}, {Value: math.NaN(), Left: 4}},
		}}}, {Depth: -1}}}
	const want = `{"format":1,"measure":"distance","model":"net\u003c1\u003e","data":"images",` +
		`"parameter":"45","trial":-1,"layers":[{"name":"conv","depth":1,"other":"fc","scores":[` +
		`{"statistic":"l2","variant":"slp","factor":"hue","value":1e-7,"low":"-inf","high":1e+21,` +
		`"null":null,"min":0,"max":"inf","n":2000,"warnings":["a \"b\""],` +
		`"replicates":[0.5,null],"left":[3,4]}]},{"depth":-1,"scores":[]}],"peak_memory":7}`
	if got, err := c.MarshalJSON(); err != nil || string(got) != want {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want)
	}
}

// BenchmarkParseCell parses a cell of four statistics with 20 replicates each, their values without
// some of the samples.
func BenchmarkParseCell(b *testing.B) {
	c := scores.Cell{Model: "net", Data: "images", Transform: "turn", Parameter: "45", Measure: "distance", Layers: []scores.Layer{{Name: "conv", Depth: 1}}}
	for _, name := range []string{"cosine", "l1", "l2", "relative-l2"} {
		s := measure.Score{Statistic: name, Value: 1 / 3.0, Low: 1 / 7.0, High: 5 / 7.0, Null: math.NaN(), Max: math.Inf(1), N: 2000}
		for i := range 20 {
			s.Replicates = append(s.Replicates, measure.Replicate{Value: 1 / float64(i+3), Left: 100})
		}
		c.Layers[0].Scores = append(c.Layers[0].Scores, s)
	}
	data, err := c.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := scores.ParseCell(data); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzCell checks that a text that is read is valid JSON, and that the cell is the same after it is
// written and read. The first text is a cell with NaN and
// infinity.
func FuzzCell(f *testing.F) {
	data, err := exampleCell().MarshalJSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var c scores.Cell
		if c.UnmarshalJSON(data) != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q is read", data)
		}
		out, err := c.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var again scores.Cell
		if err := again.UnmarshalJSON(out); err != nil {
			t.Fatal(err)
		}
		if d := equal(c, again); d != "" {
			t.Fatal(d)
		}
	})
}
