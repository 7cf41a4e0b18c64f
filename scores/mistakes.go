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

// A Mistake is a sample for which a model's prediction is wrong: a line of failures.csv.
type Mistake struct {
	Kind MistakeKind
	// Cost is the probability of the wrong class; of a changed prediction it is the square root of
	// the product of the two probabilities, of changed boxes or class maps the share that changes.
	Cost            float64
	Model           string
	Data            string
	Transform       string // "" for a sample that is wrong without a transformation
	Parameter       string
	Trial           int
	Index           int    // of the sample in the data set
	Path            string // of its file; of data that are not single files, its name
	Label           string // "" if unknown
	Clean, Moved    string // predicted classes of x and T(x); of boxes and class maps "" and what is kept
	CleanConfidence float64
	MovedConfidence float64 // NaN without a transformation
	// Groups are the groups of the sample by property.
	Groups map[string]string
}

// A MistakeKind says what is wrong.
type MistakeKind string

// The kinds, in the order of failures.csv.
const (
	Broken  MistakeKind = "broken"  // right on x and wrong on T(x)
	Changed MistakeKind = "changed" // another class for T(x) than for x, of a sample without a label; or other boxes or class maps
	Wrong   MistakeKind = "wrong"   // wrong on x
)

// MistakeKinds are the kinds in the order of failures.csv.
var MistakeKinds = []MistakeKind{Broken, Changed, Wrong}

// SortMistakes sorts by kind, then by decreasing cost.
func SortMistakes(all []Mistake) {
	slices.SortStableFunc(all, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(slices.Index(MistakeKinds, a.Kind), slices.Index(MistakeKinds, b.Kind)), cmp.Compare(b.Cost, a.Cost))
	})
}

// MistakeColumns are the names of the columns in failures.csv, in order; those of the properties of
// samples follow.
var MistakeColumns = []string{"kind", "cost", "path", "label", "predicted_clean", "predicted_moved", "confidence_clean", "confidence_moved",
	"transform", "parameter", "trial", "model", "data", "index"}

// WriteMistakes writes failures.csv.
func WriteMistakes(w io.Writer, all []Mistake) error {
	properties := map[string]bool{}
	for _, m := range all {
		for p := range m.Groups {
			properties[p] = true
		}
	}
	columns := slices.Sorted(maps.Keys(properties))
	out := csv.NewWriter(w)
	out.Write(slices.Concat(MistakeColumns, columns))
	for _, m := range all {
		line := []string{string(m.Kind), formatFloat(m.Cost), m.Path, m.Label, m.Clean, m.Moved, formatFloat(m.CleanConfidence), formatFloat(m.MovedConfidence),
			m.Transform, m.Parameter, strconv.Itoa(m.Trial), m.Model, m.Data, strconv.Itoa(m.Index)}
		for _, c := range columns {
			line = append(line, m.Groups[c])
		}
		out.Write(line)
	}
	out.Flush()
	return out.Error()
}

