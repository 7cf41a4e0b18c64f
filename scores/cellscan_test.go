package scores_test

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// TestScanCell checks that the fast decoder accepts the JSON of a cell if and only if no character
// of it is escaped, and that it returns the same cell. anyCell draws a random one; equal returns
// how two cells differ.
func TestScanCell(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := anyCell.Draw(t, "cell")
		want.PeakMemory = rapid.Int64Range(0, 1<<40).Draw(t, "peak memory")
		data, err := want.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		got, ok := scores.ScanCell(data)
		if ok == bytes.Contains(data, []byte(`\`)) {
			t.Fatalf("the fast decoder accepts the cell: %v; want true unless the JSON has escapes: %s", ok, data)
		}
		if d := equal(want, got); ok && d != "" {
			t.Fatal(d)
		}
	})
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

// FuzzCell checks that the fast decoder, if it accepts a text, agrees with encoding/json, and that
// a decoded cell is the same after it is written and read. The first text is a cell with NaN and
// infinity.
func FuzzCell(f *testing.F) {
	data, err := exampleCell().MarshalJSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var c scores.Cell
		decodeErr := c.UnmarshalJSON(data)
		if scanned, ok := scores.ScanCell(data); ok && (decodeErr != nil || equal(c, scanned) != "") {
			t.Fatalf("scanned as %+v; decoded as %+v (%v)", scanned, c, decodeErr)
		}
		if decodeErr != nil {
			return
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
