package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/measure/similarity"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
)

// A test asks whether a statistic agrees with what is known of some networks.
type test struct {
	name string
	low  float64 // smallest possible value
	// value is 1 if the statistic agrees in all cases, and NaN if it has no scores.
	value func(t *evaluation) float64
}

// tests returns the six tests of Klabunde et al. 2025 for the runs labels, dots, noise and layers
// of resi.yaml. The networks of a group differ in their seed only.
func tests() []test {
	return []test{
		{"accuracy", -1, func(t *evaluation) float64 { return t.correlation("accuracy", "clean") }},
		{"outputs", -1, func(t *evaluation) float64 { return t.correlation("prediction-agreement", "disagreement") }},
		{"labels", 0, func(t *evaluation) float64 { return t.conformity(0) }},
		{"shortcuts", 0, func(t *evaluation) float64 { return t.conformity(1) }},
		{"augmentation", 0, func(t *evaluation) float64 { return t.conformity(2) }},
		{"layers", 0, (*evaluation).monotonicity},
	}
}

// An evaluation is a statistic with the scores of all networks, or of those of all seeds but one.
type evaluation struct {
	statistic string
	sign      float64        // 1 if larger is more similar, -1 if smaller is
	runs      [][]scores.Row // of labels, dots, noise and layers
	without   string         // seed of the networks that are left out; "": none
}

// A pair is the similarity of two networks, or of two layers of one network.
type pair struct {
	scores.Row         // of the first direction
	similarity float64 // the mean over both directions if both were scored; larger is more similar
}

// leftOut reports whether a network is left out. "" stands for no network.
func (t *evaluation) leftOut(network string) bool {
	_, seed := groupOf(network)
	return network != "" && seed == t.without
}

// pairs returns the pairs of a run whose scores belong to a test, without undefined scores.
func (t *evaluation) pairs(run int, belongs func(scores.Row) bool) []pair {
	var out []pair
	for _, r := range t.runs[run] {
		if r.Measure != "similarity" || r.Statistic != t.statistic || !belongs(r) || t.leftOut(r.Model) || t.leftOut(r.OtherModel) || math.IsNaN(r.Value) {
			continue
		}
		i := slices.IndexFunc(out, func(p pair) bool {
			return p.Model == r.OtherModel && p.OtherModel == r.Model && p.Layer == r.OtherLayer && p.OtherLayer == r.Layer
		})
		if i < 0 {
			out = append(out, pair{r, t.sign * r.Value})
		} else {
			out[i].similarity = (out[i].similarity + t.sign*r.Value) / 2
		}
	}
	return out
}

// networks returns the pairs of different networks of a run.
func (t *evaluation) networks(run int) []pair {
	return t.pairs(run, func(r scores.Row) bool { return r.Model != r.OtherModel })
}

// conformity takes all combinations of a pair of networks of one group and a pair of networks of
// different groups, and returns the fraction in which the first pair is more similar. It is NaN if
// there are none.
func (t *evaluation) conformity(run int) float64 {
	var within, between []float64
	for _, p := range t.networks(run) {
		a, _ := groupOf(p.Model)
		b, _ := groupOf(p.OtherModel)
		if a == b {
			within = append(within, p.similarity)
		} else {
			between = append(between, p.similarity)
		}
	}
	var more float64
	for _, w := range within {
		for _, b := range between {
			if w > b {
				more++
			}
		}
	}
	return more / float64(len(within)*len(between))
}

