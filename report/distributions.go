package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// A Distribution says how the values of a statistic are spread over samples or over the units of a
// layer: a histogram.
type Distribution struct {
	Subject
	// Ends of the bins; the same for all models and transformations, so that they can be laid over
	// each other.
	Low, High float64
	Counts    []int // of bins of equal width; what lies at the upper end belongs to the last one
	Mean      float64
}

// A Subject is what a distribution is of.
type Subject struct {
	Of        string // what has a value each: "sample", "unit"
	Model     string
	Layer     string // "" for the whole model
	Data      string
	Transform string
	Parameter string
	Measure   string
	Factor    string
	Statistic string
}

const (
	bins              = 40
	mostDistributions = 3000
)

// A Values hands over values one by one, each with what it belongs to.
type Values func(each func(Subject, float64)) error

// Distribute counts values, which it walks through twice: to find the ends of the bins, and to
// count. Values that are not finite are left out. It keeps the first subjects where there are more
// than a page can hold, and says so.
func Distribute(values Values) (found []Distribution, notes []string, err error) {
	type scale struct{ of, measure, statistic, layer string }
	scaleOf := func(s Subject) scale { return scale{s.Of, s.Measure, s.Statistic, s.Layer} }
	ends := map[scale][2]float64{}
	place := map[Subject]int{}
	tooMany := false
	err = values(func(s Subject, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		if _, known := place[s]; !known {
			if len(place) == mostDistributions {
				tooMany = true
				return
			}
			place[s] = len(found)
			found = append(found, Distribution{Subject: s, Counts: make([]int, bins)})
		}
		e, known := ends[scaleOf(s)]
		if !known {
			e = [2]float64{v, v}
		}
		ends[scaleOf(s)] = [2]float64{min(e[0], v), max(e[1], v)}
	})
	if err != nil {
		return nil, nil, err
	}
	for i := range found {
		e := ends[scaleOf(found[i].Subject)]
		found[i].Low, found[i].High = widened(e[0], e[1])
	}
	err = values(func(s Subject, v float64) {
		if i, known := place[s]; known && !math.IsNaN(v) && !math.IsInf(v, 0) {
			found[i].count(v)
		}
	})
	for i := range found {
		found[i].Mean /= float64(found[i].n())
	}
	if tooMany {
		notes = append(notes, fmt.Sprintf("the report shows the distributions of the first %s of what has values for each sample", Count(mostDistributions)))
	}
	return found, notes, err
}

// widened gives bins a width where all values are the same, and the interval from 0 to 1 to what
// nearly fills it.
func widened(low, high float64) (float64, float64) {
	if low >= 0 && high <= 1 && high > 0.5 {
		return 0, 1
	}
	if low == high {
		return low - 0.5, high + 0.5
	}
	return low, high
}

func (d *Distribution) count(v float64) {
	at := int(bins * (v - d.Low) / (d.High - d.Low))
	d.Counts[min(max(at, 0), bins-1)]++
	d.Mean += v
}

func (d *Distribution) n() int {
	n := 0
	for _, c := range d.Counts {
		n += c
	}
	return n
}

// readSamples reads how the per-sample values of a run are spread, from samples.parquet in its
// folder; none where there is no such file.
func readSamples(root *os.Root) ([]Distribution, []string, error) {
	return distributeFile(root, "samples.parquet", func(f io.ReaderAt, size int64) Values {
		return func(each func(Subject, float64)) error {
			return scores.ReadSamples(f, size, func(r scores.SampleRow) {
				each(Subject{Of: "sample", Model: r.Model, Layer: r.Layer, Data: r.Data, Transform: r.Transform, Parameter: r.Parameter,
					Measure: r.Measure, Statistic: r.Statistic}, r.Value)
			})
		}
	})
}

// distributeFile counts the values of a file in a run folder.
func distributeFile(root *os.Root, name string, values func(f io.ReaderAt, size int64) Values) (found []Distribution, notes []string, err error) {
	err = readFile(root, name, func(f io.ReaderAt, size int64) error {
		found, notes, err = Distribute(values(f, size))
		return err
	})
	return found, notes, err
}

// readFile reads a file of a run folder, if there is one.
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

// Quantile returns the value below which a share of the values lies, as near as the bins tell.
func (d *Distribution) Quantile(share float64) float64 {
	step := (d.High - d.Low) / float64(len(d.Counts))
	left := share * float64(d.n())
	for i, c := range d.Counts {
		if c > 0 && left <= float64(c) {
			return d.Low + (float64(i)+left/float64(c))*step
		}
		left -= float64(c)
	}
	return d.High
}

// Sentence says where the values of a distribution lie.
func (d *Distribution) Sentence() string {
	name := strings.Join(nonEmpty(d.Model, d.Transform), " under ")
	return fmt.Sprintf("%s has its mean at %s, and half of its %ss lie between %s and %s.", Shorten(name, longestName), Number(d.Mean), d.Of,
		Number(d.Quantile(0.25)), Number(d.Quantile(0.75)))
}

// MiddleUnits says, for each distribution over the units of a layer, at which layer of its model
// the middle unit is highest and lowest. It is "" for others.
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
		at := func(i int) string {
			return fmt.Sprintf("%s (%s)", Shorten(strings.TrimSuffix(all[i].Layer, exported), longestName), Number(all[i].Quantile(0.5)))
		}
		for _, i := range group {
			out[i] = fmt.Sprintf("The middle unit is highest at %s and lowest at %s.", at(high), at(low))
		}
	}
	return out
}
