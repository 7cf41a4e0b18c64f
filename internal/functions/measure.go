package functions

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/paired"
)

// MeasureSettings configure the measure of Python's functions.
type MeasureSettings struct {
	Function  string   `key:"function" json:"function,omitempty" doc:"package.module:function, which noether run --allow-python calls. A run appends @ and a hash of its source code. The name of the function is that of a statistic"`
	Functions []string `key:"functions" json:"functions,omitempty" doc:"several such functions; or names under which noether_ml.measure serves them, each of which ends in a hyphen and a hash"`
}

func (s MeasureSettings) all() []string {
	if s.Function != "" {
		return append([]string{s.Function}, s.Functions...)
	}
	return s.Functions
}

// MeasureDescriptor describes the measure without its statistics, whose names are those of its
// functions.
func MeasureDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "python", Title: "Functions of Python", Level: measure.LayerLevel, Resampled: "sample",
		Question: "What do functions of your own say of a layer's activations before and after the transformation?",
		Reading:  "Each statistic is the mean over samples of a function of two vectors, the activations z on x and z' on T(x). Compare it with the null, the same for unrelated samples.",
	}
}

// Measure returns the measure of functions of two vectors (see package paired), which the process
// at Variable computes for a batch at a time. Nothing is called before activations are measured.
func Measure(s MeasureSettings) (measure.Measure, error) {
	d := MeasureDescriptor()
	pair := &pairFunctions{}
	var columns []paired.Column
	if len(s.all()) == 0 {
		return nil, errNoFunction
	}
	for _, name := range s.all() {
		title := Title(name)
		if err := checkFunction(name); err != nil {
			return nil, err
		}
		d.Statistics = append(d.Statistics, measure.StatisticDescriptor{
			Name: title, Title: title, About: "Mean over samples of the function " + title + ".", Null: "shuffled pairs", PerSample: true,
			Range: measure.Range{Low: math.Inf(-1), High: math.Inf(1)},
		})
		columns = append(columns, paired.Column{Statistic: title, Sample: title, Transformed: true})
		pair.functions = append(pair.functions, &remote{use: Measures, name: name, inputs: 2})
	}
	return paired.New(paired.Spec{
		Descriptor: d, Version: 1, StateVersion: 1, Settings: s, Needs: measure.Needs{Transformed: true},
		Columns: columns, Pair: pair.pair, PairRows: pair.rows,
	}), nil
}

var errNoFunction = errors.New("function is missing: it is the name of a function, such as package.module:function")

func checkFunction(name string) error {
	if strings.ContainsAny(name, "/?#") || Title(name) == "" {
		return fmt.Errorf("%q names no function", name)
	}
	return nil
}

// Title returns the name of a function without its module and hash: the name of its statistic.
func Title(function string) string {
	title, _, _ := strings.Cut(function[strings.LastIndex(function, ":")+1:], "@")
	title, _, _ = strings.Cut(title, "-")
	return title
}

// pairFunctions are the functions whose values are the columns of a measure.
type pairFunctions struct {
	functions []*remote

	mutex sync.Mutex
	err   error // of the first call that failed
}

func (p *pairFunctions) pair(out []float64, _ int, clean, transformed []float32) error {
	for view, z := range map[string][]float32{"clean": clean, "transformed": transformed} {
		for _, v := range z {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return &measure.NonFinite{View: view}
			}
		}
	}
	if p.mutex.Lock(); p.err != nil { // of a call with several pairs
		defer p.mutex.Unlock()
		return p.err
	}
	p.mutex.Unlock()
	return p.call(out, clean, transformed, 1)
}

// rows implements paired.Spec.PairRows. The rows of shuffled pairs follow those of the samples'
// own.
func (p *pairFunctions) rows(own, shuffled []float64, previous, clean, transformed []float32) bool {
	n := len(own) / len(p.functions)
	width := len(clean) / n
	for _, z := range [][]float32{previous, clean, transformed} {
		for _, v := range z {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return false
			}
		}
	}
	if p.call(own, clean, transformed, n) != nil {
		return false // pair finds the error
	}
	if shuffled == nil {
		return true
	}
	if previous == nil { // the first has no shuffled pair
		if n == 1 {
			return true
		}
		return p.call(shuffled[len(p.functions):], clean[:(n-1)*width], transformed[width:], n-1) == nil
	}
	before := append(append(make([]float32, 0, len(clean)), previous...), clean[:(n-1)*width]...)
	return p.call(shuffled, before, transformed, n) == nil
}

// call writes the values of each pair to out, in the order of the functions.
func (p *pairFunctions) call(out []float64, clean, transformed []float32, n int) (err error) {
	defer func() {
		if p.mutex.Lock(); p.err == nil {
			p.err = err
		}
		p.mutex.Unlock()
	}()
	shape := []int{n, len(clean) / n}
	for k, f := range p.functions {
		values, err := f.call([]*engine.Array{{Shape: shape, Data: clean}, {Shape: shape, Data: transformed}}, "value")
		if err == nil && values.Len() != n {
			err = fmt.Errorf("function %s returns the shape %v for %d pairs of vectors: it must return a number for each; one for all is for python-set", f.name, values.Shape, n)
		}
		if err != nil {
			return err
		}
		for i, v := range values.Data {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("function %s returns NaN or infinity", f.name)
			}
			out[i*len(p.functions)+k] = float64(v)
		}
	}
	return nil
}