// correlation returns Spearman's correlation, over the pairs of networks of a group, of the
// dissimilarity with a difference of the two networks: the mean over all groups of all runs. The
// difference is the score of the pair by the given statistic of the given measure or, if it scores
// single networks, the absolute difference of their scores.
func (t *evaluation) correlation(measure, statistic string) float64 {
	var sum, n float64
	for run, rows := range t.runs {
		known := map[[2]string]float64{}
		for _, r := range rows {
			if r.Measure == measure && r.Statistic == statistic {
				known[[2]string{r.Model, r.OtherModel}] = r.Value
			}
		}
		difference := func(a, b string) float64 {
			if v, ok := known[[2]string{a, b}]; ok {
				return v
			}
			if v, ok := known[[2]string{b, a}]; ok {
				return v
			}
			return math.Abs(known[[2]string{a, ""}] - known[[2]string{b, ""}])
		}
		groups := map[string][2][]float64{}
		for _, p := range t.networks(run) {
			a, _ := groupOf(p.Model)
			if b, _ := groupOf(p.OtherModel); a == b {
				g := groups[a]
				groups[a] = [2][]float64{append(g[0], -p.similarity), append(g[1], difference(p.Model, p.OtherModel))}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			g := groups[name]
			if run > 0 && slices.ContainsFunc(t.runs[0], func(r scores.Row) bool { o, _ := groupOf(r.Model); return o == name }) {
				continue // the group has been counted in the first run
			}
			if r := correlation.Spearman(g[0], g[1]); !math.IsNaN(r.Value) {
				sum, n = sum+r.Value, n+1
			}
		}
	}
	return sum / n
}

// monotonicity takes three layers of a network in the order of depth, and compares the similarity
// of the first and the last with that of the first and the middle, and with that of the middle and
// the last. It returns the fraction of all such comparisons in which the outer two are not more
// similar.
func (t *evaluation) monotonicity() float64 {
	var right, all float64
	for run := range t.runs {
		depth := map[[2]string]int{}
		for _, r := range t.runs[run] {
			depth[[2]string{r.Model, r.Layer}] = r.Depth
		}
		networks := map[string]map[[2]int]float64{}
		for _, p := range t.pairs(run, func(r scores.Row) bool { return r.Model == r.OtherModel && r.Layer != r.OtherLayer }) {
			if networks[p.Model] == nil {
				networks[p.Model] = map[[2]int]float64{}
			}
			i, j := p.Depth, depth[[2]string{p.Model, p.OtherLayer}]
			networks[p.Model][[2]int{min(i, j), max(i, j)}] = p.similarity
		}
		for _, s := range networks {
			for outer, far := range s {
				for inner, near := range s {
					if inner != outer && (inner[0] == outer[0] && inner[1] < outer[1] || inner[1] == outer[1] && inner[0] > outer[0]) {
						all++
						if near >= far {
							right++
						}
					}
				}
			}
		}
	}
	return right / all
}

// A result is the outcome of a test of a statistic.
type result struct {
	value     float64
	low, high float64 // 95 % interval of the value
	rank      float64 // among all statistics; NaN if value is
}

// resultOf returns the result without its rank. The interval is that of a jackknife over seeds.
func resultOf(of test, statistic measure.StatisticDescriptor, runs [][]scores.Row, seeds []string) result {
	t := &evaluation{statistic: statistic.Name, sign: 1, runs: runs}
	if statistic.Direction == measure.Lower {
		t.sign = -1
	}
	out := result{value: of.value(t)}
	var replicates []measure.Replicate
	for _, s := range seeds {
		t.without = s
		replicates = append(replicates, measure.Replicate{Value: of.value(t), Left: 1}) // one seed is left out
	}
	low, high := resample.Jackknife(out.value, len(seeds), replicates)
	out.low, out.high = max(low, of.low), min(high, 1)
	return out
}

// seedsOf returns the seeds of the networks of all runs.
func seedsOf(runs [][]scores.Row) []string {
	var out []string
	for _, rows := range runs {
		for _, r := range rows {
			if _, s := groupOf(r.Model); !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// rank sets the ranks of the results of a test. The best has rank 1, equal values share their mean
// rank, and those without a value are not ranked.
func rank(all []*result) {
	for _, r := range all {
		if math.IsNaN(r.value) {
			r.rank = math.NaN()
			continue
		}
		r.rank = 0.5
		for _, o := range all {
			switch {
			case o.value > r.value:
				r.rank++
			case o.value == r.value:
				r.rank += 0.5
			}
		}
	}
}

// meanRank returns the mean rank of a statistic over the tests in which it is ranked.
func meanRank(results []*result) float64 {
	var sum, n float64
	for _, r := range results {
		if !math.IsNaN(r.rank) {
			sum, n = sum+r.rank, n+1
		}
	}
	return sum / n
}

// writeTable writes the results of the runs of labels, dots, noise and layers as CSV, in the order
// of the mean ranks: a row for each statistic and test.
func writeTable(out io.Writer, runs [][]scores.Row) error {
	if len(runs) != 4 {
		return fmt.Errorf("%d runs: the table takes those of labels, dots, noise and layers, in this order", len(runs))
	}
	seeds := seedsOf(runs)
	found := map[string][]*result{}
	var names []string
	for _, s := range similarity.Descriptor().Statistics {
		var results []*result
		for _, of := range tests() {
			r := resultOf(of, s, runs, seeds)
			results = append(results, &r)
		}
		if slices.ContainsFunc(results, func(r *result) bool { return !math.IsNaN(r.value) }) {
			names = append(names, s.Name)
			found[s.Name] = results
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("the runs have no scores of similarity between networks")
	}
	for i := range tests() {
		var all []*result
		for _, name := range names {
			all = append(all, found[name][i])
		}
		rank(all)
	}
	means := map[string]float64{}
	for _, name := range names {
		means[name] = meanRank(found[name])
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(means[a], means[b]) })
	table := [][]string{{"similarity", "statistic", "value", "low", "high"}}
	for _, name := range names {
		table = append(table, []string{"`" + name + "`", "mean rank", number(means[name], 1), "", ""})
		for i, of := range tests() {
			r := found[name][i]
			table = append(table, []string{"`" + name + "`", of.name, number(r.rank, 1) + ": " + number(r.value, 2), number(r.low, 2), number(r.high, 2)})
		}
	}
	return csv.NewWriter(out).WriteAll(table)
}

// number writes a value with so many decimals, without a ".0" at the end, and NaN as nothing.
func number(v float64, decimals int) string {
	if math.IsNaN(v) {
		return ""
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	return strings.TrimSuffix(text, ".0")
}
