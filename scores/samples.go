package scores

import (
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
)

// A SampleRow is the value of a statistic for one sample: a row of samples.parquet.
type SampleRow struct {
	Study     string
	Model     string
	Layer     string // "" for values of the whole model
	Data      string
	Transform string
	Parameter string // value of the transformation's parameter
	Trial     int    // which repetition of the random draws, from 0; or MeanOverTrials
	Measure   string
	Statistic string
	Index     int    // index of the sample in its data set
	Name      string // name of the sample
	Label     int    // class; negative if unknown
	Value     float64
	// OtherModel is the second model of a comparison, else "".
	OtherModel string
}

// SampleColumns are the names of the columns in samples.parquet, in order. They are a public
// contract. Files of earlier versions lack other_model.
var SampleColumns = []string{
	"study", "model", "layer", "data", "transform", "parameter", "trial", "measure", "statistic", "index", "name", "label", "value", "other_model",
}

// parquetSample is a SampleRow in a Parquet file.
type parquetSample struct {
	Study     string   `parquet:"study,dict"`
	Model     string   `parquet:"model,dict"`
	Layer     string   `parquet:"layer,dict"`
	Data      string   `parquet:"data,dict"`
	Transform string   `parquet:"transform,dict"`
	Parameter string   `parquet:"parameter,dict"`
	Trial     *int64   `parquet:"trial"`
	Measure   string   `parquet:"measure,dict"`
	Statistic string   `parquet:"statistic,dict"`
	Index     int64    `parquet:"index"`
	Name      string   `parquet:"name,dict"`
	Label     *int64   `parquet:"label"`
	Value     *float64 `parquet:"value"`
	Other     *string  `parquet:"other_model,dict"`
}

// NewSampleWriter returns a writer of per-sample values to w.
func NewSampleWriter(w io.Writer) *RowWriter[SampleRow] {
	return newRowWriter(w, func(r SampleRow) parquetSample {
		return parquetSample{
			r.Study, r.Model, r.Layer, r.Data, r.Transform, r.Parameter, nullInt(r.Trial), r.Measure, r.Statistic,
			int64(r.Index), r.Name, nullInt(r.Label), nullFloat(r.Value), nullText(r.OtherModel),
		}
	})
}

// ReadSamples reads a file of per-sample values of the given size in bytes and calls each with
// every row in order.
func ReadSamples(r io.ReaderAt, size int64, each func(SampleRow)) error {
	t := columnTexts{known: texts{}} // keeps repeated texts in memory once
	return readParquetRows[parquetSample](r, size, SampleColumns[:len(SampleColumns)-1], func(r parquet.Row) error {
		each(SampleRow{ // values in the order of the fields of parquetSample
			t.textOf(r, 0), t.textOf(r, 1), t.textOf(r, 2), t.textOf(r, 3), t.textOf(r, 4), t.textOf(r, 5), intOf(r[6], MeanOverTrials), t.textOf(r, 7), t.textOf(r, 8),
			intOf(r[9], 0), t.textOf(r, 10), intOf(r[11], -1), floatOf(r[12]), t.textOf(r, 13),
		})
		return nil
	})
}

// Row returns the value as a score of a single sample.
func (s SampleRow) Row() Row {
	nan := math.NaN()
	return Row{Study: s.Study, Model: s.Model, OtherModel: s.OtherModel, Layer: s.Layer, Depth: NoDepth, Data: s.Data, Transform: s.Transform, Parameter: s.Parameter,
		Trial: s.Trial, Measure: s.Measure, Statistic: s.Statistic, Value: s.Value, Low: nan, High: nan, Null: nan, N: 1}
}
