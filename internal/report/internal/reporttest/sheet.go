package reporttest

import "github.com/noether-ml/noether/scores"

// SampleSheet returns a sample sheet of 12 samples, chosen among 500 (Of), of 4 classes under the
// transformation with the given index in the generated run f. Its Parameters are values, or ""
// alone without values. Sample i is of class i mod 4, and its value falls with i. At the last
// parameter, model m classifies all samples from 6 + 2m on wrongly, and their values are 0. A lower
// value means a larger change (Lower). If there are two models, model 0 classifies some samples
// wrongly that model 1 classifies correctly (Partings).
func (f FakeRun) SampleSheet(transform int, values ...string) scores.SampleSheet {
	if len(values) == 0 {
		values = []string{""}
	}
	s := scores.SampleSheet{Data: f.Name("data", 0), Transform: f.Name("transform", transform), Parameters: values, Of: 500,
		Measure: "effective-invariance", Statistic: "ei", Title: "effective invariance", Lower: true}
	const samples, classes = 12, 4
	for c := range classes {
		s.Classes = append(s.Classes, f.Name("class", c))
	}
	for i := range samples {
		s.Samples = append(s.Samples, scores.SheetSample{Index: 100 + i, Name: f.Name("sample", i), Label: i % classes})
	}
	for m := range f.Models {
		model := scores.SheetModel{Model: f.Name("model", m), Right: 400, Labelled: 500}
		for i := range samples {
			model.Clean, model.Confidence = append(model.Clean, i%classes), append(model.Confidence, 0.9)
		}
		for c := range classes {
			model.ByClass = append(model.ByClass, scores.ByClass{Class: c, N: 125, Right: 100})
			model.Confusion = append(model.Confusion, [3]int{c, c, 100}, [3]int{c, (c + 1) % classes, 25})
		}
		for k := range values {
			// The predictions under one value of the parameter, and counts over all 500 samples.
			v := scores.SheetView{Changed: 150 + 50*k - 20*m, Failed: 120 + 40*k - 10*m, Mean: 0.6 - 0.1*float64(k) + 0.05*float64(m)}
			for i := range samples {
				wrong := k == len(values)-1 && i >= 6+2*m
				class, value := i%classes, float32(0.9)-0.02*float32(i)
				if wrong {
					class, value = (i+1)%classes, 0
				}
				v.Moved, v.Confidence, v.Value = append(v.Moved, class), append(v.Confidence, 0.5+0.04*float32(i)), append(v.Value, value)
			}
			for c := range classes {
				right := 90 - 15*c - 10*k
				v.ByClass = append(v.ByClass, scores.ByClass{Class: c, N: 125, Right: right, Mean: 0.7 - 0.1*float64(c)})
				v.Confusion = append(v.Confusion, [3]int{c, c, right}, [3]int{c, (c + 1) % classes, 125 - right})
			}
			model.Views = append(model.Views, v)
		}
		for i := range 6 {
			model.Most, model.Least = append(model.Most, samples-1-i), append(model.Least, i)
		}
		for i := samples - 1; i >= 6+2*m; i-- {
			model.Fails = append(model.Fails, i)
		}
		s.Models = append(s.Models, model)
	}
	for l := range 2 {
		p := scores.Projection{Model: f.Name("model", 0), Layer: f.Name("layer", l), Depth: 3 + 5*l}
		for k := range values {
			var v scores.ProjectionView
			for i := range samples {
				v.Clean = append(v.Clean, [2]float32{float32(i), float32(l)})
				v.Moved = append(v.Moved, [2]float32{float32(i), float32(l + k + 1)})
			}
			p.Views = append(p.Views, v)
		}
		s.Projections = append(s.Projections, p)
	}
	s.Projected = s.Samples
	counts := make([]int, len(values))
	counts[len(values)-1] = 37
	if f.Models > 1 {
		s.Partings = []scores.Parting{{A: 1, B: 0, Counts: counts, Samples: []int{6, 7}}}
	}
	return s
}
