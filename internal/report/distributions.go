package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/scores"
)

// A Distribution is a histogram of the values of a statistic over samples or over the units of a
// layer.
type Distribution struct {
	Subject
	// Range of the bins. It is the same for all models and transformations, so that histograms can
	// be overlaid.
	Low, High float64
	Counts    []int // values per bin, for bins of equal width; the last one includes its upper end
	Mean      float64
}

// A Subject identifies what a distribution describes.
type Subject struct {
	Of        string // "sample" if each sample has a value, or "unit" if each unit of a layer has one
	Model     string
	Layer     string // "" for the whole model
	Data      string
	Transform string
	Parameter string // value of the transformation's parameter
	Measure   string
	Factor    string
	Statistic string
}

const (
	bins             = 40   // of a histogram
	maxDistributions = 3000 // in a report, which is one page
)

// A Values function calls each with every value and its subject.
type Values func(each func(Subject, float64)) error

// Distribute computes histograms in two passes over the values: it finds the range of the bins,
// then counts. Values that are not finite are ignored. If there are more subjects than a page can
// hold, a sample of them is returned with an Omission for each measure. Of each model, data set,
// transformation, factor and statistic the sample has an even share, spread over layers and values
// of the parameter.
func Distribute(values Values) (found []Distribution, omitted []Omission, err error) {
	// A scale is what the histograms with one range of bins share.
	type scale struct{ of, measure, statistic, layer string }
	scaleOf := func(s Subject) scale { return scale{s.Of, s.Measure, s.Statistic, s.Layer} }
	ranges := map[scale]*[2]float64{}
	index := map[Subject]int{}
	var last Subject // of the value before, often the same
	var ends *[2]float64
	err = values(func(s Subject, v float64) {
		if !finite(v) {
			return
		}
		if s != last || ends == nil {
			last = s
			if _, known := index[s]; !known {
				index[s] = len(found)
				found = append(found, Distribution{Subject: s})
			}
			if ends = ranges[scaleOf(s)]; ends == nil {
				ends = &[2]float64{v, v}
				ranges[scaleOf(s)] = ends
			}
		}
		ends[0], ends[1] = min(ends[0], v), max(ends[1], v)
	})
	if err != nil {
		return nil, nil, err
	}
	found, omitted = sampleEvenly(found, maxDistributions)
	clear(index)
	for i := range found {
		index[found[i].Subject] = i
		found[i].Counts = make([]int, bins)
		ends := ranges[scaleOf(found[i].Subject)]
		found[i].Low, found[i].High = widenRange(ends[0], ends[1])
	}
	at, shown := index[last]
	err = values(func(s Subject, v float64) {
		if s != last {
			at, shown = index[s]
			last = s
		}
		if shown && finite(v) {
			found[at].count(v)
		}
	})
	for i := range found {
		found[i].Mean /= float64(found[i].N())
	}
	return found, omitted, err
}

// An Omission says how many distributions of a measure are shown.
type Omission struct {
	Measure      string
	Shown, Total int
}

// String returns a sentence without its full stop.
func (o Omission) String() string {
	return fmt.Sprintf("%s of %s distributions are shown, an even sample over layers and values", Count(o.Shown), Count(o.Total))
}

// sampleEvenly returns at most n distributions: of each group that a chart can show side by side an
// even share, evenly spaced within the group.
func sampleEvenly(all []Distribution, n int) (kept []Distribution, omitted []Omission) {
	if len(all) <= n {
		return all, nil
	}
	groupOf := func(d Distribution) string {
		return strings.Join([]string{d.Of, d.Measure, d.Statistic, d.Model, d.Data, d.Transform, d.Factor}, "\x00")
	}
	groups := groupedBy(all, groupOf)
	if len(groups) > n {
		groups = evenly(groups, n)
	}
	total, shown := map[string]int{}, map[string]int{}
	var order []string
	for _, d := range all {
		if total[d.Measure]++; total[d.Measure] == 1 {
			order = append(order, d.Measure)
		}
	}
	// Small groups are shown whole, and leave room to the others.
	slices.SortStableFunc(groups, func(a, b []Distribution) int { return len(a) - len(b) })
	chosen := map[Subject]bool{}
	for i, of := range groups {
		for _, d := range evenly(of, max(1, (n-len(chosen))/(len(groups)-i))) {
			chosen[d.Subject] = true
			shown[d.Measure]++
		}
	}
	kept = slices.DeleteFunc(slices.Clone(all), func(d Distribution) bool { return !chosen[d.Subject] })
	for _, m := range order {
		if shown[m] < total[m] {
			omitted = append(omitted, Omission{m, shown[m], total[m]})
		}
	}
	return kept, omitted
}

