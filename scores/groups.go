package scores

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// A Grouping divides samples into groups by one of their properties, such as the site or the
// brightness.
type Grouping struct {
	Column string
	Groups []string    // names, in order
	Of     map[int]int // index in Groups by index of the sample; without samples that lack the property
}

const (
	// maxNumberGroups is the largest number of different numbers that are groups of their own. More
	// are divided into quarters.
	maxNumberGroups = 8
	// LeastGroup is the smallest number of samples of a group that is compared with the others.
	LeastGroup = 10
	// Gap is the Variant of the row that compares the worst group with the rest.
	Gap = "gap"
)

// GroupCategories returns the grouping by a property with named values. values holds indices in
// names by index of the sample.
func GroupCategories(column string, names []string, values map[int]float64) Grouping {
	g := Grouping{column, names, map[int]int{}}
	for sample, v := range values {
		if i := int(v); i >= 0 && i < len(names) {
			g.Of[sample] = i
		}
	}
	return g
}

// GroupNumbers returns the grouping by a number: by its value if there are at most eight different
// ones, else by quarters of the samples, of which equal numbers stay together. A quarter has the
// name "LOW to HIGH", of its smallest and largest number. Numbers that are not finite are left out.
func GroupNumbers(column string, values map[int]float64) Grouping {
	g := Grouping{Column: column, Of: map[int]int{}}
	var sorted []float64
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			sorted = append(sorted, v)
		}
	}
	if len(sorted) == 0 {
		return g
	}
	slices.Sort(sorted)
	highest := slices.Compact(slices.Clone(sorted)) // of each group
	if len(highest) > maxNumberGroups {
		highest = nil
		for k := 1; k <= 4; k++ {
			highest = append(highest, sorted[(len(sorted)*k+3)/4-1])
		}
		highest = slices.Compact(highest)
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	for i, high := range highest {
		low := sorted[0]
		if i > 0 {
			at, _ := slices.BinarySearchFunc(sorted, highest[i-1], func(v, last float64) int {
				if v <= last {
					return -1
				}
				return 1
			})
			low = sorted[at]
		}
		name := number(low)
		if low < high {
			name += " to " + number(high)
		}
		g.Groups = append(g.Groups, name)
	}
	for sample, v := range values {
		if i, _ := slices.BinarySearch(highest, v); i < len(highest) && !math.IsNaN(v) {
			g.Of[sample] = i
		}
	}
	return g
}

// Divide returns the values of each group, by index of the sample, in the order of g.Groups.
func (g Grouping) Divide(values map[int]float64) [][]float64 {
	out := make([][]float64, len(g.Groups))
	for _, sample := range slices.Sorted(maps.Keys(values)) {
		if i, ok := g.Of[sample]; ok {
			out[i] = append(out[i], values[sample])
		}
	}
	return out
}

// A GroupGap is the mean of a group minus that of the rest, the samples of all other groups.
type GroupGap struct {
	Group int // index in Grouping.Groups
	resample.Estimate
	N int // samples of the group
}

// Gaps returns the gap of each group of at least LeastGroup samples if the rest has as many. within
// is the range of the values. The intervals hold together with probability 1 - alpha (Bonferroni),
// so also that of a group that is chosen since it is the worst.
func (g Grouping) Gaps(values map[int]float64, within measure.Range, alpha float64) []GroupGap {
	groups := g.Divide(values)
	compared := func(i int) bool {
		rest := -len(groups[i])
		for _, other := range groups {
			rest += len(other)
		}
		return min(len(groups[i]), rest) >= LeastGroup
	}
	var chosen []int
	for i := range groups {
		if compared(i) {
			chosen = append(chosen, i)
		}
	}
	var out []GroupGap
	for _, i := range chosen {
		rest := slices.Concat(slices.Concat(groups[:i]...), slices.Concat(groups[i+1:]...))
		each := alpha / float64(len(chosen))
		d := resample.Difference(resample.Mean(groups[i], within, each), resample.Mean(rest, within, each))
		out = append(out, GroupGap{i, d, len(groups[i])})
	}
	return out
}

// GroupRows returns the scores of a statistic for each group: its mean over the group's samples.
// values holds the statistic of each sample by its index, row identifies the statistic over all
// samples. Factor of a row is COLUMN=GROUP.
//
// If one end of the statistic is better, a further row with the Variant Gap has the group with the
// worst mean, as a difference from that of all other groups together; see Gaps. Groups of fewer
// than LeastGroup samples are not compared, and have a warning.
func GroupRows(row Row, values map[int]float64, s measure.StatisticDescriptor, g Grouping) []Row {
	row.Null, row.P, row.PAdjusted, row.Warning = math.NaN(), 0, 0, ""
	score := func(group string, e resample.Estimate, n int) Row {
		r := row
		r.Factor, r.Value, r.Low, r.High, r.N = g.Column+"="+group, e.Mean, e.Low, e.High, n
		return r
	}
	var out []Row
	for i, of := range g.Divide(values) {
		if len(of) == 0 {
			continue
		}
		r := score(g.Groups[i], resample.Mean(of, s.Range, 0.05), len(of))
		if len(of) < LeastGroup {
			r.Warning = fmt.Sprintf("fewer than %d samples: not compared with the other groups", LeastGroup)
		}
		out = append(out, r)
	}
	sign := map[measure.Direction]float64{measure.Higher: 1, measure.Lower: -1}[s.Direction]
	if gaps := g.Gaps(values, s.Range, 0.05); sign != 0 && len(gaps) > 1 {
		worst := slices.MinFunc(gaps, func(a, b GroupGap) int { return cmp.Compare(sign*a.Mean, sign*b.Mean) })
		r := score(g.Groups[worst.Group], worst.Estimate, worst.N)
		r.Variant = Gap
		out = append(out, r)
	}
	return out
}

// groupColumns are the names of the columns in groups.csv, in order.
var groupColumns = []string{"data", "column", "group", "index"}

// WriteGroupings writes groups.csv: groupings by name of the data.
func WriteGroupings(w io.Writer, byData map[string][]Grouping) error {
	out := csv.NewWriter(w)
	out.Write(groupColumns)
	for _, data := range slices.Sorted(maps.Keys(byData)) {
		for _, g := range byData[data] {
			for i, name := range g.Groups {
				for _, sample := range slices.Sorted(maps.Keys(g.Of)) {
					if g.Of[sample] == i {
						out.Write([]string{data, g.Column, name, strconv.Itoa(sample)})
					}
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

// ReadGroupings reads groups.csv.
func ReadGroupings(r io.Reader) (map[string][]Grouping, error) {
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 || !slices.Equal(lines[0], groupColumns) {
		return nil, fmt.Errorf("its columns are not %v", groupColumns)
	}
	out := map[string][]Grouping{}
	for k, line := range lines[1:] {
		sample, err := strconv.Atoi(line[3])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", k+2, err)
		}
		all := out[line[0]]
		if len(all) == 0 || all[len(all)-1].Column != line[1] {
			all = append(all, Grouping{Column: line[1], Of: map[int]int{}})
		}
		g := &all[len(all)-1]
		if len(g.Groups) == 0 || g.Groups[len(g.Groups)-1] != line[2] {
			g.Groups = append(g.Groups, line[2])
		}
		g.Of[sample] = len(g.Groups) - 1
		out[line[0]] = all
	}
	return out, nil
}
