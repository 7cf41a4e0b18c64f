package parquetfile

import (
	"io"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// parquetOrigin holds the columns that identify the layer, data and measure of a unit. The tag dict
// asks for a dictionary encoding.
type parquetOrigin struct {
	Study     string `parquet:"study,dict"`
	Model     string `parquet:"model,dict"`
	Layer     string `parquet:"layer,dict"`
	Depth     *int64 `parquet:"depth"`
	Data      string `parquet:"data,dict"`
	Transform string `parquet:"transform,dict"`
	Trial     *int64 `parquet:"trial"`
	Measure   string `parquet:"measure,dict"`
	Factor    string `parquet:"factor,dict"`
}

// parquetUnit is a row of units.parquet. Numbers that do not apply are nil. Trajectories are an
// input with its transformed versions.
type parquetUnit struct {
	parquetOrigin
	Unit                     int64    `parquet:"unit"`
	Channel                  *int64   `parquet:"channel"`
	Row                      *int64   `parquet:"row"`
	Column                   *int64   `parquet:"column"`
	Sign                     int64    `parquet:"sign"`                      // 1: the unit fires at high values; -1: at low values
	Threshold                *float64 `parquet:"threshold"`                 // value at which it fires
	GlobalRate               *float64 `parquet:"global_rate"`               // fraction of the inputs at which it fires
	LocalRate                *float64 `parquet:"local_rate"`                // fraction of the steps of trajectories around its strongest inputs at which it fires
	Score                    *float64 `parquet:"score"`                     // LocalRate / GlobalRate
	Null                     *float64 `parquet:"null"`                      // Score around random inputs
	Selective                bool     `parquet:"selective"`                 // not constant on the inputs
	Strongest                int64    `parquet:"strongest"`                 // index of its strongest input
	TransformationalVariance *float64 `parquet:"transformational_variance"` // mean over inputs of the standard deviation on the trajectory
	SampleVariance           *float64 `parquet:"sample_variance"`           // mean over steps of trajectories of the standard deviation over inputs
	NormalisedVariance       *float64 `parquet:"normalised_variance"`       // TransformationalVariance / SampleVariance
	SameEquivariance         *float64 `parquet:"same_equivariance"`         // the same after the inverse transformation of each feature map
	GoodfellowNormal         *float64 `parquet:"goodfellow_normal"`         // LocalRate / GlobalRate with a threshold of a normal distribution
	MutualInformation        *float64 `parquet:"mutual_information"`        // between firing and the class of the input, in nats
}

// NewUnitWriter returns a writer of unit rows to w.
func NewUnitWriter(w io.Writer) *RowWriter[scores.UnitRow] {
	return newRowWriter(w, func(r scores.UnitRow) parquetUnit {
		return parquetUnit{
			parquetOrigin{r.Study, r.Model, r.Layer, nullInt(r.Depth), r.Data, r.Transform, nullInt(r.Trial), r.Measure, r.Factor},
			int64(r.Unit), nullInt(r.Channel), nullInt(r.Row), nullInt(r.Column), int64(r.Sign), nullFloat(r.Threshold),
			nullFloat(r.Global), nullFloat(r.Local), nullFloat(r.Score), nullFloat(r.Null), r.Selective, int64(r.Strongest),
			nullFloat(r.TransformationalVariance), nullFloat(r.SampleVariance), nullFloat(r.NormalisedVariance),
			nullFloat(r.SameEquivariance), nullFloat(r.GoodfellowNormal), nullFloat(r.MutualInformation),
		}
	})
}

// ReadUnits reads a file of unit rows of the given size in bytes and calls each with every row in
// order.
func ReadUnits(r io.ReaderAt, size int64, each func(scores.UnitRow)) error {
	return readParquet(r, size, scores.UnitColumns, func(p parquetUnit) {
		each(scores.UnitRow{Study: p.Study, Model: p.Model, Layer: p.Layer, Depth: intOrNone(p.Depth), Data: p.Data, Transform: p.Transform, Trial: intOrNone(p.Trial), Measure: p.Measure,
			UnitScore: measure.UnitScore{
				Factor: p.Factor, Unit: int(p.Unit), Channel: intOrNone(p.Channel), Row: intOrNone(p.Row), Column: intOrNone(p.Column),
				Sign: int(p.Sign), Threshold: floatOr(p.Threshold), Global: floatOr(p.GlobalRate), Local: floatOr(p.LocalRate),
				Score: floatOr(p.Score), Null: floatOr(p.Null), Selective: p.Selective, Strongest: int(p.Strongest),
				TransformationalVariance: floatOr(p.TransformationalVariance), SampleVariance: floatOr(p.SampleVariance),
				NormalisedVariance: floatOr(p.NormalisedVariance), SameEquivariance: floatOr(p.SameEquivariance),
				GoodfellowNormal: floatOr(p.GoodfellowNormal), MutualInformation: floatOr(p.MutualInformation),
			}})
	})
}

type parquetCurve struct {
	parquetOrigin
	Unit      int64   `parquet:"unit"`
	Sign      int64   `parquet:"sign"`
	Threshold float64 `parquet:"threshold"`
	Strongest int64   `parquet:"strongest"`
	Step      int64   `parquet:"step"`   // number of the point, from 0
	Amount    float64 `parquet:"amount"` // value of the transformation's parameter
	Value     float64 `parquet:"value"`  // of the unit
}

// NewCurveWriter returns a writer of tuning curves to w.
func NewCurveWriter(w io.Writer) *RowWriter[scores.CurveRow] {
	return newRowWriter(w, func(r scores.CurveRow) parquetCurve {
		return parquetCurve{
			parquetOrigin{r.Study, r.Model, r.Layer, nullInt(r.Depth), r.Data, r.Transform, nullInt(r.Trial), r.Measure, r.Factor},
			int64(r.Unit), int64(r.Sign), r.Threshold, int64(r.Strongest), int64(r.Step), r.Amount, r.Value,
		}
	})
}

// ReadCurves reads a file of tuning curves of the given size in bytes and calls each with every row
// in order.
func ReadCurves(r io.ReaderAt, size int64, each func(scores.CurveRow)) error {
	return readParquet(r, size, scores.CurveColumns, func(p parquetCurve) {
		each(scores.CurveRow{Study: p.Study, Model: p.Model, Layer: p.Layer, Depth: intOrNone(p.Depth), Data: p.Data, Transform: p.Transform, Trial: intOrNone(p.Trial), Measure: p.Measure,
			UnitResponse: measure.UnitResponse{Factor: p.Factor, Unit: int(p.Unit), Sign: int(p.Sign), Threshold: p.Threshold, Strongest: int(p.Strongest),
				Step: int(p.Step), Amount: p.Amount, Value: p.Value}})
	})
}
