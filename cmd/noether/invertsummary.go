package main

import (
	"context"
	"fmt"
	"io"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/tensor"
)

type inversionSummary struct {
	Model     string            `json:"model"`
	SHA256    string            `json:"sha256"`
	Layer     string            `json:"layer"`
	Against   string            `json:"against,omitempty"`      // path of the second model
	Other     string            `json:"againstLayer,omitempty"` // its layer
	Data      string            `json:"data"`
	Start     string            `json:"start"` // what the search starts from, such as noise
	Optimiser string            `json:"optimiser"`
	Steps     int               `json:"steps"`
	StepSize  float64           `json:"stepSize"`
	Norm      string            `json:"norm,omitempty"`   // l2 or linf, of x' - x; "": not bounded
	Radius    float64           `json:"radius,omitempty"` // bound on that norm
	Seed      uint64            `json:"seed"`
	Samples   []sampleInversion `json:"samples"`
}

// A sampleInversion is the result for one image. Distances are l2; relative ones are divided by the
// norm of the representation of x. A distance that is not finite is 0, and relative null.
type sampleInversion struct {
	Name          string   `json:"name"`
	Index         int      `json:"index"` // of the image in the data
	Label         *int     `json:"label,omitempty"`
	Distance      float64  `json:"distance"`
	Relative      *float64 `json:"relativeDistance"`
	OtherRelative *float64 `json:"againstRelativeDistance,omitempty"` // in the second model
	Input         float64  `json:"inputDistance"`                     // |x - x'|_2
	Dropped       bool     `json:"dropped,omitempty"`                 // the loss or a gradient became NaN or infinite
}

// caption returns the title and the caption of the contact sheet in a report.
func (s *inversionSummary) caption() report.ImageText {
	model := fileName(s.Model)
	what := fmt.Sprintf("Each x beside an x' that %s maps to the same representation at %s, found from %s in %s.", model, s.Layer, s.Start, plural.Of(s.Steps, "step"))
	if s.Against != "" {
		what = fmt.Sprintf("Each x beside an x' with the same representation in %s at %s and a different one in %s.", model, s.Layer, fileName(s.Against))
	}
	// A report shows the image with the scores of stir.
	return report.ImageText{Title: "Inversions of " + model, Caption: what + " Image content that the layer ignores stays as in the start image.", Model: model, Measure: "stir"}
}

// summarise computes the distances of the found images from x.
func (f *invertFlags) summarise(ctx context.Context, path string, objective invert.Distances, samples []dataset.Sample, x tensor.Tensor, found *invert.Result) (*inversionSummary, error) {
	o, err := f.options.WithDefaults()
	if err != nil {
		return nil, err
	}
	s := &inversionSummary{Model: path, SHA256: objective[0].Model.SHA256(), Layer: objective[0].Layer.Name, Data: f.data, Start: f.start,
		Optimiser: string(o.Optimiser), Steps: o.Steps, StepSize: o.StepSize, Norm: string(o.Ball.Norm), Radius: o.Ball.Radius, Seed: f.seed}
	if len(objective) > 1 {
		s.Against, s.Other = f.against, objective[1].Layer.Name
	}
	for i, sample := range samples {
		one := sampleInversion{Name: sample.Name, Index: sample.Index, Input: tensor.Distance(x.At(i).Data, found.Images.At(i).Data)}
		if sample.Label != dataset.NoLabel {
			one.Label = &samples[i].Label
		}
		s.Samples = append(s.Samples, one)
	}
	for _, i := range found.Dropped {
		s.Samples[i].Dropped = true
	}
	for k, term := range objective {
		want, err := invert.Represent(ctx, term.Model, term.Layer, x)
		if err != nil {
			return nil, err
		}
		got, err := invert.Represent(ctx, term.Model, term.Layer, found.Images)
		if err != nil {
			return nil, err
		}
		for i := range s.Samples {
			one := &s.Samples[i]
			d, norm := tensor.Distance(want.At(i).Data, got.At(i).Data), tensor.Norm(want.At(i).Data)
			var relative *float64
			if r := d / norm; finite(r) {
				relative = &r
			}
			if k > 0 {
				one.OtherRelative = relative
				continue
			}
			one.Relative = relative
			if finite(d) {
				one.Distance = d
			}
		}
	}
	return s, nil
}

func (s *inversionSummary) print(w io.Writer, folder string) error {
	t := newTable(w)
	fmt.Fprint(t, "image\tdistance\trelative\tfrom x\t")
	if s.Against != "" {
		fmt.Fprint(t, "relative, against\t")
	}
	fmt.Fprintln(t)
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf("%.4g", *v)
	}
	dropped := 0
	for _, one := range s.Samples {
		if one.Dropped {
			dropped++
			t.printf("%s\tdropped: NaN or infinity\t\t\t\n", one.Name)
			continue
		}
		t.printf("%s\t%.4g\t%s\t%.4g\t", one.Name, one.Distance, number(one.Relative), one.Input)
		if s.Against != "" {
			t.printf("%s\t", number(one.OtherRelative))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if dropped > 0 {
		fmt.Fprintf(w, "warning: %d of %s dropped\n", dropped, plural.Of(len(s.Samples), "image"))
	}
	_, err := fmt.Fprintf(w, "wrote %s: contact.png, contact.json, x.npy, inverted.npy, distances.npy, summary.json\n", folder)
	return err
}