// evenly returns n items that are evenly spaced, or all if there are fewer.
func evenly[T any](items []T, n int) []T {
	if len(items) <= n {
		return items
	}
	out := make([]T, n)
	for i := range out {
		out[i] = items[i*(len(items)-1)/max(1, n-1)]
	}
	return out
}

// widenRange returns the range of the bins: [0, 1] for values within it whose largest exceeds 0.5,
// a range of length 1 if all values are equal, otherwise the range of the values.
func widenRange(low, high float64) (float64, float64) {
	if low >= 0 && high <= 1 && high > 0.5 {
		return 0, 1
	}
	if low == high {
		return low - 0.5, high + 0.5
	}
	return low, high
}

// count adds a value to its bin. Mean holds the sum of the values until all are counted.
func (d *Distribution) count(v float64) {
	bin := int(bins * (v - d.Low) / (d.High - d.Low))
	d.Counts[min(max(bin, 0), bins-1)]++
	d.Mean += v
}

// N returns the number of values.
func (d *Distribution) N() int {
	n := 0
	for _, c := range d.Counts {
		n += c
	}
	return n
}

// readSamples returns the distributions of the per-sample values in samples.parquet of a run
// folder, and adds the values of samples on contact sheets to sheets. There are none if the file
// does not exist.
func readSamples(root *os.Root, sheets *sheetValues) ([]Distribution, []Omission, error) {
	return distributeFile(root, "samples.parquet", func(f io.ReaderAt, size int64) Values {
		return func(each func(Subject, float64)) error {
			sheets.values = nil // Distribute reads the file twice
			return parquetfile.ReadSamples(f, size, func(r scores.SampleRow) {
				sheets.add(&r)
				if strings.HasPrefix(r.Statistic, "predicted-") { // classes, which are no quantities
					return
				}
				if r.OtherModel != "" { // a comparison of two models
					r.Model += " → " + r.OtherModel
				}
				each(Subject{Of: "sample", Model: r.Model, Layer: r.Layer, Data: r.Data, Transform: r.Transform, Parameter: r.Parameter,
					Measure: r.Measure, Statistic: r.Statistic}, r.Value)
			})
		}
	})
}

// distributeFile returns the distributions of the values in a file of a run folder.
func distributeFile(root *os.Root, name string, values func(f io.ReaderAt, size int64) Values) (found []Distribution, omitted []Omission, err error) {
	err = readFile(root, name, func(f io.ReaderAt, size int64) error {
		found, omitted, err = Distribute(values(f, size))
		return err
	})
	return found, omitted, err
}

// readFile opens a file of a run folder and passes it to read. A missing file is not an error.
func readFile(root *os.Root, name string, read func(f io.ReaderAt, size int64) error) error {
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer f.Close()
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil {
			err = read(f, info.Size())
		}
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// Quantile returns the value below which the given share of the values lies, with the resolution of
// the bins.
func (d *Distribution) Quantile(share float64) float64 {
	step := (d.High - d.Low) / float64(len(d.Counts))
	left := share * float64(d.N())
	for i, c := range d.Counts {
		if c > 0 && left <= float64(c) {
			return d.Low + (float64(i)+left/float64(c))*step
		}
		left -= float64(c)
	}
	return d.High
}

// Sentence returns a sentence on the mean and the quartiles.
func (d *Distribution) Sentence() string {
	name := strings.Join(nonEmpty(d.Model, d.Transform), " under ")
	return fmt.Sprintf("%s has its mean at %s, and half of its %ss lie between %s and %s.", Shorten(name, maxNameWidth), Number(d.Mean), d.Of,
		Number(d.Quantile(0.25)), Number(d.Quantile(0.75)))
}

// MiddleUnits returns a sentence for each distribution over the units of a layer: at which layers
// of its model the median unit is highest and lowest. It is "" for other distributions.
func MiddleUnits(all []Distribution) []string {
	out := make([]string, len(all))
	var units []int
	for i, d := range all {
		if d.Of == "unit" {
			units = append(units, i)
		}
	}
	subject := func(i int) string {
		s := all[i].Subject
		s.Layer = ""
		return fmt.Sprint(s)
	}
	for _, group := range groupedBy(units, subject) {
		high, low := group[0], group[0]
		for _, i := range group {
			if all[i].Quantile(0.5) > all[high].Quantile(0.5) {
				high = i
			}
			if all[i].Quantile(0.5) < all[low].Quantile(0.5) {
				low = i
			}
		}
		describe := func(i int) string {
			return fmt.Sprintf("%s (%s)", Shorten(strings.TrimSuffix(all[i].Layer, exportSuffix), maxNameWidth), Number(all[i].Quantile(0.5)))
		}
		for _, i := range group {
			out[i] = fmt.Sprintf("The middle unit is highest at %s and lowest at %s.", describe(high), describe(low))
		}
	}
	return out
}
