// Package stranger is a measure that is written outside of Noether's module.
package stranger

import (
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/paired"
)

// SignAgreement returns a measure of the fraction of a layer's values that keep their sign.
func SignAgreement() measure.Measure {
	return paired.New(paired.Spec{
		Descriptor: measure.Descriptor{
			Name: "sign-agreement", Title: "Sign agreement", Level: measure.LayerLevel, Resampled: "sample",
			Question: "How many values of a layer keep their sign when the input is transformed?",
			Reading:  "1: all do. The null is the agreement of unrelated samples.",
			Statistics: []measure.StatisticDescriptor{{
				Name: "agreement", Title: "agreement of signs", About: "The fraction of values with the same sign.",
				Range: measure.Range{Low: 0, High: 1}, Direction: measure.Higher, Null: "shuffled pairs", PerSample: true,
			}},
		},
		Version: 1, StateVersion: 1, Settings: struct{}{}, Needs: measure.Needs{Transformed: true},
		Columns: []paired.Column{{Statistic: "agreement", Sample: "agreement", Transformed: true}},
		Pair: func(out []float64, _ int, clean, transformed []float32) error {
			same := 0
			for i, v := range clean {
				if (v > 0) == (transformed[i] > 0) {
					same++
				}
			}
			out[0] = float64(same) / float64(len(clean))
			return nil
		},
	})
}
