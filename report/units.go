package report

import (
	"fmt"
	"os"

	"github.com/noether-ml/noether/scores"
)

// ReadUnits reads how the scores of single units are spread within each layer, from the file units.parquet; none where there is no
// such file. Units are shown beneath the statistic of the layer that sums them up.
func ReadUnits(file string) ([]Distribution, []string, error) {
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	found, notes, err := Distribute(func(each func(Subject, float64)) error {
		return scores.ReadUnits(f, info.Size(), func(r scores.UnitRow) {
			s := Subject{Of: "unit", Model: r.Model, Layer: r.Layer, Data: r.Data, Transform: r.Transform, Measure: r.Measure, Factor: r.Factor}
			for _, v := range unitValues(r) {
				s.Statistic = v.statistic
				each(s, v.value)
			}
		})
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return found, notes, nil
}

type unitValue struct {
	statistic string // of the layer
	value     float64
}

func unitValues(r scores.UnitRow) []unitValue {
	return []unitValue{
		{"invariance", r.Score}, {"local-rate", r.Local}, {"global-rate", r.Global}, {"normalised-variance", r.NormalisedVariance},
		{"same-equivariance", r.SameEquivariance}, {"goodfellow-normal", r.GoodfellowNormal}, {"mutual-information", r.MutualInformation},
		{"transformational-variance", r.TransformationalVariance}, {"sample-variance", r.SampleVariance},
	}
}