// ReadMistakes reads failures.csv.
func ReadMistakes(r io.Reader) ([]Mistake, error) {
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	n := len(MistakeColumns)
	if len(lines) == 0 || len(lines[0]) < n || !slices.Equal(lines[0][:n], MistakeColumns) {
		return nil, fmt.Errorf("its columns are not %v", MistakeColumns)
	}
	var out []Mistake
	for k, line := range lines[1:] {
		number := func(text string) float64 {
			v, failed := strconv.ParseFloat(cmp.Or(text, "nan"), 64)
			err = cmp.Or(err, failed)
			return v
		}
		m := Mistake{Kind: MistakeKind(line[0]), Cost: number(line[1]), Path: line[2], Label: line[3], Clean: line[4], Moved: line[5],
			CleanConfidence: number(line[6]), MovedConfidence: number(line[7]), Transform: line[8], Parameter: line[9], Trial: int(number(line[10])),
			Model: line[11], Data: line[12], Index: int(number(line[13])), Groups: map[string]string{}}
		for i, c := range lines[0][n:] {
			m.Groups[c] = line[n+i]
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", k+2, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// A MistakeGroup says how often the samples of a group that are right without a transformation are
// wrong with it, or which share of their boxes or regions changes: a line of failure-groups.csv.
type MistakeGroup struct {
	Kind                   MistakeKind // Broken, or Changed of boxes and class maps
	Data, Model, Transform string
	Column, Group          string
	N                      int               // samples that are right without the transformation
	Share                  resample.Estimate // of the samples and values that are wrong with it, or mean share that changes
	// Gap is Share minus that of all other groups of the column. Its intervals hold together for
	// all groups of a model, data set and transformation. NaN: not compared.
	Gap resample.Estimate
}

// ClassPair is the Column of groups by label and wrong class, such as "cat > dog". N and Share
// refer to the samples of the label.
const ClassPair = "class pair"

// AllSamples is the Column of the group of all samples of boxes or class maps.
const AllSamples = "all"

// Columns of failure-groups.csv.
var mistakeGroupColumns = []string{"data", "model", "transform", "column", "group", "n", "share", "low", "high", "gap", "gap_low", "gap_high", "kind"}

// GroupMistakes returns the groups of the samples of one model, data set and transformation. share
// holds, by index of the sample, the fraction of the transformation's values and trials at which a
// sample is wrong that is right without it. mistakes are the Broken ones, of views values and
// trials. label is the grouping by label. Groups that are wrong more often than the others come
// first, then the others by their gap, then pairs of classes by their share.
func GroupMistakes(share map[int]float64, mistakes []Mistake, views int, label Grouping, groupings []Grouping) []MistakeGroup {
	nan := math.NaN()
	var columns []Grouping
	for _, g := range append([]Grouping{label}, groupings...) {
		if !slices.ContainsFunc(columns, func(o Grouping) bool { return o.Column == g.Column }) && len(g.Gaps(share, measure.ZeroToOne, 0.05)) > 1 {
			columns = append(columns, g)
		}
	}
	var out []MistakeGroup
	for _, g := range columns {
		gaps := map[int]resample.Estimate{}
		for _, gap := range g.Gaps(share, measure.ZeroToOne, 0.05/float64(len(columns))) {
			gaps[gap.Group] = gap.Estimate
		}
		for i, values := range g.Divide(share) {
			if len(values) == 0 {
				continue
			}
			gap, compared := gaps[i]
			if !compared {
				gap = resample.Estimate{Mean: nan, Low: nan, High: nan}
			}
			out = append(out, MistakeGroup{Column: g.Column, Group: g.Groups[i], N: len(values), Share: resample.Mean(values, measure.ZeroToOne, 0.05), Gap: gap})
		}
	}
	place := func(m MistakeGroup) float64 { // of a gap
		if math.IsNaN(m.Gap.Low) {
			return math.Inf(-1)
		}
		return m.Gap.Low
	}
	slices.SortStableFunc(out, func(a, b MistakeGroup) int { return cmp.Compare(place(b), place(a)) })

	pairs := map[[2]string]map[int]float64{} // label and wrong class: fraction of the views by sample
	for _, m := range mistakes {
		key := [2]string{m.Label, m.Moved}
		if pairs[key] == nil {
			pairs[key] = map[int]float64{}
		}
		pairs[key][m.Index] += 1 / float64(views)
	}
	var byPair []MistakeGroup
	for key, wrong := range pairs {
		class := slices.Index(label.Groups, key[0])
		var values []float64
		for _, sample := range slices.Sorted(maps.Keys(share)) {
			if at, ok := label.Of[sample]; ok && at == class {
				values = append(values, wrong[sample])
			}
		}
		byPair = append(byPair, MistakeGroup{Column: ClassPair, Group: key[0] + " > " + key[1], N: len(values),
			Share: resample.Mean(values, measure.ZeroToOne, 0.05), Gap: resample.Estimate{Mean: nan, Low: nan, High: nan}})
	}
	slices.SortFunc(byPair, func(a, b MistakeGroup) int {
		return cmp.Or(cmp.Compare(b.Share.Mean*float64(b.N), a.Share.Mean*float64(a.N)), cmp.Compare(a.Group, b.Group))
	})
	return append(out, byPair...)
}

// WriteMistakeGroups writes failure-groups.csv.
func WriteMistakeGroups(w io.Writer, all []MistakeGroup) error {
	out := csv.NewWriter(w)
	out.Write(mistakeGroupColumns)
	for _, m := range all {
		line := []string{m.Data, m.Model, m.Transform, m.Column, m.Group, strconv.Itoa(m.N)}
		for _, v := range []float64{m.Share.Mean, m.Share.Low, m.Share.High, m.Gap.Mean, m.Gap.Low, m.Gap.High} {
			line = append(line, formatFloat(v))
		}
		out.Write(append(line, string(m.Kind)))
	}
	out.Flush()
	return out.Error()
}

// ReadMistakeGroups reads failure-groups.csv.
func ReadMistakeGroups(r io.Reader) ([]MistakeGroup, error) {
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	kind := len(mistakeGroupColumns) - 1 // of version 0.3.0, without this column, all groups are Broken
	if len(lines) == 0 || len(lines[0]) < kind || !slices.Equal(lines[0], mistakeGroupColumns[:len(lines[0])]) {
		return nil, fmt.Errorf("its columns are not %v", mistakeGroupColumns)
	}
	var out []MistakeGroup
	for k, line := range lines[1:] {
		var numbers [7]float64
		for i, text := range line[5:kind] {
			if numbers[i], err = strconv.ParseFloat(cmp.Or(text, "nan"), 64); err != nil {
				return nil, fmt.Errorf("line %d: %w", k+2, err)
			}
		}
		of := Broken
		if len(line) > kind {
			of = MistakeKind(line[kind])
		}
		out = append(out, MistakeGroup{of, line[0], line[1], line[2], line[3], line[4], int(numbers[0]),
			resample.Estimate{Mean: numbers[1], Low: numbers[2], High: numbers[3]}, resample.Estimate{Mean: numbers[4], Low: numbers[5], High: numbers[6]}})
	}
	return out, nil
}

// Describe returns a sentence on how often the group is wrong.
func (m MistakeGroup) Describe() string {
	percent := func(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) }
	text := fmt.Sprintf("Of its %d samples that are right without %s, %s %% [%s, %s] are wrong with it", m.N, m.Transform, percent(m.Share.Mean), percent(m.Share.Low), percent(m.Share.High))
	switch {
	case m.Kind == Changed:
		text = fmt.Sprintf("Of its %d samples %s %% [%s, %s] of the boxes or of the regions of classes change under %s", m.N, percent(m.Share.Mean), percent(m.Share.Low), percent(m.Share.High), m.Transform)
	case m.Column == ClassPair:
		text = fmt.Sprintf("Of the %d samples of this label that are right without %s, %s %% [%s, %s] become this class", m.N, m.Transform, percent(m.Share.Mean), percent(m.Share.Low), percent(m.Share.High))
	}
	if !math.IsNaN(m.Gap.Mean) {
		text += fmt.Sprintf(", %s points [%s, %s] more than of the others", percent(m.Gap.Mean), percent(m.Gap.Low), percent(m.Gap.High))
	}
	return text + "."
}
