package parquetfile

import (
	"bytes"
	"testing"

	"github.com/noether-ml/noether/scores"
)

// TestSamplesOfEarlierVersions reads a samples.parquet, with values of statistics for single
// samples, of an earlier version, without the column other_model. A row without a label (class)
// reads back with the label -1.
func TestSamplesOfEarlierVersions(t *testing.T) {
	t.Parallel()
	type earlierRow struct {
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
	}
	var b bytes.Buffer
	w := newRowWriter(&b, func(row earlierRow) earlierRow { return row })
	if err := w.Write(earlierRow{Study: "s", Model: "m", Statistic: "ei", Index: 3, Name: "n", Value: new(0.5)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []scores.SampleRow
	if err := ReadSamples(bytes.NewReader(b.Bytes()), int64(b.Len()), func(r scores.SampleRow) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Model != "m" || got[0].Index != 3 || got[0].Value != 0.5 || got[0].OtherModel != "" || got[0].Label != -1 {
		t.Errorf("read %+v, want the one row that was written", got)
	}
}
