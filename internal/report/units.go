package report

import (
	"io"
	"os"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/scores"
)

// readUnits returns the distributions of the scores of single units in each layer, from
// units.parquet, or none. They are shown below the layer statistic that summarises the units.
func readUnits(root *os.Root) ([]Distribution, []Omission, error) {
	return distributeFile(root, "units.parquet", func(f io.ReaderAt, size int64) Values {
		return func(each func(Subject, float64)) error {
			return parquetfile.ReadUnits(f, size, func(r scores.UnitRow) {
				s := Subject{Of: "unit", Model: r.Model, Layer: r.Layer, Data: r.Data, Transform: r.Transform, Measure: r.Measure, Factor: r.Factor}
				for _, v := range unitValues(r) {
					s.Statistic = v.statistic
					each(s, v.value)
				}
			})
		}
	})
}

type unitValue struct {
	statistic string // of the layer, which summarises the value over units
	value     float64
}

func unitValues(r scores.UnitRow) []unitValue {
	return []unitValue{
		{"invariance", r.Score}, {"local-rate", r.Local}, {"global-rate", r.Global}, {"normalised-variance", r.NormalisedVariance},
		{"same-equivariance", r.SameEquivariance}, {"goodfellow-normal", r.GoodfellowNormal}, {"mutual-information", r.MutualInformation},
		{"transformational-variance", r.TransformationalVariance}, {"sample-variance", r.SampleVariance},
	}
}
