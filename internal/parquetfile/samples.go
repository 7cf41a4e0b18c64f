package parquetfile

import (
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/noether-ml/noether/internal/intern"
	"github.com/noether-ml/noether/scores"
)

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
func NewSampleWriter(w io.Writer) *RowWriter[scores.SampleRow] {
	return newRowWriter(w, func(r scores.SampleRow) parquetSample {
		return parquetSample{
			r.Study, r.Model, r.Layer, r.Data, r.Transform, r.Parameter, nullInt(r.Trial), r.Measure, r.Statistic,
			int64(r.Index), r.Name, nullInt(r.Label), nullFloat(r.Value), nullText(r.OtherModel),
		}
	})
}

// ReadSamples reads a file of per-sample values of the given size in bytes and calls each with
// every row in order.
func ReadSamples(r io.ReaderAt, size int64, each func(scores.SampleRow)) error {
	texts := intern.NewColumns()
	text := func(r parquet.Row, column int) string { return texts.Text(column, r[column].ByteArray()) } // "" for null
	return readParquetRows[parquetSample](r, size, scores.SampleColumns[:len(scores.SampleColumns)-1], func(r parquet.Row) error {
		each(scores.SampleRow{ // values in the order of the fields of parquetSample
			Study: text(r, 0), Model: text(r, 1), Layer: text(r, 2), Data: text(r, 3), Transform: text(r, 4), Parameter: text(r, 5),
			Trial: intOf(r[6], scores.MeanOverTrials), Measure: text(r, 7), Statistic: text(r, 8),
			Index: intOf(r[9], 0), Name: text(r, 10), Label: intOf(r[11], -1), Value: floatOf(r[12]), OtherModel: text(r, 13),
		})
		return nil
	})
}
