package report

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

// layerRow returns a score of a layer with an interval that reaches half to each side.
func layerRow(measure, statistic, layer string, depth int, value, half float64) scores.Row {
	r := depthRows(statistic, value)[0]
	r.Measure, r.Layer, r.Depth, r.Low, r.High, r.Null, r.N = measure, layer, depth, value-half, value+half, nan, 500
	return r
}

func TestBestLayers(t *testing.T) {
	t.Parallel()
	retrieval := func(half float64, values ...float64) []scores.Row {
		var out []scores.Row
		for i, v := range values {
			out = append(out, layerRow("retrieval", "recall-1", fmt.Sprint("l", i+1), i, v, half))
		}
		return out
	}
	probe := func(factor, statistic string, values ...float64) []scores.Row {
		var out []scores.Row
		for i, v := range values {
			r := layerRow("informativeness", statistic, fmt.Sprint("l", i+1), i, v, 0.01)
			r.Transform, r.Factor, r.Variant = "", factor, "ridge"
			out = append(out, r)
		}
		return out
	}
	turned := func(transform string, rows []scores.Row) []scores.Row {
		for i := range rows {
			rows[i].Transform = transform
		}
		return rows
	}
	atChance := func(rows []scores.Row, layers ...int) []scores.Row {
		for _, l := range layers {
			rows[l].Null = rows[l].Value
		}
		return rows
	}
	seis := slices.Concat(depthRows("equivariance", 0.85, 0.9, 0.88), depthRows("invariance", 0.5, 0.2, 0.3))
	for i := range seis {
		seis[i].Layer = fmt.Sprint("l", i%3+1)
	}
	for _, c := range []struct {
		name string
		rows []scores.Row
		want []string
	}{
		{"one layer", retrieval(0.01, 0.9), nil},
		{"a clear lead", retrieval(0.01, 0.5, 0.9, 0.6),
			[]string{"Best layer for retrieval: layer 2 of 3 (recall at 1: 0.900), 0.300 [0.281, 0.319] more than layer 3 of 3."}},
		{"no clear lead", retrieval(0.05, 0.5, 0.62, 0.6),
			[]string{"Best layer for retrieval: none is seen to be better than layer 2 of 3 (recall at 1: 0.620), 0.020 [-0.060, 0.100] more than layer 3 of 3."}},
		{"without intervals", retrieval(nan, 0.5, 0.9, 0.6),
			[]string{"Best layer for retrieval: without intervals, layer 2 of 3 (recall at 1: 0.900), 0.300 more than layer 3 of 3."}},
		{"several transformations", slices.Concat(turned("turn", retrieval(0.01, 0.5, 0.9, 0.6)), turned("blur", retrieval(0.01, 0.7, 0.5, 0.9))),
			[]string{"Best layer for retrieval: layer 3 of 3 (recall at 1: 0.750 on average over 2 transformations), 0.050 [0.033, 0.067] more than layer 2 of 3."}},
		{"the best is no better than chance", atChance(retrieval(0.01, 0.5, 0.9, 0.6), 1),
			[]string{"Best layer for retrieval: layer 3 of 3 (recall at 1: 0.600), 0.100"}},
		{"all at chance", atChance(retrieval(0.01, 0.5, 0.9), 0, 1), []string{"Best layer for retrieval: none is better than chance."}},
		{"one above chance", atChance(retrieval(0.01, 0.5, 0.9), 0),
			[]string{"Best layer for retrieval: layer 2 of 2 (recall at 1: 0.900), the only one above chance."}},
		{"three uses", slices.Concat(retrieval(0.01, 0.5, 0.6, 0.9), seis, probe("label", "accuracy", 0.4, 0.5, 0.8), probe("hue", "r2", 0.9, 0.1, 0.1)),
			[]string{"Best layer for retrieval: layer 3 of 3"}},
		{"factors", slices.Concat(probe("hue", "r2", 0.9, 0.1, 0.1), probe("size", "r2", 0.1, 0.2, 0.1)),
			[]string{"Best layer for linear probing: layer 1 of 3 (R² of a linear probe: 0.500 on average over 2 factors), 0.350"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			_, layers := Conclusions(c.rows, scores.Record{Measures: reporttest.Measures()}, nil)
			for _, s := range layers {
				got = append(got, s.String())
			}
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if c.name == "three uses" && (!strings.Contains(got[0], "; for localisation: ") || !strings.Contains(got[0], "layer 2 of 3 (equivariance less invariance: 0.700)") ||
				!strings.HasSuffix(got[0], "; for linear probing: layer 3 of 3 (accuracy of a linear probe: 0.800), 0.300 [0.281, 0.319] more than layer 2 of 3.")) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestFalseBestLayers checks that of layers of equal quality one is said to be the best in at most
// 5 % of draws, up to two standard errors, and that a layer that is better is found. Values of a
// sample share an effect over layers and transformations.
func TestFalseBestLayers(t *testing.T) {
	t.Parallel()
	const draws, samples, layers, transforms = 200, 200, 8, 2
	g := rand.New(rand.NewPCG(3, 3))
	said := func(better float64) int {
		count := 0
		for range draws {
			easy := make([]float64, samples)
			for i := range easy {
				easy[i] = g.Float64()
			}
			var cells []scores.Cell
			for k := range transforms {
				cell := scores.Cell{Model: "m", Data: "d", Transform: fmt.Sprint("t", k), Measure: "retrieval"}
				for l := range layers {
					v := make([]float64, samples)
					for i := range v {
						p := 0.3 + 0.4*easy[i]
						if l == 5 {
							p += better
						}
						if g.Float64() < p {
							v[i] = 1
						}
					}
					s := measure.Plain("recall-1", mean(v), samples)
					s.Replicates, s.Max, s.Null = resample.MeanWithoutGroups(v), 1, 0.005
					s.Low, s.High = resample.Jackknife(s.Value, s.N, s.Replicates)
					cell.Layers = append(cell.Layers, scores.Layer{Name: fmt.Sprint("l", l), Depth: l, Scores: []measure.Score{s}})
				}
				cells = append(cells, cell)
			}
			_, best := Conclusions(scores.Table("s", cells), scores.Record{Measures: reporttest.Measures()}, NewReplicates(cells))
			if text := best[0].String(); !strings.Contains(text, "none is seen") {
				count++
				if better > 0 && !strings.Contains(text, "layer 6 of 8") {
					t.Errorf("the best layer is not found: %s", text)
				}
			}
		}
		return count
	}
	if n := said(0); float64(n)/draws > 0.05+2*0.0154 {
		t.Errorf("of equal layers one is said to be the best in %d of %d draws", n, draws)
	}
	if n := said(0.25); float64(n)/draws < 0.9 {
		t.Errorf("a better layer is seen in %d of %d draws", n, draws)
	}
}
