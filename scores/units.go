package scores

import (
	"io"

	"github.com/noether-ml/noether/measure"
)

// A UnitRow describes one unit (one value of a layer: a channel at a position): a row of
// units.parquet. The embedded UnitScore holds the factor and the unit's statistics, and documents
// them; its field Layer is not used, because Layer here is the name of the layer.
type UnitRow struct {
	Study     string
	Model     string
	Layer     string
	Depth     int
	Data      string
	Transform string
	Trial     int
	Measure   string
	measure.UnitScore
}

// UnitColumns are the names of the columns in units.parquet, in order. They are a public contract.
var UnitColumns = []string{
	"study", "model", "layer", "depth", "data", "transform", "trial", "measure", "factor",
	"unit", "channel", "row", "column", "sign", "threshold", "global_rate", "local_rate", "score", "null", "selective", "strongest",
	"transformational_variance", "sample_variance", "normalised_variance", "same_equivariance", "goodfellow_normal", "mutual_information",
}

// parquetOrigin holds the columns that identify the layer, data and measure of a unit.
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

type parquetUnit struct {
	parquetOrigin
	Unit                     int64    `parquet:"unit"`
	Channel                  *int64   `parquet:"channel"`
	Row                      *int64   `parquet:"row"`
	Column                   *int64   `parquet:"column"`
	Sign                     int64    `parquet:"sign"`
	Threshold                *float64 `parquet:"threshold"`
	GlobalRate               *float64 `parquet:"global_rate"`
	LocalRate                *float64 `parquet:"local_rate"`
	Score                    *float64 `parquet:"score"`
	Null                     *float64 `parquet:"null"`
	Selective                bool     `parquet:"selective"`
	Strongest                int64    `parquet:"strongest"`
	TransformationalVariance *float64 `parquet:"transformational_variance"`
	SampleVariance           *float64 `parquet:"sample_variance"`
	NormalisedVariance       *float64 `parquet:"normalised_variance"`
	SameEquivariance         *float64 `parquet:"same_equivariance"`
	GoodfellowNormal         *float64 `parquet:"goodfellow_normal"`
	MutualInformation        *float64 `parquet:"mutual_information"`
}

// A UnitWriter writes unit rows as Parquet in batches, because a study may have many millions.
type UnitWriter struct{ rows parquetWriter[parquetUnit] }

// NewUnitWriter returns a UnitWriter that writes to w.
func NewUnitWriter(w io.Writer) *UnitWriter { return &UnitWriter{newParquetWriter[parquetUnit](w)} }

// Write appends a row.
func (u *UnitWriter) Write(r UnitRow) error {
	return u.rows.write(parquetUnit{
		parquetOrigin{r.Study, r.Model, r.Layer, nullInt(r.Depth), r.Data, r.Transform, nullInt(r.Trial), r.Measure, r.Factor},
		int64(r.Unit), nullInt(r.Channel), nullInt(r.Row), nullInt(r.Column), int64(r.Sign), nullFloat(r.Threshold),
		nullFloat(r.Global), nullFloat(r.Local), nullFloat(r.Score), nullFloat(r.Null), r.Selective, int64(r.Strongest),
		nullFloat(r.TransformationalVariance), nullFloat(r.SampleVariance), nullFloat(r.NormalisedVariance),
		nullFloat(r.SameEquivariance), nullFloat(r.GoodfellowNormal), nullFloat(r.MutualInformation),
	})
}

// Close writes buffered rows and the footer. It does not close the underlying writer.
func (u *UnitWriter) Close() error { return u.rows.close() }

// ReadUnits reads a file of the given size in bytes that a UnitWriter wrote and calls each with
// every row in order.
func ReadUnits(r io.ReaderAt, size int64, each func(UnitRow)) error {
	return readParquet(r, size, UnitColumns, func(batch []parquetUnit) {
		for _, p := range batch {
			each(UnitRow{p.Study, p.Model, p.Layer, intOr(p.Depth, NoDepth), p.Data, p.Transform, intOr(p.Trial, MeanOverTrials), p.Measure,
				measure.UnitScore{
					Factor: p.Factor, Unit: int(p.Unit), Channel: intOr(p.Channel, -1), Row: intOr(p.Row, -1), Column: intOr(p.Column, -1),
					Sign: int(p.Sign), Threshold: floatOr(p.Threshold), Global: floatOr(p.GlobalRate), Local: floatOr(p.LocalRate),
					Score: floatOr(p.Score), Null: floatOr(p.Null), Selective: p.Selective, Strongest: int(p.Strongest),
					TransformationalVariance: floatOr(p.TransformationalVariance), SampleVariance: floatOr(p.SampleVariance),
					NormalisedVariance: floatOr(p.NormalisedVariance), SameEquivariance: floatOr(p.SameEquivariance),
					GoodfellowNormal: floatOr(p.GoodfellowNormal), MutualInformation: floatOr(p.MutualInformation),
				}})
		}
	})
}

// A CurveRow is a point of the tuning curve of a unit, its mean response against the amount of a
// transformation: a row of curves.parquet. The embedded UnitResponse documents its fields.
type CurveRow struct {
	Study     string
	Model     string
	Layer     string
	Depth     int
	Data      string
	Transform string
	Trial     int
	Measure   string
	measure.UnitResponse
}

// CurveColumns are the names of the columns in curves.parquet, in order. They are a public
// contract.
var CurveColumns = []string{
	"study", "model", "layer", "depth", "data", "transform", "trial", "measure", "factor",
	"unit", "sign", "threshold", "strongest", "step", "amount", "value",
}

type parquetCurve struct {
	parquetOrigin
	Unit      int64   `parquet:"unit"`
	Sign      int64   `parquet:"sign"`
	Threshold float64 `parquet:"threshold"`
	Strongest int64   `parquet:"strongest"`
	Step      int64   `parquet:"step"`
	Amount    float64 `parquet:"amount"`
	Value     float64 `parquet:"value"`
}

// A CurveWriter writes tuning curves as Parquet.
type CurveWriter struct{ rows parquetWriter[parquetCurve] }

// NewCurveWriter returns a CurveWriter that writes to w.
func NewCurveWriter(w io.Writer) *CurveWriter {
	return &CurveWriter{newParquetWriter[parquetCurve](w)}
}

// Write appends a row.
func (c *CurveWriter) Write(r CurveRow) error {
	return c.rows.write(parquetCurve{
		parquetOrigin{r.Study, r.Model, r.Layer, nullInt(r.Depth), r.Data, r.Transform, nullInt(r.Trial), r.Measure, r.Factor},
		int64(r.Unit), int64(r.Sign), r.Threshold, int64(r.Strongest), int64(r.Step), r.Amount, r.Value,
	})
}

// Close writes buffered rows and the footer. It does not close the underlying writer.
func (c *CurveWriter) Close() error { return c.rows.close() }

// ReadCurves reads a file of the given size in bytes that a CurveWriter wrote and calls each with
// every row in order.
func ReadCurves(r io.ReaderAt, size int64, each func(CurveRow)) error {
	return readParquet(r, size, CurveColumns, func(batch []parquetCurve) {
		for _, p := range batch {
			each(CurveRow{p.Study, p.Model, p.Layer, intOr(p.Depth, NoDepth), p.Data, p.Transform, intOr(p.Trial, MeanOverTrials), p.Measure,
				measure.UnitResponse{Factor: p.Factor, Unit: int(p.Unit), Sign: int(p.Sign), Threshold: p.Threshold, Strongest: int(p.Strongest),
					Step: int(p.Step), Amount: p.Amount, Value: p.Value}})
		}
	})
}
