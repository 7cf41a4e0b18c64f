package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/papers/internal/tablefile"
	"github.com/noether-ml/noether/scores"
)

// statistics lists the statistics that the tables show, with their measures and titles. A study may
// lack some. P- and R-equivariance are the paper's names.
var statistics = []struct{ measure, statistic, title string }{
	{"informativeness", "rmse", "informativeness, RMSE"},
	{"informativeness", "accuracy", "informativeness, accuracy"},
	{"parameter-equivariance", "rmse", "P-equivariance, RMSE"},
	{"representation-equivariance", "cosine", "R-equivariance, cosine"},
	{"representation-equivariance", "gain", "R-equivariance, gain"},
	{"invariance", "cosine", "invariance, cosine"},
	{"disentanglement", "rmse-change", "disentanglement, increase of RMSE"},
	{"disentanglement", "accuracy-change", "disentanglement, decrease of accuracy"},
}

// An observation identifies what a row of the tables compares among the kinds of training.
type observation struct {
	axis string // title of the measure and its statistic
	what string // factor, transformation and probe, slp or mlp
}

// A sample holds the scores of the networks of one kind, and their nulls.
type sample struct {
	values tablefile.Sample
	nulls  []float64
}

// A table holds samples by observation and by kind of training.
type table struct {
	observations []observation
	kinds        []string
	samples      map[observation]map[string]*sample
}

// seedOf matches the seed in the name of a trained network, with the hyphens around it.
var seedOf = regexp.MustCompile(`-?\bseed-\d+-?`)

// kind returns the kind of training of a network that noether train named: the value of the setting
// that was varied besides the seed, or the name of the folder if only the seed was varied.
//
//	images/seed-1-augment-plain is of kind plain, adversarial/seed-2 of kind adversarial
func kind(model string) string {
	folder, training, _ := strings.Cut(model, "/")
	varied := seedOf.ReplaceAllString(training, "")
	if _, value, ok := strings.Cut(varied, "-"); ok {
		return value
	}
	return folder
}

// collect groups the scores of a study by observation and kind. Two scores of a network for one
// observation are an error, and so is a study without any of the statistics.
func collect(rows []scores.Row) (*table, error) {
	t := &table{samples: map[observation]map[string]*sample{}}
	for _, s := range statistics {
		for _, r := range rows {
			// Rows with a parameter are of one of its values, the others are means over all values.
			if r.Measure != s.measure || r.Statistic != s.statistic || r.Parameter != "" || math.IsNaN(r.Value) {
				continue
			}
			o := observation{s.title, what(r)}
			if t.samples[o] == nil {
				t.samples[o] = map[string]*sample{}
				t.observations = append(t.observations, o)
			}
			k := kind(r.Model)
			if t.samples[o][k] == nil {
				t.samples[o][k] = &sample{values: tablefile.Sample{}}
			}
			if !slices.Contains(t.kinds, k) {
				t.kinds = append(t.kinds, k)
			}
			one := t.samples[o][k]
			if _, ok := one.values[r.Model]; ok {
				return nil, fmt.Errorf("%s has two scores of %s, %s: the study must have one layer and one data set", r.Model, o.axis, o.what)
			}
			one.values[r.Model] = r.Value
			if !math.IsNaN(r.Null) {
				one.nulls = append(one.nulls, r.Null)
			}
		}
	}
	if len(t.observations) == 0 {
		return nil, errors.New("there are no scores of probes")
	}
	return t, nil
}

// what names the factor, the transformation and the probe of a score.
func what(r scores.Row) string {
	text := r.Factor
	if r.Transform != "" {
		if text != "" {
			text += " under "
		}
		text += r.Transform
	}
	if r.Variant != "" && r.Measure != "disentanglement" {
		text += ", " + r.Variant
	}
	return text
}

// write writes the tables of a study.
func write(folder string, rows []scores.Row) error {
	t, err := collect(rows)
	if err != nil {
		return err
	}
	name := filepath.Join(folder, rows[0].Study)
	if err := save(name+".csv", t.means()); err != nil {
		return err
	}
	return save(name+"-differences.csv", t.differences())
}

// means returns the mean score of each kind with its interval, and the mean null over all kinds.
func (t *table) means() [][]string {
	var out [][]string
	for _, o := range t.observations {
		var nulls []float64
		for _, k := range t.kinds {
			var values []float64
			if s := t.samples[o][k]; s != nil {
				values, nulls = s.values.Values(), append(nulls, s.nulls...)
			}
			mean, half := resample.Student(values)
			out = append(out, row(o, k, mean, half))
		}
		if len(nulls) > 0 {
			out = append(out, row(o, "null", stat.Mean(nulls, nil), math.NaN()))
		}
	}
	return out
}

// differences returns, for each kind but the first, the mean of its scores minus that of the first
// kind. For observations with both probes it also returns the mean of slp minus mlp, over the
// networks that have scores of both.
func (t *table) differences() [][]string {
	var out [][]string
	for _, o := range t.observations {
		first := t.samples[o][t.kinds[0]]
		for _, k := range t.kinds[1:] {
			d, half := math.NaN(), math.NaN()
			if s := t.samples[o][k]; s != nil && first != nil {
				d, half = resample.Welch(first.values.Values(), s.values.Values())
			}
			out = append(out, row(o, k+" - "+t.kinds[0], d, half))
		}
		what, slp := strings.CutSuffix(o.what, ", slp")
		mlp := t.samples[observation{o.axis, what + ", mlp"}]
		if !slp || mlp == nil {
			continue
		}
		var gaps []float64
		for k, s := range t.samples[o] {
			if mlp[k] != nil {
				gaps = append(gaps, s.values.Minus(mlp[k].values)...)
			}
		}
		slices.Sort(gaps) // so that the order of the map does not change the last digits
		mean, half := resample.Student(gaps)
		out = append(out, row(o, "slp - mlp", mean, half))
	}
	return out
}

// row returns a row of a table. column is a kind, or a difference.
func row(o observation, column string, value, half float64) []string {
	return append([]string{o.axis, o.what, column}, tablefile.Cells("%.3f", value, value-half, value+half)...)
}

// save writes a table in the format that papers/internal/results reads.
func save(file string, rows [][]string) error {
	return tablefile.Write(file, append([][]string{{"axis", "what", "statistic", "value", "low", "high"}}, rows...))
}
