package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// tables prints the figures and the table of the paper for the models with scores.
func (p plan) tables() error {
	t, err := p.read()
	if err != nil {
		return err
	}
	if t["ridge"] != nil {
		t.figures12()
		t.figure3()
	}
	if t["depth"] != nil {
		if err := p.depths(t); err != nil {
			return err
		}
	}
	if t["copies"] != nil {
		t.figure5()
	}
	if t["cdbn"] != nil {
		t.table1()
	}
	return nil
}

// figures12 prints the correlations of tests over the networks of ridge.onnx.
func (t table) figures12() {
	fmt.Println("\nOver the networks of ridge.onnx (figures 1 and 2): rank correlation, 95 % interval by 2,000 resamples of networks")
	for _, pair := range [][2]string{{"gratings phase", "pan"}, {"gratings phase", "clips"}, {"gratings orientation", "turn"}, {"pan", "turn"}, {"pan", "orbit"}, {"turn", "orbit"}, {"pan", "clips"}} {
		var x, y []float64
		for _, l := range t.layers("ridge", nil) {
			a, b := t.of("ridge", l, pair[0]), t.of("ridge", l, pair[1])
			if !math.IsNaN(a) && !math.IsNaN(b) {
				x, y = append(x, a), append(y, b)
			}
		}
		if len(x) < 3 {
			continue
		}
		low, high := resampled(x, y)
		fmt.Printf("| %s against %s | %.2f [%.2f, %.2f] | %d networks |\n", pair[0], pair[1], rank(x, y), low, high, len(x))
	}
}

// rank returns Spearman's rank correlation.
func rank(x, y []float64) float64 { return stat.Correlation(ranks(x), ranks(y), nil) }

// ranks returns the ranks of values, with mean ranks for ties.
func ranks(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		below, same := 0, 0
		for _, w := range x {
			if w < v {
				below++
			} else if w == v {
				same++
			}
		}
		out[i] = float64(below) + float64(same+1)/2
	}
	return out
}

// resampled returns the 95 % bootstrap interval of the rank correlation.
func resampled(x, y []float64) (low, high float64) {
	r := rand.New(rand.NewPCG(1, 1))
	var found []float64
	for range 2000 {
		a, b := make([]float64, len(x)), make([]float64, len(x))
		for i := range a {
			k := r.IntN(len(x))
			a[i], b[i] = x[k], y[k]
		}
		if c := rank(a, b); !math.IsNaN(c) {
			found = append(found, c)
		}
	}
	slices.Sort(found)
	return stat.Quantile(0.025, stat.Empirical, found, nil), stat.Quantile(0.975, stat.Empirical, found, nil)
}

// figure3 prints the mean score over the natural tests by target and decay.
func (t table) figure3() {
	fmt.Println("\nMean over the natural tests, all units, by target activation and weight decay (figure 3)")
	fmt.Print("| target |")
	for _, d := range ridgeDecays {
		fmt.Printf(" %g |", d)
	}
	fmt.Println()
	for _, target := range targets {
		fmt.Printf("| %g |", target)
		for _, decay := range ridgeDecays {
			fmt.Printf(" %.2f |", t.mean("ridge", fmt.Sprintf("target%g/decay%g/layer1", target, decay)))
		}
		fmt.Println()
	}
}

// depths prints the best, the median and the worst network of each depth.
func (p plan) depths(t table) error {
	fmt.Println("\nThe networks of depth.onnx, mean over the natural tests: the best, the median and the worst of each depth")
	byDepth := make([][]float64, deep)
	name := make([]string, deep)
	for _, l := range t.layers("depth", nil) {
		decays, err := stack(l)
		if err != nil {
			return err
		}
		d, v := len(decays)-1, t.mean("depth", l)
		if len(byDepth[d]) == 0 || v > slices.Max(byDepth[d]) {
			name[d] = path(decays)
		}
		byDepth[d] = append(byDepth[d], v)
	}
	for d, values := range byDepth {
		slices.Sort(values)
		fmt.Printf("| %d | %s | %.2f | %.2f | %.2f | %d networks |\n", d+1, name[d], values[len(values)-1], values[len(values)/2], values[0], len(values))
	}
	return nil
}

// figure5 prints the scores of the copies: means with intervals, and Welch's test between
// successive depths.
func (t table) figure5() {
	fmt.Println("\nCopies of the best networks (figure 5): mean [95 % interval], and Welch's t-test against the depth before")
	tests := append([]string{"mean"}, natural...)
	tests = append(tests, "gratings phase", "gratings orientation")
	for _, test := range tests {
		var before []float64
		fmt.Printf("| %s |", test)
		for d := 1; d <= deep; d++ {
			var values []float64
			for _, l := range t.layers("copies", func(l string) bool {
				return strings.HasPrefix(l, fmt.Sprintf("depth%d/", d)) && strings.HasSuffix(l, fmt.Sprintf("/layer%d", d))
			}) {
				v := t.of("copies", l, test)
				if test == "mean" {
					v = t.mean("copies", l)
				}
				values = append(values, v)
			}
			m, half := meanInterval(values)
			fmt.Printf(" %.2f [%.2f, %.2f] |", m, m-half, m+half)
			if before != nil {
				fmt.Printf(" %s |", significance(before, values))
			}
			before = values
		}
		fmt.Println()
	}
}

// significance returns the p-value of a difference of means; "" if all values are equal.
func significance(a, b []float64) string {
	p := welch(a, b)
	if math.IsNaN(p) {
		return ""
	}
	return fmt.Sprintf("p = %.2g", p)
}

func meanInterval(x []float64) (mean, half float64) {
	mean, deviation := stat.MeanStdDev(x, nil)
	n := float64(len(x))
	return mean, distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975) * deviation / math.Sqrt(n)
}

// welch returns the two-sided p-value of a difference of means.
func welch(x, y []float64) float64 {
	mx, vx := stat.MeanVariance(x, nil)
	my, vy := stat.MeanVariance(y, nil)
	a, b := vx/float64(len(x)), vy/float64(len(y))
	nu := (a + b) * (a + b) / (a*a/float64(len(x)-1) + b*b/float64(len(y)-1))
	return 2 * distuv.StudentsT{Sigma: 1, Nu: nu}.CDF(-math.Abs(mx-my)/math.Sqrt(a+b))
}

// table1 prints the scores of the two layers of the belief network.
func (t table) table1() {
	fmt.Println("\nThe convolutional deep belief network (table 1)")
	var tests []string
	for name := range t["cdbn"]["layer1"] {
		tests = append(tests, name)
	}
	slices.Sort(tests)
	for _, name := range tests {
		a, b := t["cdbn"]["layer1"][name], t["cdbn"]["layer2"][name]
		fmt.Printf("| %s | %.2f [%.2f, %.2f] | %.2f [%.2f, %.2f] | %+.1f %% |\n", name, a.Value, a.Low, a.High, b.Value, b.Low, b.High, 100*(b.Value/a.Value-1))
	}
}
