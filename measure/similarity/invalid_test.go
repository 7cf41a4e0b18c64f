package similarity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Each invalid input has the error that is stated.
func TestInvalidInput(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(8, 5))
	random := func(n, p int, change func(v []float64)) Source {
		v := normal(g, n, p).RawMatrix().Data
		if change != nil {
			change(v)
		}
		return source(t, v, p)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	all := Defaults()
	all.Statistics, all.Neighbours = Names(), 3
	with := func(change func(*Settings)) Settings {
		s := all
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		ctx  context.Context
		x, y Source
		s    Settings
		want string
	}{
		"different rows":  {x: random(30, 3, nil), y: random(31, 3, nil), s: all, want: "X has 30 rows and Y 31: row i of both must be the same input"},
		"nan":             {x: random(30, 3, nil), y: random(30, 3, func(v []float64) { v[3*7+2] = math.NaN() }), s: all, want: "Y: NaN or infinity in row 7, column 2"},
		"infinity":        {x: random(30, 3, func(v []float64) { v[0] = math.Inf(-1) }), y: random(30, 3, nil), s: all, want: "X: NaN or infinity in row 0, column 0"},
		"too few samples": {x: random(3, 3, nil), y: random(3, 3, nil), s: with(func(s *Settings) { s.Statistics = []string{DebiasedCKA} }), want: "3 samples are too few: debiased-cka needs 4"},
		"mutual-knn":      {x: random(9, 3, nil), y: random(9, 3, nil), s: with(func(s *Settings) { s.Neighbours = 9 }), want: "mutual-knn: 9 samples have at most 8 neighbours, not 9"},
		"jaccard":         {x: random(9, 3, nil), y: random(9, 3, nil), s: with(func(s *Settings) { s.Statistics, s.Neighbours = []string{Jaccard}, 9 }), want: "jaccard: 9 samples have at most 8 neighbours, not 9"},
		"cknna":           {x: random(9, 3, nil), y: random(9, 3, nil), s: with(func(s *Settings) { s.Statistics, s.Neighbours = []string{CKNNA}, 12 }), want: "cknna: 9 samples have at most 8 neighbours, not 12"},
		"unknown":         {x: random(9, 3, nil), y: random(9, 3, nil), s: with(func(s *Settings) { s.Statistics = []string{"cka"} }), want: `unknown statistic "cka": there are ` + listed(Names())},
		"no statistics":   {x: random(9, 3, nil), y: random(9, 3, nil), s: with(func(s *Settings) { s.Statistics = nil }), want: "no statistics: name some of " + listed(Names())},
		"variance":        {x: random(9, 3, nil), y: random(9, 3, nil), s: with(func(s *Settings) { s.Variance = 0 }), want: "variance is 0; it must be above 0 and at most 1"},
		"bandwidth":       {x: random(9, 3, nil), y: random(9, 3, nil), s: with(func(s *Settings) { s.Bandwidth = -1 }), want: "bandwidth is -1; it must be above 0"},
		"overflow":        {x: random(30, 3, func(v []float64) { scale(v, 1e308) }), y: random(30, 3, nil), s: all, want: "X: deviations are beyond the largest number: divide the matrix by a constant"},
		"cancelled":       {ctx: cancelled, x: random(30, 3, nil), y: random(30, 3, nil), s: all, want: "context canceled"},
	} {
		ctx := c.ctx
		if ctx == nil {
			ctx = context.Background()
		}
		if _, err := Compare(ctx, c.x, c.y, Options{Settings: c.s}); err == nil || err.Error() != c.want {
			t.Errorf("%s: error %q, want %q", name, fmt.Sprint(err), c.want)
		}
	}
	if _, err := Of([]float32{1, 2, 3}, 2, 2); err == nil {
		t.Error("three values were accepted as a 2 x 2 matrix")
	}
	if _, err := Of([]float64(nil), 0, 0); err == nil {
		t.Error("an empty matrix was accepted")
	}
}

// listed returns the names with commas between them.
func listed(names []string) string {
	out := names[0]
	for _, n := range names[1:] {
		out += ", " + n
	}
	return out
}

// A failingSource is a Source whose reads return errDisk.
type failingSource struct{ Source }

var errDisk = errors.New("disk")

func (failingSource) Read([]int, []float64) error { return errDisk }

// TestSourceErrors checks that Compare returns the error of reading a matrix.
func TestSourceErrors(t *testing.T) {
	t.Parallel()
	x := source(t, make([]float32, 60), 2)
	if _, err := Compare(context.Background(), x, failingSource{x}, Options{Settings: Defaults()}); !errors.Is(err, errDisk) {
		t.Errorf("error %v, want that of the source, %v", err, errDisk)
	}
}
